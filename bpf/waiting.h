/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* R9: a wait as the target. A thread that was blocked for b and is woken from outside of the scope
 * earns s b. Where it waited is known when it is on its way back to user mode, with the stack that
 * it blocked with: there its call chain is walked, for a sample of the waits in proportion to their
 * length. Waiting for a CPU has no place, and is booked when the thread gets one. */
#pragma once

#include "bpf/sample.h"

#define TASK_UNINTERRUPTIBLE 2 /* include/linux/sched.h */
#define ETIMEDOUT 110
#define EAGAIN 11

/* A wait as long as this is a sample, and stands for itself; a shorter one is with that much less
 * chance, and stands for this. */
#define WAIT_SPACING_NS 1000000ULL
/* Of the time of an experiment, in 65536ths, by which the global delay may grow through waits:
 * where something outside waits for the program in turn, a wait that is made shorter would make the
 * next one longer, without end. */
#define WAIT_MOST_GROWTH 52429
#define WAIT_SLACK_NS 100000000LL

/* Does @prev, which leaves its CPU in @state, wait for a disk, as far as can be told? */
static __always_inline bool wait_is_disk(struct task_struct *prev, u32 state)
{
	return (config.waits || config.slopes) &&
	       (state & TASK_UNINTERRUPTIBLE || BPF_CORE_READ_BITFIELD(prev, in_iowait));
}

/* A thread in scope ended the wait: it is no target. */
static __always_inline void wait_forget(struct thread *w)
{
	w->wait.weight = w->wait.ended = 0;
}

/* What a wait of @waited stands for, 0 if it is no sample. *ret_n: for how many waits. */
static __always_inline u64 wait_weight(u64 waited, u32 *ret_n)
{
	*ret_n = 1;
	if (waited >= WAIT_SPACING_NS)
		return waited;
	if (((u64)bpf_get_prandom_u32() * WAIT_SPACING_NS) >> 32 >= waited)
		return 0;
	*ret_n = (u32)(WAIT_SPACING_NS / (waited + 1));
	return WAIT_SPACING_NS;
}

/* Something outside of the scope ended a wait of @w's since @blocked_at: @current, or an interrupt
 * that borrowed its context. A wake-up that does not bring the thread back to user mode is not the
 * end: what it goes on to wait is added, and the last one to wake it says for what that was. */
static __always_inline void wait_ended(struct thread *w, struct task_struct *current, bool by_task,
				       u64 blocked_at, u64 now)
{
	u64 weight;
	u32 n;

	if (!config.waits || control.resting)
		return;
	weight = wait_weight(now - blocked_at, &n);
	if (!weight)
		return;
	w->wait.weight += weight;
	w->wait.ended += n;
	if (w->wait.in_disk)
		w->wait.kind = ABI_WAIT_DISK;
	else if (by_task)
		w->wait.kind = current->flags & PF_KTHREAD ? ABI_WAIT_OTHER : ABI_WAIT_PROCESS;
	else
		w->wait.kind = ABI_WAIT_NETWORK;
}

/* What @p, woken by @current or an interrupt, has waited for, as far as can be told before it has
 * run. An interrupt that wakes a sleeper, or a waiter of a futex, is the timer's. */
static __always_inline u32 wait_kind(const struct thread *w, struct task_struct *p,
				     const struct task_struct *current, bool by_task)
{
	struct pt_regs *regs;

	if (w->wait.in_disk)
		return ABI_WAIT_DISK;
	if (by_task)
		return current->flags & PF_KTHREAD ? ABI_WAIT_OTHER : ABI_WAIT_PROCESS;
	regs = (struct pt_regs *)bpf_task_pt_regs(p);
	switch (regs->orig_ax) {
	case SYS_NANOSLEEP:
	case SYS_CLOCK_NANOSLEEP:
	case SYS_FUTEX:
	case SYS_RT_SIGTIMEDWAIT:
		return ABI_WAIT_TIMER;
	default:
		return ABI_WAIT_NETWORK;
	}
}

/* Of a thread that an interrupt woke, on its way back to user mode with @regs: did its wait time
 * out? A sleep always does; the other calls say so by their result. */
static __always_inline bool wait_timed_out(const struct pt_regs *regs)
{
	s64 call = (s64)BPF_CORE_READ(regs, orig_ax), result = (s64)BPF_CORE_READ(regs, ax);

	switch (call) {
	case SYS_NANOSLEEP:
	case SYS_CLOCK_NANOSLEEP:
		return true;
	case SYS_POLL:
	case SYS_SELECT:
	case SYS_EPOLL_WAIT:
	case SYS_PSELECT6:
	case SYS_PPOLL:
	case SYS_EPOLL_PWAIT:
	case SYS_EPOLL_PWAIT2:
		return result == 0;
	case SYS_RT_SIGTIMEDWAIT:
		return result == -EAGAIN;
	case SYS_FUTEX:
		return result == -ETIMEDOUT;
	default:
		return false;
	}
}

/* Counts a selected sample of @n waits that stands for @waited, of which @counts earns. Returns
 * what that is. */
static __always_inline s64 wait_selected(const struct abi_setup *setup, u64 waited, u64 counts,
					 u32 n, u64 now, struct abi_totals *sum)
{
	u64 since = now > setup->begun_ns ? now - setup->begun_ns : 0;
	s64 room = (s64)(since * WAIT_MOST_GROWTH >> 16) + WAIT_SLACK_NS -
		   (global_now() - setup->begun_g);
	s64 earned = ledger_earned(counts, setup->speedup_q16);

	ADD(sum->selected_samples, 1);
	ADD(sum->selected_ns, waited);
	ADD(sum->waits, n);
	if (earned <= room)
		return earned;
	count(COUNTER_wait_bounded);
	return room > 0 ? room : 0;
}

static __always_inline void wait_earned(struct task_struct *task, struct thread *t, u64 epoch,
					u64 now, struct abi_totals *sum)
{
	const struct abi_setup *setup = &control.setups[(epoch >> 1) & 1];
	u64 since = now > setup->begun_ns ? now - setup->begun_ns : 0,
	    waited = t->wait.weight < since ? t->wait.weight : since;
	s64 earned;

	/* thread_stretch made the wait longer, and that part of it counts too. */
	earned = wait_selected(setup, waited,
			       waited + (process_sleeps(task)
						 ? (u64)ledger_earned(waited, setup->stretch_q16)
						 : 0),
			       t->wait.ended, now, sum);
	if (experiment_slows(epoch)) {
		thread_slow(t, ledger_earned(t->wait.weight, setup->slow_q16), sum);
		t->pause.owes_sleep = 1;
	}
	if (!earned)
		return;
	/* R4's exception: the thread that it preempted owes for this very wait. */
	if (t->wait.preempted) {
		ADD(t->clock.local, -t->wait.cpu_edge);
		ADD(t->account.rq_credited, -t->wait.cpu_edge);
		ADD(sum->rq_credited, -t->wait.cpu_edge);
		t->wait.came = 1;
	}
	if (thread_selected(t, earned, sum))
		prompt_others(t, now, bpf_ktime_get_ns(), sum);
	/* What accrued while it was blocked is settled. */
	pay_awake(t);
}

/* Waits on a CPU that are at least so far apart are all looked at. A look takes some us. */
#define LOOK_NS 1000000ULL
#define LOOK_LEAST 4		  /* of 256: the chance, however fast they follow each other */
#define LOOK_LONG 64		  /* ... but a wait of so many times that is looked at */
#define LOOK_MOST_NS (1ULL << 38) /* that a wait can stand for: sums have 40 bits of ns */

/* S5: notes where the current thread, which blocks, waits from now on. If waits follow each other
 * fast, only some are looked at: the chance is in proportion to the time since the last wait on
 * this CPU, and a wait that is looked at stands for the others. The next wait of a thread whose
 * last one was long is always looked at: it would stand for too much. A global function: it is
 * verified once. */
__weak __noinline int wait_begins(struct wait_place *p, u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct abi_slope_cpu *c = &slope_cpus[cpu_index()];
	u64 since = now - c->blocked_at, chance;
	struct frame own = {};
	u32 how = CHAIN_UNCOUNTED;

	if (!p)
		return 0;
	c->blocked_at = now;
	since = since > p->waited / LOOK_LONG ? since : p->waited / LOOK_LONG;
	chance = since < LOOK_NS ? since * 256 / LOOK_NS : 256;
	chance = chance > LOOK_LEAST ? chance : LOOK_LEAST;
	p->stands = p->n = 0;
	if ((bpf_get_prandom_u32() & 255) >= chance)
		return 0;
	p->stands = (65536 + (u32)chance / 2) / (u32)chance;
	if (frame_of_thread(&own, false, task))
		how |= CHAIN_IN_CALL;
	if (config.inclusive) {
		p->n = chain_gather(own.ip, own.sp, own.bp, how, modules_of(task));
		chain_copy(p->at, p->n);
	} else {
		p->at[0] = chain_first_in_scope(own.ip, own.sp, own.bp, how, modules_of(task));
		p->n = p->at[0] != 0;
	}
	return 0;
}

/* S5: something outside of the scope ended @t's wait of that kind, which began at @from: it is the
 * time of its places, too. Where experiments cannot try waits, nobody else counts them. A global
 * function: it is verified once. */
__weak __noinline int wait_placed(struct thread *t, u32 kind, u64 from, u64 now)
{
	u64 followed = 0;

	if (!t)
		return 0;
	for (u32 i = 0; i < WAIT_PLACES; i++) {
		u64 code;
		u32 entry;

		if (i >= t->place.n)
			break;
		code = config.inclusive ? t->place.at[i] : ABI_CODE_WAITS(kind, t->place.at[i]);
		if (!config.inclusive && !config.waits)
			count_sample(code, (now - from) * t->place.stands / 256);
		entry = slope_entry(code);
		/* Where waits can be tried, wait_over calls one that times out [timer]. */
		if (entry == ABI_ENTRY_REST && kind == ABI_WAIT_NETWORK && config.waits)
			entry = slope_entry(ABI_CODE_WAITS(ABI_WAIT_TIMER, t->place.at[i]));
		followed |= 1ULL << index_below(entry, ABI_ENTRIES);
	}
	for (int i = 0; i < ABI_SINCES; i++) {
		u64 ns = slope_since(i, from, now) * t->place.stands / 256;

		if (!slope_number(i))
			continue;
		ns = ns < LOOK_MOST_NS ? ns : LOOK_MOST_NS;
		if (config.inclusive)
			ns = (ns << 16) / (slopes_control.scale_q16 | 1);
		for (u32 k = ABI_ENTRY_FIRST; k < ABI_ENTRIES; k++)
			if (followed >> k & 1)
				vector_add(&t->vectors.since[i], k, ns);
	}
	return 0;
}

/* In the thread's own context, on its way back to user mode. */
static int wait_over(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_get(task);
	u64 epoch = *(volatile u64 *)&control.epoch, now = bpf_ktime_get_ns(), code;
	struct abi_totals *sum = totals_here();
	struct frame own = {};
	u32 kind;
	bool in_call;

	if (!t || !sum)
		return 0;
	t->wait.unbooked = 0;
	kind = t->wait.kind;
	if (kind == ABI_WAIT_NETWORK && wait_timed_out((struct pt_regs *)bpf_task_pt_regs(task)))
		kind = ABI_WAIT_TIMER;
	in_call = frame_of_thread(&own, false, task);
	code = ABI_CODE_WAITS(
		kind, chain_first_in_scope(own.ip, own.sp, own.bp, in_call, modules_of(task)));
	count_sample(code, t->wait.weight);
	if (experiment_active(epoch)) {
		thread_enter(t, epoch);
		if (selected(&control.setups[(epoch >> 1) & 1], code))
			wait_earned(task, t, epoch, now, sum);
		pay_ask(task, t, now);
	}
	wait_forget(t);
	return 0;
}

/* @task, in scope, has got a CPU. Is the end of a wait to be booked when it returns to user mode?
 * Then it is asked to pay afterwards. */
static __always_inline bool wait_ask(struct task_struct *task, struct thread *t)
{
	struct work *w;
	u32 i;
	int err;

	if (!config.waits || !config.has_task_work || !t->wait.weight || !t->slot ||
	    BPF_CORE_READ(task, flags) & PF_EXITING)
		return false;
	i = 3 * (t->slot - 1) + 2;
	w = bpf_map_lookup_elem(&works, &i);
	err = w ? task_work_schedule(task, &w->tw, &works, wait_over) : -1;
	/* EBUSY: the callback of an earlier wait has not run yet. It will count this wait as well.
	 */
	if (err == -16)
		return true;
	if (err)
		count(COUNTER_work_failed);
	t->wait.unbooked = !err;
	return !err;
}

/* For how long threads have been stopped on @cpu. */
static __always_inline u64 stopped_on(u32 cpu)
{
	u32 key = 0;
	struct abi_totals *sum = config.waits & 1U << ABI_WAIT_CPU
					 ? bpf_map_lookup_percpu_elem(&totals, &key, cpu)
					 : NULL;

	return sum ? *(volatile u64 *)&sum->stopped_ns : 0;
}

/* Is waiting for a CPU what the experiment makes shorter? R4 does not hold then: were there more
 * CPUs, a thread would not wait for others to leave one. */
static __always_inline bool waits_for_cpu(u64 epoch)
{
	return config.waits & 1U << ABI_WAIT_CPU && experiment_active(epoch) &&
	       control.setups[(epoch >> 1) & 1].for_cpu;
}

/* @t has got a CPU after it waited for @whole, without the time of tasks out of scope. Of that, the
 * part for which a thread was stopped on the CPU is as good as a pause, and the rest earns. Debts
 * that this makes are paid at the next ticks: this is the middle of a switch. */
static __always_inline void wait_for_cpu(struct thread *t, u64 whole, u64 epoch, u64 now,
					 struct abi_totals *sum)
{
	const struct abi_setup *setup = &control.setups[(epoch >> 1) & 1];
	u64 waited = whole, since = now > setup->begun_ns ? now - setup->begun_ns : 0, weight, held,
	    counts;
	u32 n;

	if (!(config.waits & 1U << ABI_WAIT_CPU))
		return;
	weight = wait_weight(whole, &n);
	if (weight)
		count_sample(ABI_CODE_WAITS(ABI_WAIT_CPU, 0), weight);
	if (!waits_for_cpu(epoch))
		return;
	if (waited > since)
		waited = since;
	held = stopped_on(t->wait.runnable_cpu) - t->wait.stopped_mark;
	held = held < waited ? held : waited;
	(void)thread_cpu_credit(t, (s64)held);
	if (!weight || !waited)
		return;
	if (weight == whole)
		weight = waited; /* without what was before the experiment */
	counts = weight * (waited - held) / waited;
	(void)thread_selected(t, wait_selected(setup, weight, counts, n, now, sum), sum);
}
