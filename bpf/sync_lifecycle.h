/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* --sync pthread: what is needed of the scheduler, from tracepoints without type information: only
 * `current` has a type. */
#pragma once

#include "bpf/edges.h"
#include "bpf/sync.h"

struct lifecycle_switch {
	u64 preempt, prev, next, prev_state;
};

/* Optional: makes exact what ticks estimate, and says at once who runs where. */
SEC("?raw_tp/sched_switch")
int sync_switch(struct lifecycle_switch *ctx)
{
	struct task_struct *next = (struct task_struct *)ctx->next;

	sync_ran(in_scope(bpf_get_current_task_btf()), bpf_ktime_get_ns());
	sync_runs(untyped_task_process(next) == control.tgid ? BPF_CORE_READ(next, pid) : 0);
	return 0;
}

SEC("?raw_tp/sched_process_exec")
int sync_exec(void *ctx)
{
	lifecycle_exec(bpf_get_current_task_btf());
	return 0;
}

SEC("?raw_tp/sched_process_exit")
int sync_exit(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	lifecycle_exit(task);
	/* What it still does is no longer its program's. */
	t = in_scope(task) ? bpf_task_storage_get(&threads, task, 0, 0) : NULL;
	if (t) {
		t->call.pays_once = 0;
		t->call.blocked = 1;
	}
	return 0;
}
