// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Writes every thread's books for the experiment that just ended. */
#include "bpf/thread.h"

SEC("iter/task")
int owed_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct abi_thread_record r = {};
	struct thread *t;

	if (!task || !in_scope(task))
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	/* epoch: even by now, the experiment's was one less. */
	if (!t || t->account.epoch != control.epoch - 1)
		return 0;
	r.tid = task_thread(task);
	r.owed = thread_owes(t);
	r.hits = t->account.earned;
	r.paid = t->account.paid;
	r.credited = t->account.credited;
	r.rq_credited = t->account.rq_credited;
	r.change = t->clock.local - t->account.start;
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
