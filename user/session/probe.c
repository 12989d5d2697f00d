// SPDX-License-Identifier: BSD-2-Clause
/* What this kernel and this user can do, found out by trying. */
#include "session/probe.h"

#include "base/cleanup.h"
#include "probe.skel.h"
#include "session/uprobe_multi.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int no_print(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

bool feature_disabled(const char *name, const char *disabled)
{
	size_t n = strlen(name);

	for (const char *p = disabled; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0'))
			return true;
	return false;
}

/* Loads one program of the probe alone, for the given kind of attachment if that is not 0, and asks @then of it: 0 or a negative errno. */
static int load_program(const char *program, unsigned int attach_type, int (*then)(int program_fd))
{
	libbpf_print_fn_t old = libbpf_set_print(no_print);
	struct probe_bpf *skel = probe_bpf__open();
	struct bpf_program *p;
	int r = -ENOENT;

	if (!skel) {
		r = -errno;
		(void)libbpf_set_print(old);
		return r;
	}
	p = bpf_object__find_program_by_name(skel->obj, program);
	if (p) {
		(void)bpf_program__set_autoload(p, true);
		if (attach_type)
			(void)bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)attach_type);
		r = probe_bpf__load(skel);
		if (r == 0 && then)
			r = then(bpf_program__fd(p));
	}
	probe_bpf__destroy(skel);
	(void)libbpf_set_print(old);
	return r;
}

static int try_program(const char *program)
{
	return load_program(program, 0, NULL);
}

static int try_clock(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

static int try_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0 ? 0 : -errno;
}

static int try_uprobe(void)
{
	if (access("/sys/bus/event_source/devices/uprobe/type", R_OK) != 0)
		return -errno;
	return try_program("probe_uprobe");
}

static int try_uprobe_multi(void)
{
	return load_program("probe_uprobe", UPROBE_MULTI, uprobe_multi_try);
}

struct trial {
	const char *name, *what;
	const char *program; /* or: */
	int (*try)(void);
	bool required;
	const char *since;  /* why an absent one is absent */
	const char *remedy; /* for an absent one */
};

#define ROOT "sudo cozbpf ... (or: setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep on the cozbpf binary)"

static const struct trial trials[] = {
	{"btf", "kernel type information, to find fields", NULL, try_btf, true, "CONFIG_DEBUG_INFO_BTF",
	 "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian's are)"},
	{"sampling_clock", "per-CPU timer samples", NULL, try_clock, true, "perf_event_open", ROOT},
	{"sched_switch", "who runs, who waits for a CPU (not with --sync pthread)", "probe_switch", NULL, true, "BTF tracepoints, Linux 5.5", ROOT},
	{"sched_waking", "who wakes whom (not with --sync pthread)", "probe_waking", NULL, true, "BTF tracepoints, Linux 5.5", ROOT},
	{"task_storage", "the per-thread ledger", "probe_storage", NULL, true, "task storage and bpf_loop, Linux 5.17", ROOT},
	{"task_iterator", "the conservation check", "probe_iter", NULL, true, "BPF iterators, Linux 5.8", ROOT},
	{"uprobe", "progress points without recompiling", NULL, try_uprobe, true, "CONFIG_UPROBES", ROOT},
	{"uprobe_multi", "one link for all places of a progress point", NULL, try_uprobe_multi, false,
	 "links with many uprobes that follow processes, Linux 6.10", "without it each place has its own link; nothing to do"},
	{"send_signal_task", "payment signals to a chosen thread (sleep, spin)", "probe_send_signal_task", NULL, false,
	 "bpf_send_signal_task, Linux 6.13", "without it bpf_send_signal_thread is used; nothing to do"},
	{"switch_raw", "exact execution times with --sync pthread", "probe_switch_raw", NULL, false, "raw tracepoints, Linux 4.17",
	 "without it they are estimated from samples; nothing to do"},
	{"sync_sites", "cheap probes with --sync pthread", NULL, try_uprobe, false, "CONFIG_UPROBES", ROOT},
	{"task_work", "pay=hold, and prompt payment in every mode", "probe_task_work", NULL, false,
	 "bpf_task_work_schedule_resume, Linux 6.18",
	 "without it the program's own ticks raise payment signals: use Linux 6.18 for the best accuracy"},
};

/* Of trial @i: 0 or a negative errno. Tried once a process: loading a program takes milliseconds, and a run asks several times. */
static int outcome(size_t i)
{
	static struct {
		bool tried;
		int result;
	} known[sizeof(trials) / sizeof(*trials)];

	if (!known[i].tried) {
		known[i].result = trials[i].program ? try_program(trials[i].program) : trials[i].try();
		known[i].tried = true;
	}
	return known[i].result;
}

bool feature_usable(const char *name, const char *disabled)
{
	for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++)
		if (strcmp(trials[i].name, name) == 0)
			return !feature_disabled(name, disabled) &&
			       outcome(i) == 0;
	return false;
}

static bool refused(int r)
{
	return r == -EPERM || r == -EACCES;
}

bool feature_denied(const char *name)
{
	for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++)
		if (strcmp(trials[i].name, name) == 0)
			return refused(outcome(i));
	return false;
}

static void describe(const struct trial *t, int r, const char *disabled, struct feature *f)
{
	*f = (struct feature){.name = t->name, .what = t->what, .required = t->required};
	if (feature_disabled(t->name, disabled)) {
		f->state = FEATURE_MISSING;
		(void)snprintf(f->detail, sizeof(f->detail), "switched off by --disable");
		return;
	}
	if (r == 0) {
		f->state = FEATURE_OK;
		return;
	}
	f->state = refused(r) ? FEATURE_DENIED : FEATURE_MISSING;
	(void)snprintf(f->detail, sizeof(f->detail), "%s: %s", t->since, strerror(-r));
	/* What a user without privileges cannot try may well be there. */
	(void)snprintf(f->remedy, sizeof(f->remedy), "%s", f->state == FEATURE_DENIED ? ROOT : t->remedy);
}

int session_probe(const char *disabled, struct feature **ret, size_t *ret_n)
{
	const size_t n = sizeof(trials) / sizeof(*trials);
	struct feature *f = calloc(n, sizeof(*f));

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		describe(&trials[i], outcome(i), disabled, &f[i]);
	*ret = f;
	*ret_n = n;
	return 0;
}
