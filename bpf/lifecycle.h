/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What begins and ends: processes that are followed, programs that they start, threads that leave
 * their books behind. */
#pragma once

#include "bpf/latency.h"
#include "bpf/pay.h"

/* Processes that have just started another program. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} execs SEC(".maps");

/* A new process is followed as its parent is. The address space is the parent's, or a copy of it.
 * Returns whether it is in scope. */
static __always_inline bool process_birth(struct task_struct *p, struct task_struct *current)
{
	struct abi_proc *parent = proc_of(current), child;
	u32 process = task_process(p);

	if (!parent || !(parent->flags & ABI_PROC_FOLLOW))
		return false;
	child = *parent;
	if (bpf_map_update_elem(&procs, &process, &child, BPF_ANY)) {
		count(COUNTER_no_process);
		return false;
	}
	return child.flags & ABI_PROC_IN;
}

/* What @t, which ends, executed since its last sample. Without a kernel that finds its maker it is
 * for the next sample on this CPU. */
static __always_inline void exit_transfer(struct thread *t, u64 now)
{
	struct task_struct *maker = NULL;
	struct abi_cpu *c = cpu_here();
	struct thread *m = NULL;
	s64 exec = expected_unseen(t, now);

	if (!c || sync_by_calls() || exec <= 0)
		return;
	if (config.has_task_work && t->maker)
		maker = bpf_task_from_pid(t->maker);
	if (maker) {
		m = bpf_task_storage_get(&threads, maker, 0, 0);
		if (m)
			expected_transfer(m, t, exec);
		bpf_task_release(maker);
	}
	if (!m)
		ADD(c->exec, exec);
	/* The thread that gets its CPU waited for its clock as it is expected to be. */
	t->sample.unbooked += ledger_expected(exec, t->clock.earned, t->clock.seen);
	ADD(t->clock.exec, -exec);
}

/* A new image has no shim and no handler: the payment signal would kill it. The controller switches
 * signals on again when the shim has loaded. */
static __always_inline void lifecycle_exec(const struct task_struct *p)
{
	u32 process = task_process(p);
	struct abi_proc *proc;

	if (!process)
		return;
	if (process == control.main) {
		control.signals_ok = 0;
		ADD(control.execs, 1);
	}
	if (!config.many)
		return;
	proc = proc_of(p);
	if (proc) {
		proc->space = ABI_SPACE_NONE;
		__sync_fetch_and_and(&proc->flags, ~(ABI_PROC_SIGNALS | ABI_PROC_HELD));
	}
	if ((proc || config.all_execs) && bpf_ringbuf_output(&execs, &process, sizeof(process), 0))
		count(COUNTER_exec_lost);
}

/* Its number may become another's. */
static __always_inline void process_forget(u32 process)
{
	if (control.tgid == process)
		control.tgid = 0;
	bpf_map_delete_elem(&procs, &process);
}

/* After its last thread, @p, with its books @t, or NULL, a process is over. But that thread goes on
 * to close its files and to wake who waits for it, as any thread does: its last switch ends that.
 */
static __always_inline void process_ended(struct task_struct *p, struct thread *t)
{
	u32 process = task_process(p);

	if (!config.many || BPF_CORE_READ(p, signal, live.counter))
		return;
	if (t && !sync_by_calls())
		t->ends = process;
	else
		process_forget(process);
}

/* @p has left its CPU for good. */
static __always_inline void lifecycle_gone(struct task_struct *p)
{
	struct thread *t = config.many ? bpf_task_storage_get(&threads, p, 0, 0) : NULL;

	if (t && t->ends)
		process_forget(t->ends);
}

static __always_inline void lifecycle_exit(struct task_struct *p)
{
	u64 epoch = *(volatile u64 *)&control.epoch;
	struct abi_totals *sum = totals_here();
	struct thread *t;

	if (!in_scope(p)) {
		/* It may have been in scope once. */
		t = config.many ? bpf_task_storage_get(&threads, p, 0, 0) : NULL;
		if (t)
			slot_release(t);
		process_ended(p, NULL);
		return;
	}
	control.exit_ns = bpf_ktime_get_ns();
	latency_exit(p);
	t = thread_get(p);
	if (t && sum) {
		thread_fold(t, control.exit_ns);
		if (experiment_active(epoch) && t->account.epoch == epoch) {
			s64 owed = thread_owes(t);

			if (owed > 0)
				ADD(sum->owed_at_exit, owed);
			if (t->clock.local - t->account.start !=
			    t->account.earned + t->account.paid + t->account.credited +
				    t->account.rq_credited)
				count(COUNTER_imbalance);
		}
		exit_transfer(t, control.exit_ns);
		slope_end(p, &t->vectors, control.exit_ns);
		slot_release(t);
	}
	process_ended(p, t);
}
