/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The timer samples: which line runs, and R1 when it is the selected one. Everything happens in the
 * interrupt. */
#pragma once

#include "bpf/idle.h"
#include "bpf/inclusive.h"
#include "bpf/latency.h"
#include "bpf/pay.h"
#include "bpf/slopes.h"
#include "bpf/slow.h"
#include "bpf/sync.h"
#include "bpf/unwind.h"

static __always_inline void count_sample(u64 code, u64 weight)
{
	count_in(&samples, &code, weight);
}

/* Counts a sample of @code (0: of no place) by the object whose code the thread executes, if that
 * is another one. Of several places it is none. */
static __always_inline void count_elsewhere(u64 code, u64 ip, bool user, struct task_struct *task,
					    u64 weight)
{
	struct abi_elsewhere at = {.code = code, .object = ABI_KERNEL_OBJECT};
	struct abi_module *m;
	u32 module;

	if (code && config.inclusive)
		return;
	if (user) {
		module = unwind_module(ip, modules_of(task));
		m = bpf_map_lookup_elem(&modules, &module);
		at.object = m ? m->object : ABI_NO_OBJECT;
	}
	if (!code || ABI_CODE_OBJECT(code) != at.object)
		count_in(&elsewhere, &at, weight);
}

struct prompt {
	u64 now;
	u32 me;
	u32 asked;
};

/* G grew: who runs now must stop now, not at its next tick. */
static long prompt_step(u32 i, struct prompt *p)
{
	struct task_struct *task;
	struct thread *t;
	u32 tid;

	if (i >= ABI_MAX_CPUS)
		return 1;
	tid = *(volatile u32 *)&cpus[i].tid;
	if (!tid || i == p->me)
		return 0;
	task = bpf_task_from_pid(tid);
	if (!task)
		return 0;
	/* The thread may have ended unseen, and its number be another program's by now. */
	t = in_scope(task) ? thread_get(task) : NULL;
	if (t) {
		thread_enter(t, control.epoch);
		p->asked += pay_ask(task, t, p->now);
	}
	bpf_task_release(task);
	return 0;
}

/* @t has raised G: has the others pay, and books for @t the time since @from that this took. */
static __always_inline void prompt_others(struct thread *t, u64 now, u64 from,
					  struct abi_totals *sum)
{
	struct prompt p = {.now = now, .me = bpf_get_smp_processor_id()};
	u64 asks = bpf_ktime_get_ns(), done;

	bpf_loop(config.nr_cpus, prompt_step, &p, 0);
	done = bpf_ktime_get_ns();
	/* The asking stopped this thread as well. */
	if (p.asked)
		thread_paid(t, ledger_asking(done - from, done - asks, p.asked, &control.costs.hit),
			    sum);
}

/* Without task work: the thread's own tick in user mode raises the signal. The interrupt returns to
 * user mode, so no system call can be disturbed. */
static __always_inline void pay_at_tick(struct task_struct *task, struct thread *t, u64 now,
					struct abi_totals *sum)
{
	s64 owed = thread_due(t);

	if (owed < config.threshold_ns || pay_waits(t) || pay_unanswered(t) ||
	    !pay_may_signal(task))
		return;
	pay_note_latency(t, now, sum);
	pay_signal(task, t, owed, config.payer != ABI_PAY_SLEEP && pay_asleep(t, owed), now);
}

/* A system call that is to begin again ends with one of these errors, ERESTARTSYS to
 * ERESTART_RESTARTBLOCK (include/linux/errno.h). */
#define RESTARTS_FROM 512
#define RESTARTS_TO 516

/* The same at the end of a system call: a thread that sleeps, works for a few microseconds and
 * sleeps again has no tick in user mode. Not if the call is to begin again: a handler that runs
 * first would make it end with EINTR. Every system call of every process comes here. */
SEC("?tp_btf/sys_exit")
int BPF_PROG(pay_at_call, struct pt_regs *regs, long result)
{
	u64 epoch = *(volatile u64 *)&control.epoch, now;
	struct task_struct *task = bpf_get_current_task_btf();
	struct abi_totals *sum = totals_here();
	struct thread *t;

	if (!experiment_active(epoch) || !in_scope(task) ||
	    (result >= -RESTARTS_TO && result <= -RESTARTS_FROM))
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	if (!t || !sum || t->account.epoch != epoch || thread_due(t) < config.threshold_ns)
		return 0;
	now = bpf_ktime_get_ns();
	thread_fold(t, now);
	expected_allow(t, now, control.setups[(epoch >> 1) & 1].speedup_q16);
	pay_at_tick(task, t, now, sum);
	return 0;
}

/* Between the ticks of each CPU on average, with the periods that its clocks have now; ns. */
abi_u64 spacings[ABI_MAX_CPUS] SEC(".bss") = {};

/* A sample stands for all that its thread executed since its last one, on whatever CPU, and for
 * what threads that ended here had left. The clock's period would have the same mean, but ticks
 * that come nearly at random are many or few by chance, and every one of them would be a pause:
 * what a line earned over a few milliseconds would be off by half, and short rounds would see large
 * steps. This way it is off by the last distance only, and no tick that a pause swallowed is
 * missing. */
static __always_inline u64 take_weight(struct abi_cpu *c, struct thread *t, u64 now)
{
	s64 w = *(volatile s64 *)&c->exec, own = *(volatile s64 *)&t->clock.exec,
	    most = (s64)(now - control.rested_ns);

	/* Unknown: each tick stands for the mean distance on this CPU. */
	if (sync_by_calls() && !config.has_switch)
		return spacings[cpu_index()];
	ADD(c->exec, -w);
	c->sampled_at = now;
	if (!sync_by_calls()) {
		ADD(t->clock.exec, -own);
		t->clock.deferrable = 0;
		w += own;
	}
	w = w < most ? w : most;
	return idle_weight(w > 0 ? w : 0);
}

/* The switch that put this thread on the CPU was not traced. Some tasks of the kernel leave a CPU
 * so (seen on Linux 6.18 in a virtual machine, some two to four times a second); without this
 * nobody would ask the thread to pay until its next switch. Returns how long it waited. */
static __always_inline u64 missed_switch_in(struct abi_cpu *c, struct task_struct *task,
					    struct thread *t, u64 now)
{
	u64 from = t->wait.runnable_at;

	c->tid = task->pid;
	t->wait.runnable_at = t->wait.blocked_at = 0;
	count(COUNTER_unseen_switch);
	return from && now > from ? now - from : 0;
}

/* Is the thread in the kernel for the probe of a point? Until the kernel has seen to it, the
 * address is that behind the breakpoint, which has one byte. After an instruction that it steps
 * through elsewhere it is that of whatever comes next. */
static __always_inline bool in_probe(const struct thread *t, struct task_struct *task)
{
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);

	if (!t->visited_ip)
		return false;
	if (regs->ip - t->visited_ip <= 1)
		return true;
	return bpf_core_field_exists(task->utask) && task->utask &&
	       bpf_core_field_exists(task->utask->active_uprobe) && task->utask->active_uprobe;
}

/* Whom the last sample found, on any CPU. */
abi_u32 last_sampled SEC(".bss") = 0;

SEC("perf_event")
int sample_tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 now = bpf_ktime_get_ns(), epoch = *(volatile u64 *)&control.epoch;
	struct frame interrupted = {.ip = ctx->regs.ip, .sp = ctx->regs.sp, .bp = ctx->regs.bp};
	bool user = (ctx->regs.cs & 3) == 3;
	const struct abi_setup *setup = &control.setups[(epoch >> 1) & 1];
	struct abi_cpu *c = cpu_here();
	struct abi_totals *sum;
	struct chain_cuts cuts, before;
	struct thread *t;
	u64 code, weight, waited = 0;
	bool in_line;
	s64 earned, exec;

	/* Reads of the context and of the task's registers must not be merged by the compiler: the
	 * verifier types them apart. */
	asm volatile("" ::: "memory");
	if (sync_by_calls()) {
		if (config.has_switch)
			sync_ran(in_scope(task), now);
		sync_runs(in_scope(task) ? task->pid : 0);
	}
	if (!in_scope(task))
		return 0;
	sum = totals_here();
	t = thread_get(task);
	if (!t || !sum)
		return 0;
	if (!sync_by_calls()) {
		idle_ends(cpu_index());
		if (t->wait.running_at)
			thread_ran(t, now, sum);
		else
			waited = missed_switch_in(c, task, t, now);
		t->wait.running_at = now;
	}
	if (experiment_active(epoch)) {
		thread_enter(t, epoch);
		thread_fold(t, now);
		/* R4. The switch of the thread that left the CPU was not seen; a thread that runs
		 * is nearly level with G. */
		if (waited && config.rq_edges && !thread_pays_in_shim(t) &&
		    !experiment_slows(epoch))
			thread_cpu_edge(t, global_now(), true, waited);
		/* A stopped thread runs nothing: neither a sample of the program nor a selected
		 * sample. */
		if (t->pause.hold_from || thread_pays_in_shim(t)) {
			ADD(sum->held, 1);
			return 0;
		}
	}
	trace_stop(ABI_TRACE_TICK, now, t->account.paid);
	exec = latency_exec(t, now);
	weight = take_weight(c, t, now);
	if (last_sampled != (u32)task->pid) {
		last_sampled = task->pid;
		ADD(sum->turns, 1);
	}
	sampled_begin();
	before = chain_cuts(sum);
	/* A place in code, or how many: 0 is none in either case. */
	if (config.kernel_base && !user)
		code = ABI_CODE(ABI_KERNEL_OBJECT, interrupted.ip - config.kernel_base);
	else
		code = code_of_sample(&interrupted, user, task);
	count_elsewhere(code, interrupted.ip, user, task, weight);
	if (!code) {
		cuts = chain_cuts(sum);
		ADD(sum->samples_outside, 1);
		ADD(sum->samples_too_deep, cuts.too_deep - before.too_deep);
		ADD(sum->samples_cut, cuts.lost - before.lost);
	} else {
		ADD(sum->samples, 1);
		if (config.inclusive)
			chain_count_sample(weight);
		else
			count_sample(code, weight);
	}
	sampled_count(weight, &t->vectors, now);
	if (slope_window() && !user && in_probe(t, task))
		slope_probed(&t->vectors, spacings[cpu_index()], now);
	else if (config.inclusive)
		slope_tick_chain(&t->vectors, code, spacings[cpu_index()], now,
				 t->wait.from_outside);
	else
		slope_tick(&t->vectors, code, spacings[cpu_index()], now, t->wait.from_outside);
	if (!experiment_active(epoch))
		return 0;
	in_line = code && (config.inclusive ? chain_selected(epoch, code) : selected(setup, code));
	earned = in_line ? ledger_earned(weight, setup->speedup_q16) : 0;
	clock_learn(&t->clock, weight, earned);
	if (in_line)
		earned = ledger_quanta(earned, setup->quantum_ns, &t->sample.unbooked);
	latency_sampled(t, exec, in_line, earned, setup->speedup_q16);
	if (in_line) {
		u64 from = bpf_ktime_get_ns();

		ADD(sum->selected_samples, 1);
		ADD(sum->selected_ns, weight);
		if (earned && thread_selected(t, earned, sum) && config.has_task_work) {
			trace_stop(ABI_TRACE_ASKING, from, 0);
			prompt_others(t, now, from, sum);
		}
		if (experiment_slows(epoch))
			thread_slow(t, ledger_earned(weight, setup->slow_q16), sum);
	}
	if (config.has_task_work)
		pay_ask(task, t, now);
	else if (user && config.payer != ABI_PAY_NONE)
		pay_at_tick(task, t, now, sum);
	return 0;
}
