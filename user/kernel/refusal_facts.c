// SPDX-License-Identifier: BSD-2-Clause
/* What refusal_explain decides by: read from this machine, and heard from libbpf. */
#include "kernel/refusal.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

/* The inode of the first user namespace (PROC_USER_INIT_INO in include/linux/proc_ns.h). */
#define FIRST_USER_NAMESPACE 0xEFFFFFFDU
#define MAX_OPTIONS 16

/* The first line of @path that begins with @begin, after that; false: none, or not readable. */
static bool read_after(const char *path, const char *begin, char *ret, size_t size)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		if (strncmp(line, begin, strlen(begin)) != 0)
			continue;
		(void)snprintf(ret, size, "%.*s", (int)strcspn(line + strlen(begin), "\n"),
			       line + strlen(begin));
		return true;
	}
	return false;
}

bool load_config_lacks(const char *path, const char *options, char *ret, size_t size)
{
	char line[256];
	unsigned int wanted = 0, found = 0;
	gzFile f = gzopen(path, "re");

	if (!f)
		return false;
	while (gzgets(f, line, sizeof(line))) {
		unsigned int i = 0;

		for (const char *o = options; *o && i < MAX_OPTIONS;
		     o += strcspn(o, ","), o += *o == ',', i++) {
			size_t n = strcspn(o, ",");

			wanted |= 1U << i;
			if (strncmp(line, o, n) == 0 && line[n] == '=')
				found |= 1U << i;
		}
	}
	(void)gzclose(f);
	for (unsigned int i = 0; wanted >> i; i++, options += strcspn(options, ",") + 1)
		if (!(found >> i & 1)) {
			(void)snprintf(ret, size, "%.*s", (int)strcspn(options, ","), options);
			return true;
		}
	return false;
}

static void find_missing_option(const char *options, struct load_facts *ret)
{
	static const char *const places[] = {"/boot/config-%s", "/lib/modules/%s/config",
					     "/lib/modules/%s/build/.config"};
	struct utsname u;
	char path[sizeof(u.release) + 64];

	if (load_config_lacks("/proc/config.gz", options, ret->missing, sizeof(ret->missing)) ||
	    uname(&u) < 0)
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !ret->missing[0]; i++) {
		(void)snprintf(path, sizeof(path), places[i], u.release);
		(void)load_config_lacks(path, options, ret->missing, sizeof(ret->missing));
	}
}

/* One of the calling thread, which every level allows that allows any. */
static bool clock_is_refused(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .disabled = 1,
				       .exclude_kernel = 1};
	_cleanup_close_ int fd =
		(int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 && (errno == EACCES || errno == EPERM);
}

void load_facts_read(const char *options, struct load_facts *ret)
{
	char text[4096] = "";
	struct utsname u;
	struct stat st;

	*ret = (struct load_facts){
		.btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0,
		.root = geteuid() == 0,
		.no_clock = clock_is_refused(),
		.paranoid = -1,
		.foreign_users =
			stat("/proc/self/ns/user", &st) == 0 && st.st_ino != FIRST_USER_NAMESPACE,
	};
	if (read_after("/proc/self/status", "CapEff:", text, sizeof(text)))
		ret->capabilities = strtoull(text, NULL, 16);
	if (read_after("/proc/sys/kernel/perf_event_paranoid", "", text, sizeof(text)))
		ret->paranoid = (int)strtol(text, NULL, 10);
	/* "#1 SMP PREEMPT_RT Debian ...". Not all such kernels have /sys/kernel/realtime. */
	ret->realtime = uname(&u) == 0 && strstr(u.version, "PREEMPT_RT");
	/* Not readable: nothing to say about it. */
	ret->cx16 =
		!read_after("/proc/cpuinfo", "flags", text, sizeof(text)) || strstr(text, " cx16");
	(void)read_after("/sys/kernel/security/lockdown", "", ret->lockdown, sizeof(ret->lockdown));
	if (options)
		find_missing_option(options, ret);
}

void refusal_of(int r, const struct load_log *l, const char *options, struct refusal *ret)
{
	struct load_facts facts;

	load_facts_read(options, &facts);
	refusal_explain(-r, l, &facts, ret);
}

/* libbpf's own, in whose place it comes. Functions that vmlinux lacks are looked for in the types
 * of all modules then, which only CAP_SYS_ADMIN may list: libbpf fails without that, but for the
 * newest versions. What our programs call is in vmlinux or nowhere: there are no modules for them.
 */
__attribute__((weak)) int bpf_btf_get_next_id(__u32 start_id, __u32 *next_id)
{
	(void)start_id, (void)next_id;
	errno = ENOENT;
	return -ENOENT;
}

static _Thread_local struct load_log *listening;
static bool verbose;

static int heard(enum libbpf_print_level level, const char *format, va_list args)
{
	_cleanup_free_ char *text = NULL;

	if (level == LIBBPF_DEBUG || vasprintf(&text, format, args) < 0) {
		text = NULL;
		return 0;
	}
	if (listening && level == LIBBPF_WARN)
		load_log_note(listening, text);
	/* It names programs' files and functions. */
	for (char *at = text, *line; verbose && (line = strsep(&at, "\n"));) {
		utf8_make_printable(line, utf8_locale() || !isatty(STDERR_FILENO));
		(void)fprintf(stderr, "%s%s", line, at ? "\n" : "");
	}
	return 0;
}

void load_log_listen(struct load_log *l)
{
	(void)libbpf_set_print(heard);
	listening = l;
	if (l)
		*l = (struct load_log){};
}

void load_log_verbose(void)
{
	verbose = true;
}
