/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The scheduler's events: who waits for whom (R3), for a CPU (R4), who is born (R5) and who runs
 * where. */
#pragma once

#include "bpf/latency.h"
#include "bpf/pay.h"
#include "bpf/idle.h"
#include "bpf/slopes.h"
#include "bpf/slow.h"
#include "bpf/lifecycle.h"
#include "bpf/context.h"
#include "bpf/delivery.h"
#include "bpf/waiting.h"
#include "bpf/workers.h"

/* A CPU's clock, of R4, after @ran of a task that has none. */
static __always_inline s64 cpu_clock(const struct abi_cpu *c, u64 ran, u64 epoch)
{
	s64 g = global_now();

	return c->epoch == epoch ? ledger_cpu_advance(c->local, ran, g) : g;
}

/* R4's clock of a CPU when the task on it leaves. */
static __always_inline void cpu_advance(struct abi_cpu *c, bool idle, u64 epoch, u64 now)
{
	u64 ran = c->since ? now - c->since : 0; /* the first switch that we see */

	if (!idle)
		c->outside_ns += ran;
	c->local = idle ? global_now() : cpu_clock(c, ran, epoch);
	c->epoch = epoch;
}

/* Does @t only come by to go on sleeping off what it owes (pay_asleep)? In virtual time it is not
 * awake yet, so it has not had the CPU. Were the CPU's clock to be its own, the thread that gets
 * the CPU next would have to stay and pay the sleeper's debt as well. */
static __always_inline bool is_transient_wake(const struct thread *t, bool pays_in_shim)
{
	return config.payer != ABI_PAY_SLEEP &&
	       (t->pause.owes_sleep || (pays_in_shim && t->pause.sleeps));
}

#define TASK_DEAD 0x80 /* include/linux/sched.h: its last switch */

static __always_inline void leave(struct task_struct *prev, struct abi_cpu *c, bool runnable,
				  bool disk, bool dead, u64 epoch, u64 now)
{
	struct abi_totals *sum = totals_here();
	struct thread *t = thread_get(prev);
	bool pays_in_shim, passed;
	s64 local, before;

	c->tid = 0;
	c->scope_left = now;
	c->passed = 0;
	if (!t || !sum)
		return;
	if (experiment_active(epoch)) {
		thread_enter(t, epoch);
		thread_fold(t, now);
	}
	if (t->wait.running_at)
		thread_ran(t, now, sum);
	t->wait.running_at = 0;
	t->wait.left_at = now;
	t->wait.taken = 0;
	if (runnable) {
		t->wait.runnable_at = now;
		t->wait.blocked_at = 0;
		t->wait.outside_mark = c->outside_ns;
		t->wait.stopped_mark = sum->stopped_ns;
		t->wait.runnable_cpu = bpf_get_smp_processor_id();
		if (t->pause.hold_from)
			count(COUNTER_hold_preempted);
	} else {
		t->place.n = 0;
		if (slope_window() && !dead)
			wait_begins(&t->place, now);
		t->wait.in_disk = disk;
		t->wait.runnable_at = 0;
		/* Last: from here on a waker can come, on another CPU. */
		*(volatile u64 *)&t->wait.blocked_at = now;
	}
	pays_in_shim = thread_pays_in_shim(t);
	local = expected_local(t, 0);
	before = cpu_clock(c, now - c->since, epoch);
	passed = is_transient_wake(t, pays_in_shim) |
		 (t->wait.last_wake_external & (local < before)) | t->polls;
	c->passed = passed;
	/* The clock of the thread that it took the CPU from is there still. */
	if (!t->wait.came)
		c->local = passed ? before : local;
	t->wait.came = 0;
	slope_leave(&t->vectors, t->wait.from_outside, now);
	if (!runnable && !pays_in_shim)
		t->wait.last_wake_external = 0;
	if (!runnable)
		t->wait.from_outside = 0;
	c->epoch = epoch;
	if (dead) {
		ADD(c->exec, t->clock.exec);
		t->clock.exec = 0;
	}
}

/* How long @t waited behind tasks out of scope, of its @waited. Exact on the CPU where it became
 * runnable; elsewhere, if such a task just left, what ran there since the scope did. */
static __always_inline u64 outside_wait(const struct thread *t, const struct abi_cpu *c, u32 me,
					bool behind_task, u64 waited, u64 now)
{
	u64 f = 0;

	if (t->wait.runnable_cpu == me)
		f = c->outside_ns - t->wait.outside_mark;
	else if (behind_task)
		f = now - c->scope_left;
	return f < waited ? f : waited;
}

/* R4's clock of the CPU that @t waited for. If no thread in scope was on it meanwhile, @t waited
 * for none: the CPU is level, like an idle one. */
static __always_inline s64 cpu_local(const struct abi_cpu *c, const struct thread *t)
{
	return c->scope_left > t->wait.runnable_at ? c->local : global_now();
}

#define SHORT_WAIT_NS                                                               \
	100000 /* much less than any distance between samples: not worth finer ones \
		*/

/* S3, of @t, which waited for CPU @me since it became runnable, @beside of it behind tasks out of
 * scope. Who takes the CPU from another thread at once has not waited for it, but for its own
 * wake-up. A global function: it is verified once. */
__weak __noinline int slope_gets_cpu(struct thread *t, u32 me, u32 preempts, u64 beside, u64 now)
{
	const struct abi_cpu *c = &cpus[index_below(me, ABI_MAX_CPUS)];
	u64 from, behind;

	if (!t)
		return 0;
	from = t->wait.runnable_at;
	behind = now - from - beside;
	if (c->scope_left > from && !(preempts && now - from < SHORT_WAIT_NS)) {
		if (slope_behind(&t->vectors, t->wait.taken ? &t->taken_by : NULL, from, now)) {
			u64 since = now - slope_cpus[cpu_index()].left_at;

			/* What came before, that thread has. */
			beside = beside < since ? beside : since;
		}
		/* Is it where the CPU's queue is? Not by a wait that carries little. */
		if ((now - from) * VECTOR_REACH >= slope_since(ABI_SINCE_WINDOW, 0, now))
			t->wait.from_outside = 0;
		slope_waited(&t->vectors, ABI_ENTRY_CPU, now - behind, now);
	}
	if (beside)
		slope_waited(&t->vectors, ABI_ENTRY_BESIDE, now - beside, now);
	return 0;
}

/* S3: @t has taken the CPU from @prev, which would have gone on. What comes from outside does not
 * come as late as threads in scope are. */
static __always_inline void slope_takes_cpu(struct thread *t, struct task_struct *prev)
{
	struct thread *w = bpf_task_storage_get(&threads, prev, 0, 0);

	if (!w || t->wait.from_outside)
		return;
	slope_take(&w->taken_by, &t->vectors);
	w->wait.taken = 1;
}

static __always_inline void enter(struct task_struct *next, struct task_struct *prev,
				  struct abi_cpu *c, u32 me, bool preempts, bool outside,
				  bool behind_task, u64 epoch, u64 now)
{
	struct abi_totals *sum = totals_here();
	struct thread *t = thread_get(next);
	u64 beside = 0;
	bool paying;

	c->tid = next->pid;
	idle_ends(me);
	if (!t || !sum)
		return;
	/* Woken before it was off the CPU: blocked for no time. */
	if (t->wait.blocked_at) {
		t->wait.runnable_at = t->wait.blocked_at;
		t->wait.blocked_at = 0;
	}
	/* It was not seen to leave: that was after its last tick. */
	if (t->wait.running_at && !t->wait.runnable_at) {
		t->wait.runnable_at = t->wait.running_at;
		t->wait.outside_mark = c->outside_ns;
		t->wait.stopped_mark = sum->stopped_ns;
		t->wait.runnable_cpu = me;
	}
	t->wait.running_at = now;
	if (t->pause.signalled_at && t->wait.left_at)
		t->pause.paying_off += now - t->wait.left_at;
	if (t->pause.hold_from)
		t->pause.hold_from = now;
	paying = t->wait.runnable_at && thread_pays_in_shim(t);
	if (t->wait.runnable_at) {
		u64 waited = now - t->wait.runnable_at;

		if (paying)
			t->pause.paying_waited += waited;
		ADD(sum->wait_ns, waited);
		beside = outside_wait(t, c, me, behind_task, waited, now);
		ADD(sum->outside_wait_ns, beside);
		/* It waited for one in scope that left just now. */
		if (c->scope_left == now && waited > SHORT_WAIT_NS && experiment_active(epoch))
			ADD(sum->cpu_waits, 1);
	}
	t->wait.last_wake_external |= t->pause.owes_sleep;
	t->wait.preempted = preempts;
	t->wait.cpu_edge = 0;
	if (experiment_active(epoch)) {
		thread_enter(t, epoch);
		/* In the middle of a payment by the shim, the wait is part of what the shim reports
		 * as paid: thread_overwaited. */
		if (config.rq_edges && t->wait.runnable_at && !paying && !experiment_slows(epoch) &&
		    !waits_for_cpu(epoch))
			t->wait.cpu_edge =
				thread_cpu_edge(t, cpu_local(c, t),
						outside || *(volatile unsigned short *)&c->passed,
						now - t->wait.runnable_at);
		pay_awake(t);
	}
	if (slope_window() && outside && !behind_task)
		slope_passed_anew(&slope_cpus[me], now); /* it was idle */
	if (slope_window() && t->wait.runnable_at && !paying)
		slope_gets_cpu(t, me, preempts, beside, now);
	if (slope_window() && preempts)
		slope_takes_cpu(t, prev);
	/* If nobody had the CPU, it was waking up. */
	if (t->wait.runnable_at && !paying &&
	    !(outside && !behind_task && t->wait.runnable_cpu == me))
		wait_for_cpu(t, now - t->wait.runnable_at - beside, epoch, now, sum);
	/* What it earned by its wait comes before what it owes. */
	if (!wait_ask(next, t) && experiment_active(epoch))
		pay_ask(next, t, now);
	t->wait.runnable_at = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(edge_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u32 me = cpu_index();
	u64 now = bpf_ktime_get_ns(), epoch = *(volatile u64 *)&control.epoch;
	bool scope = in_scope(prev), runnable = preempt || prev_state == 0;
	struct abi_cpu *c = &cpus[me];

	if (scope)
		leave(prev, c, runnable, wait_is_disk(prev, prev_state), prev_state & TASK_DEAD,
		      epoch, now);
	else
		cpu_advance(c, prev->pid == 0, epoch, now);
	if (config.many)
		c->tid = 0; /* one that left the scope while it ran */
	if (loopback[me].sender)
		loopback[me].sender = 0;
	c->since = now;
	c->idle = next->pid == 0;
	if (prev_state & TASK_DEAD)
		lifecycle_gone(prev);
	if (in_scope(next))
		enter(next, prev, c, me, scope && runnable, !scope, !scope && prev->pid != 0, epoch,
		      now);
	return 0;
}

/* S2: @current wakes @w, which was blocked since @from, for itself or for a thread that had a
 * worker do it. */
static __always_inline void slope_woken(struct thread *w, const struct on_behalf *acts_for,
					struct task_struct *current, u64 from, u64 now)
{
	struct thread *k = acts_for ? NULL : thread_get(current);
	u64 item = acts_for ? acts_for->item : 0;
	struct abi_vectors *v = item ? bpf_map_lookup_elem(&queued_vectors, &item) : NULL;

	if (k)
		slope_meet(&w->vectors, &k->vectors, from, now);
	else if (v)
		slope_meet(&w->vectors, v, from, now);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(edge_waking, struct task_struct *p)
{
	struct task_struct *current;
	u64 now, epoch, blocked_at;
	struct thread *w, *k = NULL;
	const struct on_behalf *acts_for;
	s64 local;
	bool active, by_task, own, pays_in_shim, owes_sleep;
	u32 cpu;

	if (!in_scope(p))
		return 0;
	w = thread_get(p);
	if (!w)
		return 0;
	now = bpf_ktime_get_ns();
	blocked_at = __sync_lock_test_and_set(&w->wait.blocked_at, 0);
	if (!blocked_at)
		return 0;
	w->wait.runnable_at = now;
	w->place.waited = now - blocked_at;
	/* In the middle of a payment by the shim it is the shim's own timer. */
	pays_in_shim = thread_pays_in_shim(w);
	owes_sleep = w->pause.owes_sleep;
	w->pause.owes_sleep = !pays_in_shim;
	cpu = p->thread_info.cpu;
	if (cpu < ABI_MAX_CPUS) {
		struct abi_cpu *c = &cpus[cpu];

		w->wait.runnable_cpu = cpu;
		w->wait.outside_mark = c->outside_ns;
		w->wait.stopped_mark = stopped_on(cpu);
		if (!c->tid && !c->idle && now > c->since)
			w->wait.outside_mark +=
				now -
				c->since; /* the time of the task on the CPU so far was before us */
	}
	/* In the middle of a payment it waits for nobody. */
	if (pays_in_shim)
		return 0;
	epoch = *(volatile u64 *)&control.epoch;
	active = experiment_active(epoch) && !experiment_slows(epoch);
	if (!active && !config.waits && !slope_window())
		return 0;
	current = bpf_get_current_task_btf();
	by_task = in_task_context(ctx, current);
	own = !by_task && in_scope(current) && delivers_own(current);
	acts_for = by_task ? worker_acts_for(current, p) : NULL;
	if (!own && !acts_for && (!by_task || !in_scope(current) || current == p)) {
		if (active && !by_task && in_scope(current)) {
			count(COUNTER_irq_wakes);
			loopback_suspect(p);
		}
		if (active)
			thread_stretch(w, p, epoch, blocked_at, now);
		wait_ended(w, current, by_task, blocked_at, now);
		w->wait.from_outside = 1;
		if (slope_window()) {
			u32 kind = wait_kind(w, p, current, by_task);

			slope_waited(&w->vectors, ABI_ENTRY_WAITS + kind, blocked_at, now);
			wait_placed(w, kind, blocked_at, now);
		}
		return 0;
	}
	if (own)
		loopback_used();
	wait_forget(w);
	w->wait.from_outside = 0;
	if (slope_window())
		slope_woken(w, acts_for, current, blocked_at, now);
	if (!active)
		return 0;
	thread_enter(w, epoch);
	thread_fold(w, now);
	/* What it owed for a sleep before it waited for @current, it owes still. */
	w->pause.owes_sleep = owes_sleep;
	if (acts_for) {
		if (acts_for->epoch != epoch)
			return 0;
		w->pause.owes_sleep |= worker_was_long(acts_for);
		local = acts_for->local;
	} else {
		k = thread_get(current);
		if (!k)
			return 0;
		thread_enter(k, epoch);
		thread_fold(k, now);
		local = expected_local(k, now);
	}
	if (thread_wake_edge(w, local, w->polls ? POLLED_NS : now - blocked_at, now))
		latency_woken(w, k, k ? k->clock.local : local, epoch, now);
	return 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(edge_newtask, struct task_struct *p, u64 clone_flags)
{
	struct task_struct *current = bpf_get_current_task_btf();
	u64 epoch = *(volatile u64 *)&control.epoch;
	bool active = experiment_active(epoch) && !experiment_slows(epoch);
	struct thread *child, *parent;

	if (config.many && p->tgid == p->pid) {
		if (!process_birth(p, current))
			return 0;
	} else if (!in_scope(p)) {
		return 0;
	}
	child = thread_get(p);
	if (!child)
		return 0;
	child->wait.runnable_at = bpf_ktime_get_ns();
	parent = in_scope(current) ? thread_get(current) : NULL;
	if (!parent)
		return 0;
	child->maker = current->pid;
	slope_take(&child->vectors, &parent->vectors);
	if (active)
		thread_enter(parent, epoch);
	expected_receive(child, parent);
	if (active) {
		thread_fold(parent, child->wait.runnable_at);
		thread_birth(child, parent, epoch, child->wait.runnable_at);
		latency_woken(child, parent, parent->clock.local, epoch, child->wait.runnable_at);
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(edge_exec, struct task_struct *p)
{
	lifecycle_exec(p);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(edge_exit, struct task_struct *p)
{
	lifecycle_exit(p);
	return 0;
}
