/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* R10: what the kernel's own threads do on behalf of a thread in scope. A kernel worker that
 * executes a work item acts for the thread that queued it, with that thread's local delay as it was
 * then: nobody pauses the worker, so what accrues meanwhile is owed by the thread that it wakes.
 * The polling thread of io_uring acts for the threads whose requests it finds. */
#pragma once

#include "bpf/delivery.h"
#include "bpf/slopes.h"
#include "bpf/thread.h"

struct on_behalf {
	s64 local,
		global; /* the queuing thread's expected local delay, and the global delay, then */
	u64 epoch;	/* 0: no experiment ran */
	u64 item;	/* its address */
	u32 tid;	/* the queuing thread; 0: taken by a worker */
	u32 zero;
};

#define MAX_QUEUED 4096 /* items that wait for a worker: the oldest ones are forgotten first */

/* By the address of the work item. Only threads in scope, and workers that act for them, add to it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_QUEUED);
	__type(key, u64);
	__type(value, struct on_behalf);
} queued SEC(".maps");

/* By the same address, the thread's vectors then (S2). One entry where there are no slopes. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_QUEUED);
	__type(key, u64);
	__type(value, struct abi_vectors);
} queued_vectors SEC(".maps");

/* What a worker executes, if a thread in scope queued it; else .tid is 0. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct on_behalf);
} acting SEC(".maps");

/* For whom @current, which runs in its own context, acts; NULL: for itself. */
static __always_inline const struct on_behalf *worker_acts(struct task_struct *current)
{
	const struct on_behalf *of;

	if (!(current->flags & PF_WQ_WORKER))
		return NULL;
	of = bpf_task_storage_get(&acting, current, 0, 0);
	return of && of->tid ? of : NULL;
}

/* The same, if that is another thread than @p, which @current wakes. A thread that waits for what
 * it has queued itself waits for what the worker waits for, outside of the scope (R6). */
static __always_inline const struct on_behalf *worker_acts_for(struct task_struct *current,
							       struct task_struct *p)
{
	const struct on_behalf *of = worker_acts(current);

	return of && of->tid != (u32)p->pid ? of : NULL;
}

/* Has so much accrued since the item was queued that it must be slept? The thread that the worker
 * wakes was not awake in that time. */
static __always_inline bool worker_was_long(const struct on_behalf *of)
{
	return global_now() - of->global >= THREAD_LEAST_SLEEP_NS;
}

/* An item that is queued already is not queued again, and no event tells. What it does for the
 * second thread it then does with the first one's clock. */
SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(edge_queue, int cpu, void *pool, void *item)
{
	struct task_struct *current = bpf_get_current_task_btf();
	bool by_task = in_task_context(ctx, current);
	u64 key = (u64)item, epoch = *(volatile u64 *)&control.epoch;
	const struct on_behalf *chain;
	struct abi_vectors *vectors;
	struct on_behalf of = {};
	struct thread *t;

	if (in_scope(current)) {
		if (!by_task && !delivers_own(current))
			return 0;
		t = thread_get(current);
		if (!t)
			return 0;
		of.tid = current->pid;
		vectors = &t->vectors;
		if (experiment_active(epoch) && !experiment_slows(epoch)) {
			u64 now = bpf_ktime_get_ns();

			thread_enter(t, epoch);
			thread_fold(t, now);
			of.local = expected_local(t, now);
			of.global = global_now();
			of.epoch = epoch;
		}
	} else {
		chain = by_task ? worker_acts(current) : NULL;
		if (!chain)
			return 0;
		of = *chain;
		vectors = slope_window() ? bpf_map_lookup_elem(&queued_vectors, &of.item) : NULL;
	}
	of.item = key;
	if (slope_window() && vectors)
		(void)bpf_map_update_elem(&queued_vectors, &key, vectors, BPF_ANY);
	if (bpf_map_update_elem(&queued, &key, &of, BPF_ANY))
		count(COUNTER_queued_lost);
	return 0;
}

/* Items of bottom halves are executed in an interrupt: no worker acts there. */
SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(edge_execute, void *item)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct on_behalf *of, *worker;
	u64 key = (u64)item;
	u32 tid;

	if (!in_task_context(ctx, current))
		return 0;
	of = bpf_map_lookup_elem(&queued, &key);
	tid = of ? __sync_lock_test_and_set(&of->tid, 0) : 0;
	worker =
		bpf_task_storage_get(&acting, current, 0, tid ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (worker && of && tid) {
		*worker = *of;
		worker->tid = tid;
	} else if (worker) {
		worker->tid = 0;
	}
	return 0;
}

/* A wait of the polling thread is as long as it has to be: what it looked for requests before it
 * fell asleep is part of it. */
#define POLLED_NS (1ULL << 40)

/* A request begins: io_uring_submit_req, or what older kernels call it. The polling thread finds it
 * at the earliest when it was made, by a thread that was paused up to now. What the polling thread
 * owes, it owes for looking. */
SEC("raw_tp")
int edge_polled(void *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	u64 epoch = *(volatile u64 *)&control.epoch;
	struct thread *t;
	s64 behind;

	if (!(current->flags & PF_IO_WORKER) || !in_scope(current))
		return 0;
	t = thread_get(current);
	if (!t)
		return 0;
	t->polls = 1;
	if (!experiment_active(epoch) || experiment_slows(epoch))
		return 0;
	thread_enter(t, epoch);
	behind = thread_owes(t);
	if (behind > 0)
		thread_credit(t, behind);
	return 0;
}
