// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Progress points by probe: visits, and the time of the first and last one in the visitor's virtual clock. */
#include "bpf/latency.h"

SEC("uprobe")
int progress_visit(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 epoch = *(volatile u64 *)&control.epoch, now;
	u32 i = bpf_get_attach_cookie(ctx);
	struct abi_point *p;
	struct thread *t;

	if (!in_scope(task))
		return 0;
	p = bpf_map_lookup_elem(&points, &i);
	if (!p) {
		count(COUNTER_point_out_of_range);
		return 0;
	}
	ADD(p->visits, 1);
	if (!experiment_active(epoch)) {
		latency_visit(i, task, ctx, NULL, epoch, 0);
		return 0;
	}
	t = thread_get(task);
	if (!t)
		return 0;
	now = bpf_ktime_get_ns();
	thread_enter(t, epoch);
	thread_fold(t, now);
	if (p->epoch != epoch) {
		p->first_ns = now;
		p->first_local = t->local;
		p->epoch = epoch;
	}
	p->last_ns = now;
	p->last_local = t->local;
	latency_visit(i, task, ctx, t, epoch, now);
	return 0;
}

char LICENSE[] __weak SEC("license") = "Dual BSD/GPL";
