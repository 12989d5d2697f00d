/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* On every second tick of one thread of the controller, does what a selected sample does: has
 * another one pay (nearly) nothing. What those ticks cost the first thread beyond the others, and
 * the second beyond its payment, is the overhead of a selected sample and of a payment. Without
 * task work there is one thread, which its own ticks have pay. Run by the controller before the
 * program starts. */
#pragma once

#include "bpf/pay.h"

struct abi_calibration calibration SEC(".bss") = {};

static __always_inline bool calibrate_ask(struct task_struct *task, u64 now)
{
	struct thread *t = thread_get(task);

	if (!t)
		return false;
	thread_enter(t, control.epoch);
	if (!config.has_task_work) {
		pay_signal(task, t, 1, false, now);
		return true;
	}
	ledger_raise(t->clock.local + 1, 1, 0);
	return pay_schedule(task, t, 0, pay_first);
}

SEC("perf_event")
int calibrate_tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf(), *task;
	u64 now = bpf_ktime_get_ns();

	/* A signal is raised only on the way back to user mode; the others need not care, but are
	 * to be alike. */
	if (!calibration.payer || task_thread(current) != calibration.asker ||
	    (ctx->regs.cs & 3) != 3)
		return 0;
	calibration.ticks++;
	if (calibration.ticks & 1 || config.payer == ABI_PAY_NONE)
		return 0;
	if (!config.has_task_work) {
		calibration.kicks += calibrate_ask(current, now);
		return 0;
	}
	task = bpf_task_from_vpid(calibration.payer);
	if (!task)
		return 0;
	calibration.kicks += calibrate_ask(task, now);
	bpf_task_release(task);
	calibration.asking_ns +=
		bpf_ktime_get_ns() -
		now; /* the same that sample_tick() measures of a selected sample */
	return 0;
}
