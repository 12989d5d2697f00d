/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* R2: making a thread that owes stop. Nothing here runs inside a system call: a payment begins on
 * the way back to user mode. */
#pragma once

#include "bpf/thread.h"

/* Has the callback run when @task next returns to user mode; a task that runs elsewhere is kicked
 * there. Returns whether that was arranged now. */
static __always_inline bool pay_schedule(struct task_struct *task, struct thread *t, u64 asked_at,
					 task_work_callback callback)
{
	struct work *w;
	u32 i;
	int err;

	/* Who ends has given its slot back, and does not return to user mode. */
	if (!config.has_task_work || BPF_CORE_READ(task, flags) & PF_EXITING)
		return false;
	if (!t->slot) {
		count(COUNTER_no_slot);
		return false;
	}
	if (__sync_lock_test_and_set(&t->pause.pending, 1))
		return false;
	i = 3 * (t->slot - 1) + (t->pause.work & 1);
	w = bpf_map_lookup_elem(&works, &i);
	if (!w) {
		t->pause.pending = 0;
		return false;
	}
	t->pause.asked_at = asked_at;
	err = task_work_schedule(task, &w->tw, &works, callback);
	if (err) {
		t->pause.pending = 0;
		count(err == -16 /* EBUSY */ ? COUNTER_work_busy : COUNTER_work_failed);
	}
	return !err;
}

static __always_inline void pay_note_latency(struct thread *t, u64 now, struct abi_totals *sum)
{
	u64 asked = t->pause.asked_at;

	t->pause.asked_at = 0;
	if (asked && now > asked)
		ADD(sum->pause_latency[index_below(ledger_bucket(now - asked),
						   ABI_PAUSE_LATENCY_BUCKETS)],
		    1);
}

struct hold {
	struct thread *t;
	struct abi_totals *sum;
	u64 until, epoch;
};

/* The scheduler wants the CPU for another: TIF_NEED_RESCHED and TIF_NEED_RESCHED_LAZY, bits 3 and 4
 * of x86's thread_info.flags or 4 and 5 since they are numbered alike everywhere
 * (include/asm-generic/thread_info_tif.h). In the layout where one of the three bits is another
 * flag, it says that a debugger steps the thread, or that it is dying. */
#define RESCHED_BITS (7 << 3)

static long hold_step(u64 i, struct hold *h)
{
	struct thread *t = h->t;
	u64 now = bpf_ktime_get_ns(), from;

	if (!t || !h->sum)
		return 1;
	/* The switch that puts us back on a CPU moves hold_from: time off the CPU is not paid. */
	from = *(volatile u64 *)&t->pause.hold_from;
	if (now > from) {
		thread_paid(t, now - from, h->sum);
		t->pause.hold_from = now;
	}
	return thread_due(t) <= 0 || now >= h->until ||
	       *(volatile u64 *)&control.epoch != h->epoch ||
	       bpf_get_current_task_btf()->thread_info.flags & RESCHED_BITS;
}

static __always_inline void pay_hold(struct task_struct *task, struct thread *t, u64 epoch, u64 now,
				     struct abi_totals *sum)
{
	struct hold h = {.t = t, .sum = sum, .until = now + config.slice_ns, .epoch = epoch};

	/* What the payment costs the thread outside of this function was measured once; it is
	 * stopped time as well. Of the slices of one pause all but the first cost only what lies
	 * between them: no interrupt, no way back to user mode. */
	trace_stop(ABI_TRACE_HOLD, now, 0);
	thread_paid(t, ledger_min(control.costs.pay.ns, (s64)(now - t->pause.held_until)), sum);
	ADD(sum->payments, 1);
	t->pause.hold_from = now;
	bpf_loop(1 << 20, hold_step, &h, 0);
	t->pause.held_until = t->pause.hold_from;
	t->pause.hold_from = 0;
}

/* Would the current task's handler of the payment signal run at once, and do no harm? The program
 * may have put another one in the place of
 * @expected (0: any will do), or none: the signal would kill it. So could seccomp for the handler's
 * system calls. In another PID namespace than that whose @numbers the handler knows, a thread would
 * take another one's slot for its own. A global function, which the verifier looks at once, and not
 * on each of the ways that lead here. */
__weak __attribute__((noinline)) int pay_handled(u64 expected, u32 numbers)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const char *sighand = (const char *)BPF_CORE_READ(task, sighand);
	u64 handler = 0, at = (config.signo - 1) & 63,
	    blocked = BPF_CORE_READ(task, blocked.sig[0]) >> at & 1;
	u32 filtered = bpf_core_field_exists(task->seccomp.mode)
			       ? (u32)BPF_CORE_READ(task, seccomp.mode)
			       : 0,
	    tid;

	if (filtered || slot_namespace(task, &tid) != numbers) {
		count(filtered ? COUNTER_filtered : COUNTER_other_namespace);
		return 0;
	}
	sighand += bpf_core_field_offset(struct sighand_struct, action) +
		   at * bpf_core_type_size(struct k_sigaction);
	/* A failure leaves 0. */
	(void)bpf_probe_read_kernel(&handler, sizeof(handler),
				    sighand + bpf_core_field_offset(struct k_sigaction, sa));
	return !blocked & (handler > 1 /* neither SIG_DFL nor SIG_IGN */) &
	       (!expected | (handler == expected));
}

static __always_inline bool pay_may_signal(const struct task_struct *task)
{
	struct abi_proc *p;

	if (!config.many)
		return control.signals_ok && pay_handled(control.handler, 0);
	p = proc_of(task);
	return p && p->flags & ABI_PROC_SIGNALS && pay_handled(p->handler, p->numbers);
}

/* @task is held for what it should sleep. The controller may put a handler into such a process. */
static __always_inline void pay_note_held(const struct task_struct *task)
{
	struct abi_proc *p = config.many ? proc_of(task) : NULL;

	if (p && !(p->flags & ABI_PROC_HELD))
		__sync_fetch_and_or(&p->flags, ABI_PROC_HELD);
}

/* What the library is to pay of @owed; negative: asleep. */
static __always_inline s64 pay_amount(const struct thread *t, s64 owed)
{
	/* No branch: the verifier would follow both ways from here on. */
	return owed * (1 - 2 * (s64)(t->pause.sleeps & 1));
}

/* By how many ns CLOCK_MONOTONIC of @task's time namespace is ahead of bpf_ktime_get_ns. */
static __always_inline s64 pay_clock_ahead(const struct task_struct *task)
{
	const struct time_namespace *ns = BPF_CORE_READ(task, nsproxy, time_ns);

	return BPF_CORE_READ(ns, offsets.monotonic.tv_sec) * 1000000000LL +
	       BPF_CORE_READ(ns, offsets.monotonic.tv_nsec);
}

/* Raises the payment signal for the current thread, which is about to return to user mode. @asleep:
 * it must sleep what it owes (R6). */
static __always_inline void pay_signal(struct task_struct *task, struct thread *t, s64 owed,
				       bool asleep, u64 now)
{
	struct shim_slot *s = thread_slot(t);
	long err;

	if (!s) {
		count(COUNTER_no_slot);
		return;
	}
	t->pause.sleeps = asleep | (config.payer == ABI_PAY_SLEEP);
	s->owed_ns = pay_amount(t, ledger_min(owed, (s64)config.max_pay_ns));
	s->raised_at = now + pay_clock_ahead(task);
	ADD(s->asked, 1);
	t->pause.signalled_at = now;
	t->pause.paying_off = t->pause.paying_waited = 0;
	if (config.has_send_signal_task)
		err = bpf_send_signal_task(task, config.signo, PIDTYPE_PID, 0);
	else
		err = bpf_send_signal_thread(config.signo);
	if (err)
		count(COUNTER_signal_failed);
}

/* Was a payment signal raised that the shim has not answered? */
static __always_inline bool pay_unanswered(const struct thread *t)
{
	struct shim_slot *s = thread_slot(t);

	return s && *(volatile unsigned int *)&s->payments != s->asked;
}

/* A thread in the middle of a payment by the shim: all that it owes since this part of the payment
 * began. */
static __always_inline void pay_extend(struct thread *t)
{
	struct shim_slot *s = thread_slot(t);
	s64 owed;

	thread_fold(t, bpf_ktime_get_ns());
	owed = thread_due(t);
	if (s && owed > 0)
		s->owed_ns = pay_amount(t, owed);
	if (config.payer != ABI_PAY_SLEEP && t->pause.sleeps && !sync_by_calls())
		t->pause.owes_sleep =
			owed > (s64)config.max_pay_ns; /* the rest is slept, too: pay_asleep */
}

/* Has the current thread's process a limit of the CPU time that it may use? Held or spun, a pause
 * would use it up, and SIGXCPU end the program: it must be slept. A global function, as pay_handled
 * is. */
__weak __attribute__((noinline)) int pay_cpu_limited(void)
{
	const struct signal_struct *signal = BPF_CORE_READ(bpf_get_current_task_btf(), signal);

	/* ~0: no limit */
	return ~(BPF_CORE_READ(signal, rlim[RLIMIT_CPU].rlim_cur) &
		 BPF_CORE_READ(signal, rlim[RLIMIT_RTTIME].rlim_cur));
}

#define PAY_BLOCKED_NS                                                            \
	20000000ULL /* a signal unanswered for this long is blocked by the thread \
		     */

#define PAY_AWAY_NS 2000000

/* R6 under hold and spin: what accrued while the thread slept until something outside woke it must
 * be slept, too. In virtual time it is not awake yet: held, it would keep a CPU from threads that
 * run, for as long as the debt is (100 ms for a timer thread of a 200 ms period). */
static __always_inline bool pay_asleep(struct thread *t, s64 owed)
{
	if (pay_cpu_limited())
		return true;
	/* Nobody says who woke it. But a thread that runs pays within a tick or two: one that owes
	 * more was away. */
	if (sync_by_calls())
		return owed >= PAY_AWAY_NS;
	if (!t->pause.owes_sleep)
		return false;
	t->pause.owes_sleep =
		owed > (s64)config.max_pay_ns; /* more than one part: the rest is slept, too */
	return owed >= THREAD_LEAST_SLEEP_NS;
}

/* @t has got a CPU. If it owes next to nothing from its sleep it is awake, and what comes now is
 * owed for running: slept off, that would be a pause of this thread but not of its CPU, where
 * others run meanwhile. */
static __always_inline void pay_awake(struct thread *t)
{
	if (t->pause.owes_sleep && thread_owes(t) < THREAD_LEAST_SLEEP_NS)
		t->pause.owes_sleep = 0;
}

/* --sync pthread: while it waits for another thread nobody pays, also when it runs on its way out
 * of the kernel: what accrued may be credited as soon as the call returns. A call that wakes others
 * and then waits pays once, first. */
static __always_inline bool pay_waits(const struct thread *t)
{
	return sync_by_calls() && t->call.blocked && !t->call.pays_once;
}

/* Was a payment signal raised a moment ago? The shim pays then, or is about to. */
static __always_inline bool pay_signalled(struct thread *t, u64 now)
{
	return pay_unanswered(t) &&
	       (now - t->pause.signalled_at < PAY_BLOCKED_NS || thread_pays_in_shim(t));
}

/* In the debtor's context, on its way back to user mode. Returns whether delay is left after a
 * whole slice. It must not be inlined: where the verifier does not see that a callback is
 * asynchronous, it adds up the stacks of the chain below, and each would contain a copy of this. */
static __noinline bool pay_now(struct task_struct *task, struct thread *t)
{
	struct abi_totals *sum = totals_here();
	u64 epoch = *(volatile u64 *)&control.epoch, now;
	s64 owed;

	/* A tick can ask before the thread's wait is booked, by which it may owe nothing. */
	bool waits = pay_waits(t) || t->wait.unbooked, asleep;

	t->pause.work++;
	t->pause.pending = 0;
	t->call.pays_once = 0;
	if (waits || !sum || !experiment_active(epoch) || t->account.epoch != epoch)
		return false;
	now = bpf_ktime_get_ns();
	thread_fold(t, now);
	owed = thread_due(t);
	if (owed <= 0)
		return false;
	/* A thread that pays with the shim must not be held as well, whatever the delay mode: what
	 * the sleep pays is booked when it is over. */
	if (pay_signalled(t, now))
		return false;
	asleep = config.payer != ABI_PAY_SLEEP && pay_asleep(t, owed);
	if ((config.payer != ABI_PAY_HOLD || asleep) && pay_may_signal(task)) {
		if (!pay_unanswered(t)) {
			pay_note_latency(t, now, sum);
			pay_signal(task, t, owed, asleep, now);
			return false;
		}
		count(COUNTER_signal_blocked);
	}
	/* Also where a signal would not be answered, or would kill for want of a handler. */
	pay_note_latency(t, now, sum);
	if (asleep) {
		ADD(sum->held_asleep, t->pause.owes_sleep ? config.slice_ns : (u64)owed);
		pay_note_held(task);
		if (pay_cpu_limited()) {
			count(COUNTER_cpu_limited);
			return false;
		}
	}
	pay_hold(task, t, epoch, now, sum);
	return thread_due(t) > config.threshold_ns;
}

/* A payment is held in slices, between which the scheduler can run others: each callback has the
 * next one go on. They end after three, since the verifier follows a chain of callbacks as calls
 * where it cannot tell that they are asynchronous, and one that named itself would be endless. A
 * selected sample during the last slice asks again, to go on right after it; else the next tick
 * does. */
#define PAY_CALLBACK(name, go_on)                                      \
	static int name(struct bpf_map *map, void *key, void *value)   \
	{                                                              \
		struct task_struct *task = bpf_get_current_task_btf(); \
		struct thread *t = thread_get(task);                   \
                                                                       \
		if (t && pay_now(task, t))                             \
			go_on;                                         \
		return 0;                                              \
	}

static int pay_third(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_get(task);

	if (!t)
		return 0;
	t->pause.last_slice = 1;
	pay_now(task, t);
	t->pause.last_slice = 0;
	return 0;
}

PAY_CALLBACK(pay_second, pay_schedule(task, t, 0, pay_third))
PAY_CALLBACK(pay_first, pay_schedule(task, t, 0, pay_second))

/* @task, in scope, runs or is about to run on a CPU. Asks it to pay if it owes enough; returns
 * whether it was asked now. */
static __always_inline bool pay_ask(struct task_struct *task, struct thread *t, u64 asked_at)
{
	if (config.payer == ABI_PAY_NONE || t->polls ||
	    (t->pause.hold_from && !t->pause.last_slice) || pay_waits(t) ||
	    thread_due(t) < config.threshold_ns)
		return false;
	/* In the middle of a payment by the shim: what was added to the debt since is paid in the
	 * same go. */
	if (thread_pays_in_shim(t)) {
		pay_extend(t);
		return false;
	}
	expected_allow(t, bpf_ktime_get_ns(),
		       control.setups[(t->account.epoch >> 1) & 1].speedup_q16);
	if (thread_due(t) < config.threshold_ns)
		return false;
	return pay_schedule(task, t, asked_at, pay_first);
}
