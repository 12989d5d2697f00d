// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/refusal.h"

#include "base/error.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

/* Older headers lack them. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif

/* Mainline's levels end here: the kernels of Debian and Ubuntu have one more that refuses
 * perf_event_open(), some even with CAP_PERFMON. */
#define MAINLINE_PARANOID 2

#define REPORT "this kernel is not supported: please report the output of `cozbpf check --verbose`"

static void copy(char *ret, size_t size, const char *from, size_t n)
{
	(void)snprintf(ret, size, "%.*s", (int)(n < size ? n : size - 1), from);
}

/* Lines by which the verifier counts its work. */
static bool is_statistics(const char *line)
{
	static const char *const begins[] = {"processed ", "verification time ", "stack depth ",
					     "mark_precise: "};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strncmp(line, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static void note_verdict(struct load_log *l, const char *log)
{
	const char *end = strstr(log, "-- END PROG LOAD LOG --");

	for (const char *line = strchr(log, '\n'); line && line[1] && (!end || line + 1 < end);
	     line = strchr(line + 1, '\n')) {
		size_t n = strcspn(line + 1, "\n");

		if (n && !is_statistics(line + 1))
			copy(l->verdict, sizeof(l->verdict), line + 1, n);
	}
}

void load_log_note(struct load_log *l, const char *text)
{
	static const char name[] = "prog '", failed[] = "': BPF program load failed",
			  prefix[] = "libbpf: ";
	const char *at = strstr(text, name), *log = strstr(text, "-- BEGIN PROG LOAD LOG --"),
		   *end = strstr(text, failed);

	if (log) {
		note_verdict(l, log);
	} else if (at && end && end > at) {
		at += strlen(name);
		if (!l->program[0])
			copy(l->program, sizeof(l->program), at, (size_t)(end - at));
	} else if (!l->first[0]) {
		at = strncmp(text, prefix, strlen(prefix)) == 0 ? text + strlen(prefix) : text;
		copy(l->first, sizeof(l->first), at, strcspn(at, "\n"));
	}
}

static bool has(const struct load_facts *f, unsigned int capability)
{
	return f->capabilities >> capability & 1;
}

static bool may_load(const struct load_facts *f)
{
	return !f->foreign_users &&
	       (has(f, CAP_SYS_ADMIN) || (has(f, CAP_BPF) && has(f, CAP_PERFMON)));
}

#define SAY(...) (void)snprintf(ret->why, sizeof(ret->why), __VA_ARGS__)
#define ADVISE(...) (void)snprintf(ret->remedy, sizeof(ret->remedy), __VA_ARGS__)

#define LOWER "sysctl -w kernel.perf_event_paranoid=2"

static void explain_privileges(const struct load_facts *f, struct refusal *ret)
{
	bool above = f->paranoid > MAINLINE_PARANOID;

	ret->denied = true;
	if (f->foreign_users) {
		SAY("capabilities do not count for BPF in a user namespace, such as a rootless "
		    "container");
		ADVISE("run cozbpf as root outside of it");
	} else if (f->root) {
		SAY("root has neither CAP_SYS_ADMIN nor CAP_BPF and CAP_PERFMON here, as in a "
		    "container");
		ADVISE("docker run --privileged IMAGE, or with no more than is needed: docker run "
		       "--cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE --security-opt "
		       "seccomp=unconfined IMAGE%s",
		       above ? " after " LOWER " on the host" : "");
	} else {
		SAY("this user may not load BPF programs");
		ADVISE("run as root (sudo cozbpf ...), or once, on a copy of cozbpf of your own: "
		       "chmod go= and setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep%s",
		       above ? ", and " LOWER : "");
	}
}

static void explain_memory(const struct load_facts *f, struct refusal *ret)
{
	if (!f->cx16) {
		SAY("this CPU lacks cmpxchg16b (flag cx16 in /proc/cpuinfo), without which this "
		    "kernel gives BPF programs no memory in an interrupt");
		ADVISE("give the virtual machine a CPU model with cx16, such as QEMU's -cpu host; "
		       "or boot a kernel older than 6.19");
	} else if (f->realtime) {
		SAY("this real-time kernel gives BPF programs no memory in an interrupt");
		ADVISE("boot this version without PREEMPT_RT, or one older than 6.19");
	} else {
		SAY("this kernel gives BPF programs no memory in an interrupt");
		ADVISE("free memory; if there is enough, " REPORT);
	}
}

void refusal_explain(int error, const struct load_log *l, const struct load_facts *f,
		     struct refusal *ret)
{
	bool forbidden = error == EPERM || error == EACCES;

	*ret = (struct refusal){};
	if (f->missing[0]) {
		SAY("this kernel was built without %s", f->missing);
		ADVISE("boot a kernel that has it; Debian's have");
	} else if (!f->btf) {
		SAY("this kernel has no type information (/sys/kernel/btf/vmlinux)");
		ADVISE("boot a kernel built with CONFIG_DEBUG_INFO_BTF=y; Debian's are");
	} else if (forbidden && !l->verdict[0] && !may_load(f)) {
		explain_privileges(f, ret);
	} else if (strstr(f->lockdown, "[confidentiality]")) {
		ret->denied = true;
		SAY("the kernel is locked down (confidentiality): BPF programs may not read its "
		    "memory");
		ADVISE("boot it with lockdown=integrity, or without lockdown");
	} else if (l->no_memory) {
		explain_memory(f, ret);
	} else if (l->verdict[0]) {
		SAY("the kernel's verifier refused the program %s (%s): %s", l->program,
		    strerror(error), l->verdict);
		ADVISE(REPORT);
	} else if (forbidden && f->no_clock && f->paranoid > MAINLINE_PARANOID &&
		   !has(f, CAP_SYS_ADMIN)) {
		ret->denied = true;
		SAY("kernel.perf_event_paranoid is %d, where this kernel refuses perf_event_open() "
		    "without CAP_SYS_ADMIN",
		    f->paranoid);
		ADVISE("as root: " LOWER " (a container has that of its host); or give cozbpf "
		       "CAP_SYS_ADMIN, too");
	} else if (forbidden && l->no_probes && !has(f, CAP_SYS_ADMIN)) {
		ret->denied = true;
		SAY("before Linux 6.10 the kernel takes probes from CAP_SYS_ADMIN alone");
		ADVISE("run as root (sudo cozbpf ...), in a container with --cap-add SYS_ADMIN; or "
		       "boot Linux 6.10 or newer");
	} else if (forbidden) {
		ret->denied = true;
		SAY("a security module or a seccomp filter forbids BPF, although the capabilities "
		    "are there (%s)",
		    strerror(error));
		ADVISE("allow bpf() and perf_event_open() there, in a container by docker run "
		       "--security-opt seccomp=unconfined IMAGE");
	} else if (error == ENOSYS) {
		SAY("this kernel has no bpf()");
		ADVISE("boot a kernel built with CONFIG_BPF_SYSCALL=y; Debian's are");
	} else if (l->program[0]) {
		SAY("the kernel refused the program %s: %s", l->program, strerror(error));
		ADVISE(REPORT);
	} else {
		SAY("libbpf refused the programs: %s", l->first[0] ? l->first : strerror(error));
		ADVISE(REPORT);
	}
}

int refusal_fail(struct error *e, int r, const char *what, const struct refusal *why)
{
	return fail(e, -r, "cannot load %s: %s; %s", what, why->why, why->remedy);
}
