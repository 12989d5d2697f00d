// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Progress points by probe: visits, and the time of the first and last one in the visitor's virtual
 * clock; and of the first one after the experiment's first part, in which the program gets used to
 * it. */
#include "bpf/exits.h"
#include "bpf/latency.h"
#include "bpf/slopes.h"

/* In the middle of a pause by the library, whose system calls are not the program's. */
static __always_inline bool visit_is_ours(struct task_struct *task, u64 epoch)
{
	struct thread *t =
		experiment_active(epoch) ? bpf_task_storage_get(&threads, task, 0, 0) : NULL;

	return t && thread_pays_in_shim(t);
}

/* @regs: a function's arguments are in them; NULL: they are not. */
static __always_inline void visit_whole(struct task_struct *task, u32 i, const struct pt_regs *regs)
{
	u64 epoch = *(volatile u64 *)&control.epoch, now, settled;
	struct abi_point *p = bpf_map_lookup_elem(&points, &i);
	struct abi_vectors *v = NULL;
	struct thread *t;

	if (!p) {
		count(COUNTER_point_out_of_range);
		return;
	}
	if (!regs && visit_is_ours(task, epoch))
		return;
	ADD(p->visits, 1);
	if (!n_latencies && p->epoch == epoch && p->visits - p->first_visits >= ABI_POINT_MANY &&
	    p->visits % ABI_POINT_SKIP)
		return;
	if (!experiment_active(epoch)) {
		t = slope_window() ? thread_get(task) : NULL;
		if (t)
			v = &t->vectors;
		now = v ? bpf_ktime_get_ns() : 0;
		latency_visit(i, task, regs, NULL, epoch, now, v);
		if (v) {
			t->visited_ip = regs ? regs->ip : 0;
			slope_visit(v, i, now);
		}
		return;
	}
	t = thread_get(task);
	if (!t)
		return;
	now = bpf_ktime_get_ns();
	thread_enter(t, epoch);
	thread_fold(t, now);
	if (p->epoch != epoch) {
		p->first_ns = now;
		p->first_local = t->clock.local;
		p->first_visits = p->visits;
		p->epoch = epoch;
	}
	settled = *(volatile u64 *)&control.setups[(epoch >> 1) & 1].settled_ns;
	if (p->settled_epoch != epoch && settled && now >= settled) {
		p->settled_ns = now;
		p->settled_local = t->clock.local;
		p->settled_visits = p->visits;
		p->settled_epoch = epoch;
	}
	p->last_ns = now;
	p->last_local = t->clock.local;
	latency_visit(i, task, regs, t, epoch, now, NULL);
}

/* A kernel that preempts itself can do so in probes' programs. A second thread that comes by on
 * that CPU meanwhile would find the point half written. */
static __always_inline void visit(struct task_struct *task, u32 i, const struct pt_regs *regs)
{
	if (config.has_preempt_disable)
		bpf_preempt_disable();
	visit_whole(task, i, regs);
	if (config.has_preempt_disable)
		bpf_preempt_enable();
}

static __always_inline int visit_here(u32 i)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (in_scope(task))
		visit(task, i, NULL);
	return 0;
}

/* Entries, exits and marked places. Where one link can hold many probes, the controller has the
 * program loaded for such links. */
SEC("uprobe")
int progress_visit(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (in_scope(task) && exit_leaves(ctx, cookie >> 32))
		visit(task, (u32)cookie, ctx);
	return 0;
}

struct abi_syscalls syscalls SEC(".bss") = {};

/* Of each CPU, the calls of threads in scope that are no visits: they are slowed down as well. A
 * cache line each. */
#define OTHERS_STEP 8
abi_u64 other_enters[ABI_MAX_CPUS * OTHERS_STEP] SEC(".bss") = {};
abi_u64 other_leaves[ABI_MAX_CPUS * OTHERS_STEP] SEC(".bss") = {};

static __always_inline void visit_syscall(const unsigned char *by_number, u64 *others, u64 number)
{
	u32 me = cpu_index(), point;

	if (number >= ABI_MAX_SYSCALLS)
		return;
	point = by_number[number];
	if (!point) {
		if (cpus[me].tid)
			others[me * OTHERS_STEP]++;
		return;
	}
	visit_here(point - 1);
}

/* These two are passed by every system call of every process. */
SEC("?tp_btf/sys_enter")
int BPF_PROG(progress_enter, struct pt_regs *regs, long number)
{
	visit_syscall(syscalls.enter, other_enters, number);
	return 0;
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(progress_leave, struct pt_regs *regs, long result)
{
	visit_syscall(syscalls.leave, other_leaves, regs->orig_ax);
	return 0;
}

/* The same by perf, which lets nothing preempt them, where a BTF tracepoint's program can be
 * preempted (tracepoints_preempted). */
SEC("?tp")
int progress_enter_traced(struct trace_event_raw_sys_enter *ctx)
{
	visit_syscall(syscalls.enter, other_enters, ctx->id);
	return 0;
}

SEC("?tp")
int progress_leave_traced(struct trace_event_raw_sys_exit *ctx)
{
	visit_syscall(syscalls.leave, other_leaves, ctx->id);
	return 0;
}

/* Loaded once more for each tracepoint: a cookie can be had for those since 6.10 only. */
SEC("?raw_tp")
int progress_event(void *ctx)
{
	return visit_here(config.event_point);
}

/* Events that tracefs alone knows, and all of them on such a kernel. */
SEC("?tp")
int progress_traced(void *ctx)
{
	return visit_here(bpf_get_attach_cookie(ctx));
}
