/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asks a thread of the controller for a payment of (nearly) nothing: what that costs the thread is the overhead of a payment. Run by
 * the controller before the program starts. */
#pragma once

#include "bpf/pay.h"

struct calibrate_args {
	u32 tid;
	u32 kick; /* 0: do all but ask, to see what asking costs the one who asks */
};

SEC("syscall")
int calibrate_kick(struct calibrate_args *args)
{
	struct task_struct *task = bpf_task_from_pid(args->tid);
	struct thread *t;

	if (!task)
		return -3; /* ESRCH */
	t = thread_get(task);
	if (t && args->kick) {
		thread_enter(t, control.epoch);
		ledger_raise(t->local + 1);
		pay_schedule(task, t, 0, pay_first);
	}
	bpf_task_release(task);
	return 0;
}
