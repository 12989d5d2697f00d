// SPDX-License-Identifier: BSD-2-Clause
/* What a refusal of BPF programs is said to be, by what libbpf said and by what is known of the
 * machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel/refusal.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define ALL_CAPABILITIES 0x1ffffffffffULL

/* What libbpf says when the verifier refuses a program, and afterwards. */
static const char *const refused[] = {
	"libbpf: prog 'edge_switch': BPF program load failed: Permission denied\n",
	"libbpf: prog 'edge_switch': -- BEGIN PROG LOAD LOG --\n"
	"reg type unsupported for arg#0 function edge_switch#121\n"
	"77: (0f) r1 += r2\n"
	"R1 unbounded memory access, make sure to bounds check any such access\n"
	"verification time 812 usec\n"
	"stack depth 88+0+0\n"
	"processed 76 insns (limit 1000000) max_states_per_insn 0 total_states 5 peak_states 5 "
	"mark_read 2\n"
	"-- END PROG LOAD LOG --\n",
	"libbpf: prog 'edge_switch': failed to load: -13\n",
	"libbpf: failed to load object 'cozbpf_bpf'\n",
};

/* A machine that lacks nothing. */
static const struct load_facts well = {
	.btf = true, .cx16 = true, .root = true, .capabilities = ALL_CAPABILITIES};

static struct load_log heard(const char *const *texts, size_t n)
{
	struct load_log l = {};

	for (size_t i = 0; i < n; i++)
		load_log_note(&l, texts[i]);
	return l;
}

static void explains(int error, const struct load_log *l, const struct load_facts *f, bool denied,
		     const char *why, const char *remedy)
{
	struct refusal r;

	refusal_explain(error, l, f, &r);
	if (!strstr(r.why, why) || !strstr(r.remedy, remedy) || r.denied != denied)
		fail_msg("expected '%s' and '%s', denied %d; got '%s' and '%s', denied %d", why,
			 remedy, denied, r.why, r.remedy, r.denied);
}

static void log_names_program_and_verdict(void **state)
{
	struct load_log l = heard(refused, sizeof(refused) / sizeof(*refused));

	(void)state;
	assert_string_equal(l.program, "edge_switch");
	assert_string_equal(
		l.verdict, "R1 unbounded memory access, make sure to bounds check any such access");
	/* Logs end anywhere. */
	for (size_t n = 0; n <= strlen(refused[1]); n++) {
		char *text = strndup(refused[1], n);

		assert_non_null(text);
		load_log_note(&(struct load_log){}, text);
		free(text);
	}
}

static void verifier_is_no_missing_privilege(void **state)
{
	struct load_log l = heard(refused, sizeof(refused) / sizeof(*refused));
	struct load_facts weak = well;

	(void)state;
	explains(EACCES, &l, &well, false,
		 "verifier refused the program edge_switch (Permission denied): R1 unbounded",
		 "check --verbose");
	/* The verifier looked at it, so that loading was allowed. */
	weak.root = false;
	weak.capabilities = 0;
	explains(EACCES, &l, &weak, false, "verifier refused the program edge_switch",
		 "check --verbose");
}

/* Capabilities that suffice for programs do not for probes of the older kind. */
static void probes_take_more(void **state)
{
	const struct load_log l = {.no_probes = true};
	struct load_facts f = well;

	(void)state;
	f.capabilities = 1ULL << 38 | 1ULL << 39;
	explains(EACCES, &l, &f, true, "before Linux 6.10", "--cap-add SYS_ADMIN");
	explains(EACCES, &l, &well, true, "a security module", "seccomp");
}

static void libbpf_refuses_an_extern(void **state)
{
	static const char *const texts[] = {
		"libbpf: extern (func ksym) 'bpf_task_work_schedule_resume_impl': func_proto [56] "
		"incompatible with kernel [36636]\n",
		"libbpf: failed to load object 'cozbpf_bpf'\n",
		"libbpf: failed to load BPF skeleton 'cozbpf_bpf': -22\n",
	};
	struct load_log l = heard(texts, 3);

	(void)state;
	explains(EINVAL, &l, &well, false,
		 "libbpf refused the programs: extern (func ksym) "
		 "'bpf_task_work_schedule_resume_impl'",
		 "--verbose");
}

static void privileges_are_told_apart(void **state)
{
	static const char *const texts[] = {
		"libbpf: Error in bpf_object__probe_loading():Operation not permitted(1). Couldn't "
		"load trivial BPF program.\n"};
	struct load_log l = heard(texts, 1);
	struct load_facts f = well;

	(void)state;
	explains(EPERM, &l, &f, true, "security module or a seccomp filter", "seccomp=unconfined");
	f.capabilities = 0x00000000a80425fb; /* root's in a Docker container */
	explains(EPERM, &l, &f, true, "root has neither CAP_SYS_ADMIN nor CAP_BPF",
		 "--cap-add BPF");
	f.root = false;
	f.capabilities = 0;
	explains(EPERM, &l, &f, true, "this user may not load BPF programs", "sudo");
	explains(EACCES, &l, &f, true, "this user may not load BPF programs", "setcap");
	f.capabilities = 1ULL << 39; /* CAP_BPF without CAP_PERFMON */
	explains(EPERM, &l, &f, true, "this user may not load BPF programs", "cap_perfmon");
	f.capabilities = 1ULL << 39 | 1ULL << 38;
	explains(EPERM, &l, &f, true, "security module", "seccomp");
	f.foreign_users = f.root = true;
	f.capabilities = ALL_CAPABILITIES;
	explains(EPERM, &l, &f, true, "user namespace", "outside");
}

/* Debian's default is 3. What takes more than the three capabilities there is perf_event_open(). */
static void levels_of_perf_events(void **state)
{
	struct load_log none = {};
	struct load_facts f = well;

	(void)state;
	f.root = false;
	f.no_clock = true;
	f.capabilities = 1ULL << 39 | 1ULL << 38;
	for (f.paranoid = -1; f.paranoid <= 2; f.paranoid++)
		explains(EACCES, &none, &f, true, "security module or a seccomp", "seccomp");
	for (; f.paranoid <= 4; f.paranoid++)
		explains(EACCES, &none, &f, true, "kernel.perf_event_paranoid is ",
			 "sysctl -w kernel.perf_event_paranoid=2");
	/* It is not what is refused. */
	f.no_clock = false;
	explains(EPERM, &none, &f, true, "security module or a seccomp", "seccomp");
	f.no_clock = true;
	f.capabilities = ALL_CAPABILITIES;
	explains(EPERM, &none, &f, true, "security module or a seccomp", "seccomp");
	f.capabilities = 0;
	explains(EACCES, &none, &f, true, "this user may not load BPF programs",
		 "cap_sys_ptrace+ep, and sysctl -w kernel.perf_event_paranoid=2");
	f.root = true;
	explains(EACCES, &none, &f, true, "root has neither",
		 "IMAGE after sysctl -w kernel.perf_event_paranoid=2 on the host");
}

static void machines_are_told_apart(void **state)
{
	struct load_log none = {}, memory = {.no_memory = true},
			l = heard(refused, sizeof(refused) / sizeof(*refused));
	struct load_facts f = well;

	(void)state;
	(void)strcpy(f.lockdown, "none [integrity] confidentiality");
	explains(EACCES, &l, &f, false, "verifier", "");
	(void)strcpy(f.lockdown, "none integrity [confidentiality]");
	explains(EINVAL, &l, &f, true, "locked down (confidentiality)", "lockdown=integrity");
	f = well;
	f.btf = false;
	explains(ENOENT, &none, &f, false, "no type information", "CONFIG_DEBUG_INFO_BTF=y");
	(void)strcpy(f.missing, "CONFIG_UPROBE_EVENTS");
	explains(ENOENT, &none, &f, false, "built without CONFIG_UPROBE_EVENTS", "boot");
	explains(ENOSYS, &none, &well, false, "no bpf()", "CONFIG_BPF_SYSCALL=y");
	explains(ENOMEM, &memory, &well, false, "no memory in an interrupt", "free memory");
	f = well;
	f.realtime = true;
	explains(ENOMEM, &memory, &f, false, "real-time kernel", "without PREEMPT_RT");
	f.cx16 = false;
	explains(ENOMEM, &memory, &f, false, "cmpxchg16b (flag cx16", "-cpu host");
	explains(ENOMEM, &none, &f, false, strerror(ENOMEM), "");
}

static void options_are_looked_up(void **state)
{
	static const char text[] =
		"#\n# Automatically generated\n#\nCONFIG_BPF=y\nCONFIG_BPF_EVENTS=y\n# "
		"CONFIG_UPROBE_EVENTS is not set\nCONFIG_HID_BPF=m\n";
	char path[] = "/tmp/cozbpf-config-XXXXXX", missing[48] = "";
	int fd = mkstemp(path);
	gzFile z;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
	for (int packed = 0; packed < 2; packed++) {
		assert_false(load_config_lacks(path, "CONFIG_BPF,CONFIG_BPF_EVENTS,CONFIG_HID_BPF",
					       missing, sizeof(missing)));
		assert_true(load_config_lacks(path,
					      "CONFIG_BPF,CONFIG_UPROBE_EVENTS,CONFIG_BPF_SYSCALL",
					      missing, sizeof(missing)));
		assert_string_equal(missing, "CONFIG_UPROBE_EVENTS");
		z = gzopen(path, "w");
		assert_non_null(z);
		assert_int_equal(gzwrite(z, text, (unsigned int)strlen(text)), strlen(text));
		assert_int_equal(gzclose(z), Z_OK);
	}
	(void)unlink(path);
	assert_false(load_config_lacks(path, "CONFIG_BPF", missing, sizeof(missing)));
}

static void say(libbpf_print_fn_t print, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)print(LIBBPF_WARN, format, args);
	va_end(args);
}

static void verbose_output_does_not_steer(void **state)
{
	char path[] = "/tmp/cozbpf-verbose-XXXXXX", text[256];
	int fd = mkstemp(path), console = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	libbpf_print_fn_t print;
	ssize_t n;

	(void)state;
	assert_true(fd >= 0 && console >= 0);
	(void)unlink(path);
	load_log_listen(NULL);
	load_log_verbose();
	print = libbpf_set_print(NULL);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	say(print, "libbpf: no '%s'\n\nlog:\n",
	    "/red\033[31m\xc2\x9b"
	    "32m\u202e");
	say(print, "of %s", "na\u00efve");
	assert_true(dup2(console, STDERR_FILENO) >= 0);
	n = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, "libbpf: no '/red?[31m?32m?'\n\nlog:\nof na\u00efve");
	(void)close(fd);
	(void)close(console);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_names_program_and_verdict),
		cmocka_unit_test(verifier_is_no_missing_privilege),
		cmocka_unit_test(probes_take_more),
		cmocka_unit_test(libbpf_refuses_an_extern),
		cmocka_unit_test(privileges_are_told_apart),
		cmocka_unit_test(levels_of_perf_events),
		cmocka_unit_test(machines_are_told_apart),
		cmocka_unit_test(options_are_looked_up),
		cmocka_unit_test(verbose_output_does_not_steer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
