// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/trials.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/namespace.h"
#include "kernel/probe.h"
#include "kernel/programs.h"
#include "kernel/refusal.h"
#include "kernel/uprobes.h"
#include "shared/namespace.h"

#include "probe.skel.h"
#include "probe_all.skel.h"
#include "probe_all_impl.skel.h"
#include "probe_signal.skel.h"
#include "probe_storage.skel.h"
#include "probe_uprobe.skel.h"
#include "probe_work.skel.h"
#include "probe_work_impl.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>

/* How often storage may be refused: an interrupt can meet a lock that is taken. And how long ticks
 * may take. */
#define MAX_REFUSALS 20
#define TICK_NS 100000
#define MAX_WAIT_NS (2 * NSEC_PER_SEC)

static int check_clock(struct bpf_object *o, struct bpf_program *p, struct load_log *l)
{
	_cleanup_close_ int fd = programs_open_clock(-1, 0, TICK_NS);

	(void)o, (void)p, (void)l;
	return fd < 0 ? fd : 0;
}

/* Ticks until storage was there, or was refused too often. */
static int tick(int counts)
{
	uint64_t until = clock_monotonic_ns() + MAX_WAIT_NS, refused = 0, made = 0;
	uint32_t no = 0, yes = 1;

	do {
		if (bpf_map_lookup_elem(counts, &no, &refused) < 0 ||
		    bpf_map_lookup_elem(counts, &yes, &made) < 0)
			return -errno;
	} while (!made && refused < MAX_REFUSALS && clock_monotonic_ns() < until);
	return made ? 0 : refused ? -ENOMEM : -ETIMEDOUT;
}

static int check_storage(struct bpf_object *o, struct bpf_program *p, struct load_log *l)
{
	struct bpf_map *counts = bpf_object__find_map_by_name(o, "probe_ticks");
	struct bpf_link *link;
	int r = programs_attach_perf(p, programs_open_clock(0, -1, TICK_NS), 0, &link);

	if (r < 0)
		return r;
	r = tick(bpf_map__fd(counts));
	(void)bpf_link__destroy(link);
	l->no_memory = r == -ENOMEM;
	return r;
}

static int check_pid_namespace(struct bpf_object *o, struct bpf_program *p, struct load_log *l)
{
	struct own_namespace ns;

	(void)o, (void)p, (void)l;
	return namespace_find(&ns, NULL);
}

static int check_btf(struct bpf_object *o, struct bpf_program *p, struct load_log *l)
{
	(void)o, (void)p, (void)l;
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0 ? 0 : -errno;
}

/* Either way of placing them will do. */
static int check_uprobe(struct bpf_object *o, struct bpf_program *p, struct load_log *l)
{
	int r = uprobe_allowed();

	(void)o, (void)p;
	l->no_probes = r == -EACCES || r == -EPERM;
	return l->no_probes && feature_usable("uprobe_multi", NULL) ? 0 : r;
}

static int check_uprobe_multi(struct bpf_object *o, struct bpf_program *p, struct load_log *l)
{
	(void)o, (void)l;
	return uprobes_try(bpf_program__fd(p));
}

static const void *work_bytes(size_t *size)
{
	return programs_task_work_plain() ? probe_work_bpf__elf_bytes(size)
					  : probe_work_impl_bpf__elf_bytes(size);
}

#define EVENTS "CONFIG_BPF_SYSCALL,CONFIG_BPF_EVENTS"
#define UPROBES EVENTS ",CONFIG_UPROBES,CONFIG_UPROBE_EVENTS"

const struct trial trials[] = {
	{.name = "btf",
	 .what = "kernel type information, to find fields",
	 .check = check_btf,
	 .required = true,
	 .since = "CONFIG_DEBUG_INFO_BTF"},
	{.name = "pid_namespace",
	 .what = "the numbers of processes in our PID namespace",
	 .check = check_pid_namespace,
	 .required = true,
	 .since = "/proc of the PID namespace that cozbpf runs in",
	 .remedy = "mount /proc there, as unshare --mount-proc does"},
	{.name = "sampling_clock",
	 .what = "per-CPU timer samples",
	 .check = check_clock,
	 .required = true,
	 .since = "perf_event_open",
	 .options = "CONFIG_PERF_EVENTS"},
	{.name = "sched_switch",
	 .what = "who runs, who waits for a CPU (not with --sync pthread)",
	 .object = probe_bpf__elf_bytes,
	 .program = "probe_switch",
	 .required = true,
	 .together = true,
	 .since = "BTF tracepoints, Linux 5.5",
	 .options = EVENTS},
	{.name = "sched_waking",
	 .what = "who wakes whom (not with --sync pthread)",
	 .object = probe_bpf__elf_bytes,
	 .program = "probe_waking",
	 .required = true,
	 .together = true,
	 .since = "BTF tracepoints, Linux 5.5",
	 .options = EVENTS},
	{.name = "task_storage",
	 .what = "the per-thread ledger",
	 .object = probe_storage_bpf__elf_bytes,
	 .program = "probe_storage",
	 .check = check_storage,
	 .required = true,
	 .together = true,
	 .since = "task storage and bpf_loop, Linux 5.17",
	 .options = EVENTS},
	{.name = "task_iterator",
	 .what = "the conservation check",
	 .object = probe_bpf__elf_bytes,
	 .program = "probe_iter",
	 .required = true,
	 .since = "BPF iterators, Linux 5.8",
	 .options = EVENTS},
	{.name = "uprobe",
	 .what = "progress points without recompiling",
	 .object = probe_uprobe_bpf__elf_bytes,
	 .program = "probe_uprobe",
	 .check = check_uprobe,
	 .required = true,
	 .since = "CONFIG_UPROBES",
	 .options = UPROBES},
	{.name = "uprobe_multi",
	 .what = "one link for all places of a progress point",
	 .object = probe_uprobe_bpf__elf_bytes,
	 .program = "probe_uprobe",
	 .attach_type = UPROBE_MULTI,
	 .check = check_uprobe_multi,
	 .since = "links with many uprobes that follow processes, Linux 6.10",
	 .remedy = "without it each place has its own link; nothing to do"},
	{.name = "send_signal_task",
	 .what = "payment signals to a chosen thread (sleep, spin)",
	 .object = probe_signal_bpf__elf_bytes,
	 .program = "probe_send_signal_task",
	 .together = true,
	 .since = "bpf_send_signal_task, Linux 6.13",
	 .remedy = "without it bpf_send_signal_thread is used; nothing to do"},
	{.name = "switch_raw",
	 .what = "exact execution times with --sync pthread",
	 .object = probe_bpf__elf_bytes,
	 .program = "probe_switch_raw",
	 .since = "raw tracepoints, Linux 4.17",
	 .remedy = "without it they are estimated from samples; nothing to do"},
	{.name = "task_work",
	 .what = "pay=hold, and prompt payment in every mode",
	 .object = work_bytes,
	 .program = "probe_task_work",
	 .together = true,
	 .since = "bpf_task_work_schedule_resume, Linux 6.18",
	 .remedy = "without it the program's own ticks raise payment signals: use Linux 6.18 for "
		   "the best accuracy"},
};
const size_t n_trials = sizeof(trials) / sizeof(*trials);
_Static_assert(sizeof(trials) / sizeof(*trials) <= MAX_TRIALS, "each has its outcome");

static int load(const struct trial *t, struct load_log *l)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = t->name);
	struct bpf_program *p;
	struct bpf_object *o;
	const void *bytes;
	size_t size;
	int r;

	if (!t->object)
		return t->check(NULL, NULL, l);
	bytes = t->object(&size);
	o = bpf_object__open_mem(bytes, size, &opts);
	if (!o)
		return -errno;
	p = bpf_object__find_program_by_name(o, t->program);
	r = p ? bpf_program__set_autoload(p, true) : -ENOENT;
	if (r == 0 && t->attach_type)
		r = bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)t->attach_type);
	if (r == 0)
		r = bpf_object__load(o);
	if (r == 0 && t->check)
		r = t->check(o, p, l);
	bpf_object__close(o);
	return r;
}

int trials_try_together(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "probe_all");
	struct load_log log;
	struct bpf_object *o;
	const void *bytes;
	size_t size;
	int r = 0;

	load_log_listen(&log);
	bytes = programs_task_work_plain() ? probe_all_bpf__elf_bytes(&size)
					   : probe_all_impl_bpf__elf_bytes(&size);
	o = bpf_object__open_mem(bytes, size, &opts);
	if (!o)
		r = -errno;
	for (size_t i = 0; r == 0 && i < n_trials; i++)
		if (trials[i].together)
			r = bpf_program__set_autoload(
				bpf_object__find_program_by_name(o, trials[i].program), true);
	if (r == 0)
		r = bpf_object__load(o);
	for (size_t i = 0; r == 0 && i < n_trials; i++)
		if (trials[i].together && trials[i].check)
			r = trials[i].check(
				o, bpf_object__find_program_by_name(o, trials[i].program), &log);
	bpf_object__close(o);
	load_log_listen(NULL);
	/* The kernel's types were read. What of that stays is copied on write after the next fork.
	 */
	(void)malloc_trim(0);
	return r;
}

int trial_try(const struct trial *t, struct refusal *why)
{
	struct load_log log;
	int r;

	load_log_listen(&log);
	r = load(t, &log);
	load_log_listen(NULL);
	if (r < 0)
		refusal_of(r, &log, t->options, why);
	return r;
}
