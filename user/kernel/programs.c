// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/programs.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "kernel/namespace.h"
#include "kernel/refusal.h"

#include "shared/latency.h"

#include "cozbpf.skel.h"
#include "cozbpf_impl.skel.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a session as a whole takes of the kernel, whatever it is asked for. */
#define OPTIONS                                                                                 \
	"CONFIG_BPF_SYSCALL,CONFIG_BPF_JIT,CONFIG_BPF_EVENTS,CONFIG_PERF_EVENTS,CONFIG_UPROBE_" \
	"EVENTS"

/* The kernel's types in BTF, as they are in the file; munmap. Linux 6.16 and later map it; of the
 * older ones it is a copy. NULL: there are none. */
static char *map_types(size_t *n)
{
	_cleanup_close_ int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t got = 1;
	char *m;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return NULL;
	*n = (size_t)st.st_size;
	m = mmap(NULL, *n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (m != MAP_FAILED)
		return m;
	m = mmap(NULL, *n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	for (size_t at = 0; at < *n && got > 0; at += (size_t)got)
		got = read(fd, m + at, *n - at);
	return m;
}

/* Is there a function of the name, for programs to call? The names are between zeroes, in the
 * section of strings. */
static bool is_known(const char *types, size_t n, const char *name)
{
	char whole[64] = "";
	int length = snprintf(whole + 1, sizeof(whole) - 1, "%s", name);

	return memmem(types, n, whole, (size_t)length + 2) != NULL;
}

struct functions {
	bool known, plain, preempt_disable;
};

/* Asked a few times in a process. The names alone are looked at: libbpf's index of the types takes
 * tens of milliseconds. */
static const struct functions *functions(void)
{
	static struct functions f;
	size_t n = 0;
	char *types;

	if (f.known)
		return &f;
	f.known = true;
	types = map_types(&n);
	if (!types)
		return &f;
	f.plain = is_known(types, n, "bpf_task_work_schedule_resume");
	f.preempt_disable = is_known(types, n, "bpf_preempt_disable");
	(void)munmap(types, n);
	return &f;
}

bool programs_task_work_plain(void)
{
	return functions()->plain;
}

bool programs_preempt_disable(void)
{
	return functions()->preempt_disable;
}

/* Both variants have the same maps, globals and programs, so that one skeleton serves for either's
 * bytes. */
static struct cozbpf_bpf *open_variant(void)
{
	struct cozbpf_bpf *skel;
	int r;

	if (programs_task_work_plain())
		return cozbpf_bpf__open();
	skel = xcalloc(1, sizeof(*skel));
	r = cozbpf_bpf__create_skeleton(skel);
	if (r == 0) {
		skel->skeleton->data = (void *)cozbpf_impl_bpf__elf_bytes(&skel->skeleton->data_sz);
		r = bpf_object__open_skeleton(skel->skeleton, NULL);
	}
	if (r < 0) {
		cozbpf_bpf__destroy(skel);
		errno = -r;
		return NULL;
	}
	return skel;
}

struct cozbpf_bpf *programs_open(void)
{
	struct cozbpf_bpf *skel = open_variant();
	int r = skel ? namespace_find(&skel->rodata->own_namespace, NULL) : 0;

	if (r < 0) {
		cozbpf_bpf__destroy(skel);
		skel = NULL;
		errno = -r;
	}
	return skel;
}

int programs_load(struct bpf_object_skeleton *skeleton, struct refusal *why)
{
	struct load_log log;
	int r;

	load_log_listen(&log);
	r = bpf_object__load_skeleton(skeleton);
	load_log_listen(NULL);
	if (r < 0)
		refusal_of(r, &log, OPTIONS, why);
	return r;
}

int programs_open_clock(pid_t pid, int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int programs_attach_perf(const struct bpf_program *program, int fd, uint64_t cookie,
			 struct bpf_link **ret)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cookie);
	int r;

	if (fd < 0)
		return fd;
	*ret = bpf_program__attach_perf_event_opts(program, fd, &opts);
	r = *ret ? 0 : -errno;
	if (r < 0)
		(void)close(fd);
	return r;
}
