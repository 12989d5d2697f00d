/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* --sync pthread: who waits for whom is taken from the C library's calls, as Coz does, instead of
 * from the scheduler. Before a call that can wake another thread its caller pays all that it owes;
 * so the waker is level with G, and rule R3 needs to know nothing about it: who returns from
 * waiting takes over local = G, as far as it waited for that long. A wait that timed out ended by
 * itself: no credit.
 *
 * Probes sit on the shim's own places in its wrappers of the calls, reached only when there is
 * something to do. */
#pragma once

#include "bpf/latency.h"
#include "bpf/pay.h"
#include "bpf/slow.h"

/* A wait shorter than this is what the probes themselves cost. */
#define SYNC_SHORTEST_NS 20000

/* Books what in-scope threads ran on this CPU until now: at each switch, and at each tick. Without
 * switches a tick could only stand for the time since the last one, and on a CPU that idles without
 * a clock tick the kernel throttles those. */
static __always_inline void sync_ran(bool scope, u64 now)
{
	struct abi_totals *sum = totals_here();
	struct abi_cpu *c = cpu_here();

	if (!sum)
		return;
	if (scope && c->since) {
		ADD(c->exec, now - c->since);
		ADD(sum->run_ns, now - c->since);
	}
	c->since = now;
}

/* @tid, in scope, runs on this CPU; 0: none does. */
static __always_inline void sync_runs(u32 tid)
{
	cpu_here()->tid = tid;
}

/* Has the current thread, which is about to go on in user mode, pay all that it owes first. */
static __always_inline void sync_pay(struct task_struct *task, struct thread *t, u64 now)
{
	s64 owed = thread_owes(t);

	if (config.payer == ABI_PAY_NONE || owed < config.threshold_ns)
		return;
	if (config.has_task_work) {
		t->call.pays_once = 1;
		pay_ask(task, t, 0);
	} else if (!pay_unanswered(t) && pay_may_signal(task)) {
		pay_signal(task, t, owed, config.payer != ABI_PAY_SLEEP && pay_cpu_limited(), now);
	}
}

/* The current thread has come back from a call that blocks. */
static __always_inline void sync_end(struct task_struct *task, struct thread *t, bool credit)
{
	u64 epoch = *(volatile u64 *)&control.epoch, now = bpf_ktime_get_ns(),
	    from = t->wait.blocked_at;
	bool known = t->account.epoch == epoch;

	t->call.blocked = 0;
	t->wait.blocked_at = 0;
	if (from)
		latency_waited(t, ledger_waited(from, now, t->account.paid - t->call.paid));
	sync_runs(task->pid);
	if (!experiment_active(epoch))
		return;
	thread_enter(t, epoch);
	thread_fold(t, now);
	if (credit && from && known && !experiment_slows(epoch)) {
		s64 blocked = ledger_waited(from, now, t->account.paid - t->call.paid);

		if (blocked >= SYNC_SHORTEST_NS) {
			s64 g = global_now();

			if (thread_wake_edge(t, g, blocked, now))
				latency_woken(t, NULL, g, epoch, now);
		}
	}
	sync_pay(task, t, now);
}

/* A call begins. A thread that begins one is in no other: it may have left that by a jump. */
SEC("?uprobe")
int sync_enter(struct user_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 epoch = *(volatile u64 *)&control.epoch, call = bpf_get_attach_cookie(ctx), now;
	struct thread *t;

	if (!in_scope(task))
		return 0;
	t = thread_get(task);
	if (!t)
		return 0;
	now = bpf_ktime_get_ns();
	t->call.blocked = 0;
	t->wait.blocked_at = 0;
	if (experiment_active(epoch)) {
		thread_enter(t, epoch);
		thread_fold(t, now);
		if (call & ABI_CALL_WAKES)
			sync_pay(task, t, now);
	}
	if (call & ABI_CALL_BLOCKS) {
		t->call.paid = t->account.paid;
		t->wait.blocked_at = now;
		t->call.blocked = 1;
	}
	return 0;
}

/* The shim's place after a call, or where a thread begins; it knows whether the call ended as it
 * should. */
SEC("?uprobe")
int sync_back(struct user_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool credit = ctx->di & 1;
	struct thread *t;

	if (!in_scope(task))
		return 0;
	t = thread_get(task);
	if (t)
		sync_end(task, t, credit);
	return 0;
}
