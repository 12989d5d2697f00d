/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The only writers of G and of a thread's local. */
#pragma once

#include "bpf/maps.h"
#include "bpf/expected.h"
#include "bpf/ledger.h"
#include "bpf/slots.h"
#include "bpf/trace.h"

static __always_inline s64 global_now(void)
{
	return *(volatile s64 *)&global.g;
}

/* The books of @task, made on first sight. */
static __always_inline struct thread *thread_get(struct task_struct *task)
{
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);

	if (t)
		return t;
	t = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		count(COUNTER_no_thread_state);
	else
		slot_claim(t, task);
	return t;
}

/* NULL: the thread has no slot (its index is 0). */
static __always_inline struct shim_slot *thread_slot(const struct thread *t)
{
	u32 i = t->slot - 1;

	return bpf_map_lookup_elem(&slots, &i);
}

/* Tells the shim where @t stands, so that it need not ask before a call that wakes others. */
static __always_inline void thread_publish(const struct thread *t)
{
	struct shim_slot *s = sync_by_calls() ? thread_slot(t) : NULL;

	if (s)
		*(volatile long long *)&s->level = t->clock.local - (s64)t->pause.paid_seen;
}

/* ... and where everybody should be. Another CPU may raise G meanwhile and be faster: the last one
 * to look writes the highest. */
static __always_inline void global_publish(void)
{
	u32 i = SHIM_SLOTS;
	struct shim_sync *h;
	s64 g = 0;

	if (!sync_by_calls())
		return;
	h = bpf_map_lookup_elem(&slots, &i);
	if (!h)
		return;
	for (int n = 0; n < 4 && g != global_now(); n++) {
		g = global_now();
		*(volatile long long *)&h->g = g;
	}
}

/* What a thread has earned that is not booked is not known when it is seen first, nor is it ever
 * booked after its end. */
static __always_inline void unbooked_begin(struct thread *t, u64 epoch)
{
	u64 quantum = control.setups[(epoch >> 1) & 1].quantum_ns;

	t->sample.unbooked_from = quantum ? bpf_get_prandom_u32() % quantum : 0;
	t->sample.unbooked = (s64)t->sample.unbooked_from;
}

/* R7: a thread that is seen for the first time in this experiment starts level. The one that
 * exchanges the epoch does it. */
static __always_inline void thread_enter(struct thread *t, u64 epoch)
{
	u64 seen = t->account.epoch;
	struct shim_slot *s;
	s64 g, gap;

	if (seen == epoch || __sync_val_compare_and_swap(&t->account.epoch, seen, epoch) != seen)
		return;
	s = thread_slot(t);
	if (s)
		slot_seen(t, s);
	g = global_now();
	gap = g - t->clock.local;
	t->account.start = g;
	t->account.earned = t->account.paid = t->account.credited = t->account.rq_credited = 0;
	t->clock.unused_wait = 0;
	unbooked_begin(t, epoch);
	t->clock.seen = t->clock.earned = t->sample.children.seen = t->sample.children.earned = 0;
	t->clock.ahead = t->clock.deferrable = t->wait.stretch = 0;
	/* What it executed before is none of this experiment. */
	t->smooth = (struct smooth){.visited = 1};
	t->clock.local = g;
	thread_publish(t);
	if (gap > 0 && seen) {
		struct abi_totals *sum = totals_here();

		if (sum)
			ADD(sum->forgiven, gap);
	}
}

/* Books what @t has run since the last time. It must be running: running_at is not 0. */
static __always_inline void thread_ran(struct thread *t, u64 now, struct abi_totals *sum)
{
	ADD(sum->run_ns, now - t->wait.running_at);
	ADD(t->clock.exec, now - t->wait.running_at);
	if (n_latencies)
		ADD(t->smooth.exec, now - t->wait.running_at);
}

/* @t, this CPU's thread, was stopped for @ns while it was on the CPU: that was not execution. */
static __always_inline void thread_stopped(struct thread *t, s64 ns)
{
	struct abi_totals *sum = totals_here();
	struct abi_cpu *c = cpu_here();

	if (!sum || ns <= 0)
		return;
	ADD(sum->stopped_ns, ns);
	if (sync_by_calls())
		ADD(c->exec, -ns);
	else
		ADD(t->clock.exec, -ns);
	if (n_latencies)
		ADD(t->smooth.exec, -ns);
}

/* Of a payment of @d by the shim: what it had the CPU for. The scheduler says so; where it is not
 * asked, the program does. */
static __always_inline s64 thread_spun(struct thread *t, const struct shim_slot *s, s64 d)
{
	u64 total = *(volatile unsigned long long *)&s->spun_ns;
	s64 spun = (s64)(total - t->pause.spun_seen);

	t->pause.spun_seen = total;
	return spun < 0 || spun > d ? d : spun;
}

/* What a payment by the shim stopped its thread for beside what the shim saw of it. */
static __always_inline s64 thread_unseen(struct thread *t, const struct shim_slot *s)
{
	u64 total = *(volatile unsigned long long *)&s->delivery_ns;
	u64 delivery = total - t->pause.delivery_seen;

	t->pause.delivery_seen = total;
	/* Answered late, or the program has written there. */
	if (!delivery || delivery > SHIM_ANSWER_NS)
		return control.costs.pay.ns;
	return (s64)ledger_unseen((const struct abi_unseen *)&control.costs.pay, delivery);
}

/* R4 for a thread that slept a payment off and then had to wait for a CPU: the wait counts as pause
 * up to G. Beyond that nobody owed it, and a thread ahead of G would take G along with its next
 * selected sample, for all to pay. Of @paid, what is too much. */
static __always_inline s64 thread_overwaited(struct thread *t, s64 paid)
{
	s64 over = t->clock.local + paid - global_now(), waited = (s64)t->pause.paying_waited;

	t->pause.paying_waited = 0;
	if (!config.rq_edges || over <= 0)
		return 0;
	return ledger_min(over, waited);
}

/* Takes in what the shim reports as paid since the last time. The program can write the slot: more
 * than the time since the signal was raised, or backwards, is cut. */
static __always_inline void thread_fold(struct thread *t, u64 now)
{
	struct shim_slot *s;
	struct abi_totals *sum;
	u64 total, seen;
	s64 d, unseen;

	s = t->pause.signalled_at ? thread_slot(t) : NULL;
	if (!s)
		return;
	total = *(volatile unsigned long long *)&s->paid_ns;
	seen = t->pause.paid_seen;
	if (total == seen || __sync_val_compare_and_swap(&t->pause.paid_seen, seen, total) != seen)
		return;
	d = (s64)(total - seen);
	if (d < 0 || (u64)d > now - t->pause.signalled_at) {
		count(COUNTER_paid_clamped);
		d = d < 0 ? 0 : (s64)(now - t->pause.signalled_at);
	}
	/* Of a long payment every part is booked when it is over, and what it cost to begin and to
	 * end it once. */
	unseen = *(volatile unsigned int *)&s->payments == s->asked ? thread_unseen(t, s) : 0;
	thread_stopped(t, (sync_by_calls() ? thread_spun(t, s, d) : d - (s64)t->pause.paying_off) +
				  unseen);
	trace_stop(ABI_TRACE_SHIM, t->pause.signalled_at, 0);
	t->pause.paying_off = 0;
	d += unseen;
	d -= thread_overwaited(t, d);
	ADD(t->clock.local, d);
	ADD(t->account.paid, d);
	thread_publish(t);
	sum = totals_here();
	if (sum) {
		s64 over = t->clock.local - global_now();

		ADD(sum->paid, d);
		ADD(sum->payments, 1);
		if (over > 0)
			ADD(sum->oversleep, over);
	}
}

/* Is the thread in the middle of a payment by the shim? */
static __always_inline bool thread_pays_in_shim(const struct thread *t)
{
	struct shim_slot *s = t->pause.signalled_at ? thread_slot(t) : NULL;

	return s && *(volatile unsigned int *)&s->paying;
}

static __always_inline s64 thread_owes(const struct thread *t)
{
	return global_now() - *(volatile s64 *)&t->clock.local;
}

/* What it must pay now. */
static __always_inline s64 thread_due(const struct thread *t)
{
	return thread_owes(t) - *(volatile s64 *)&t->clock.deferrable;
}

/* R1, for a selected sample that took its thread to @local. Returns whether G grew. */
static __always_inline bool ledger_raise(s64 local, s64 earned, s64 by_edges)
{
	for (int i = 0; i < 16; i++) {
		s64 g = global_now(), by = ledger_growth(g, local, earned, by_edges);

		if (by <= 0)
			return false;
		if (global.most && by > global.most - g) {
			global.bounded = *(volatile u64 *)&control.epoch;
			by = global.most - g;
			if (by <= 0)
				return false;
		}
		if (__sync_val_compare_and_swap(&global.g, g, g + by) == g) {
			global_publish();
			return true;
		}
	}
	count(COUNTER_raise_contended);
	return false;
}

static __always_inline bool thread_selected(struct thread *t, s64 earned, struct abi_totals *sum)
{
	s64 local = ADD(t->clock.local, earned) + earned;

	ADD(t->account.earned, earned);
	thread_publish(t);
	ADD(sum->hits, 1);
	ADD(sum->hit_ns, earned);
	return ledger_raise(local, earned, t->clock.ahead);
}

/* R2, for time that the kernel measured itself. */
static __always_inline void thread_paid(struct thread *t, s64 ns, struct abi_totals *sum)
{
	thread_stopped(t, ns);
	ADD(t->clock.local, ns);
	ADD(t->account.paid, ns);
	thread_publish(t);
	ADD(sum->paid, ns);
}

/* Of the @change that an edge makes, what does not take @t too far beyond G. --sync pthread does
 * not know how far a thread is. */
static __always_inline s64 clamp_ahead(struct thread *t, s64 change)
{
	return sync_by_calls() ? change : clock_clamp_ahead(&t->clock, change, global_now());
}

/* Has @task's process a handler of the payment signal, as far as is known? */
static __always_inline bool process_sleeps(const struct task_struct *task)
{
	struct abi_proc *p;

	if (!config.many)
		return control.signals_ok;
	p = proc_of(task);
	return p && p->flags & ABI_PROC_SIGNALS;
}

#define THREAD_LEAST_SLEEP_NS 200000 /* shorter pauses are not worth a signal and a sleep */

/* What @w waited for changes its clock by @change, as far as that takes it not too far beyond G. */
static __always_inline void thread_credit(struct thread *w, s64 change)
{
	struct abi_totals *sum = totals_here();

	change = clamp_ahead(w, change);
	ADD(w->clock.local, change);
	ADD(w->account.credited, change);
	thread_publish(w);
	if (sum)
		ADD(sum->credited, change);
}

/* R6, of @w, which is not paused: something outside woke it at @now, and it was blocked since
 * @blocked_at. Samples slow down what executes, but not what @w waited for (a process out of scope:
 * less). So @w owes the same share of its wait. */
static __always_inline void thread_stretch(struct thread *w, const struct task_struct *p, u64 epoch,
					   u64 blocked_at, u64 now)
{
	const struct abi_setup *setup = &control.setups[(epoch >> 1) & 1];
	u64 from = blocked_at > setup->begun_ns ? blocked_at : setup->begun_ns;

	/* Held for it, the thread would keep a CPU from those that run. */
	if (!setup->stretch_q16 || now <= from || !process_sleeps(p))
		return;
	thread_enter(w, epoch);
	w->wait.stretch += ledger_earned(now - from, setup->stretch_q16);
	if (w->wait.stretch < THREAD_LEAST_SLEEP_NS)
		return;
	thread_credit(w, -w->wait.stretch);
	w->wait.stretch = 0;
}

/* R3. @local_k is that of who wakes @w, with what it is expected to have earned. Returns whether @w
 * goes on by that clock. */
static __always_inline bool thread_wake_edge(struct thread *w, s64 local_k, u64 blocked, u64 now)
{
	struct abi_totals *sum = totals_here();
	int level;
	s64 change = clock_wake(&w->clock, expected_local(w, 0), local_k, blocked, now,
				config.unused_wait_ns, config.unused_wait_age_ns, &level);

	thread_credit(w, change);
	if (sum)
		ADD(sum->wakes, 1);
	return level;
}

/* What @w waited for a CPU changes its clock by @change. Returns that, as far as it takes @w not
 * too far beyond G. */
static __always_inline s64 thread_cpu_credit(struct thread *w, s64 change)
{
	struct abi_totals *sum = totals_here();

	change = clamp_ahead(w, change);
	ADD(w->clock.local, change);
	ADD(w->account.rq_credited, change);
	if (sum)
		ADD(sum->rq_credited, change);
	return change;
}

/* R4. @external: who left the CPU is not in scope. Returns the change. */
static __always_inline s64 thread_cpu_edge(struct thread *w, s64 cpu_local, bool external,
					   u64 waited)
{
	s64 change;

	return clock_cpu_edge(expected_local(w, 0), cpu_local, waited, external, global_now(),
			      &change)
		       ? thread_cpu_credit(w, change)
		       : 0;
}

/* R5. */
static __always_inline void thread_birth(struct thread *child, struct thread *parent, u64 epoch,
					 u64 now)
{
	child->account.epoch = epoch;
	unbooked_begin(child, epoch);
	child->clock.local = parent->clock.local;
	child->clock.ahead = parent->clock.ahead;
	child->clock.local +=
		clamp_ahead(child, expected_local(parent, now) - expected_local(child, 0));
	child->account.start = child->clock.local;
}
