/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Giving each thread in scope a slot (shared/shim_abi.h) and taking it back. */
#pragma once

#include "bpf/maps.h"

/* SHIM_NAMESPACE of @task's PID namespace; 0: it is the controller's. *ret_tid: its number there.
 */
static __always_inline u32 slot_namespace(const struct task_struct *task, u32 *ret_tid)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), inode;
	struct upid own;

	if (!level) {
		*ret_tid = BPF_CORE_READ(task, pid);
		return 0;
	}
	own = namespace_at(pid, level);
	*ret_tid = own.nr;
	inode = BPF_CORE_READ(own.ns, ns.inum);
	return level == own_namespace.level && inode == own_namespace.inode ? 0
									    : SHIM_NAMESPACE(inode);
}

struct slot_search {
	u32 tid, found; /* as in struct shim_slot; index + 1 */
};

static long slot_step(u32 i, struct slot_search *s)
{
	u32 at = (s->tid + i) % SHIM_SLOTS;
	struct shim_slot *slot = bpf_map_lookup_elem(&slots, &at);

	if (!slot)
		return 1;
	if (slot->tid || __sync_val_compare_and_swap(&slot->tid, 0, s->tid))
		return 0;
	s->found = at + 1;
	return 1;
}

static __always_inline void slot_release_index(u32 index)
{
	u32 i = index - 1;
	struct shim_slot *slot = bpf_map_lookup_elem(&slots, &i);

	if (slot)
		slot->tid = 0;
}

/* Marks the counters of @slot as read: pauses before this moment are not the thread's. */
static __always_inline void slot_seen(struct thread *t, const struct shim_slot *slot)
{
	t->pause.paid_seen = slot->paid_ns;
	t->pause.delivery_seen = slot->delivery_ns;
	t->pause.spun_seen = slot->spun_ns;
}

static __always_inline void slot_claim(struct thread *t, const struct task_struct *task)
{
	struct slot_search s = {};
	struct shim_slot *slot;
	u32 i, tid;

	s.tid = slot_namespace(task, &tid);
	s.tid += tid;
	bpf_loop(SHIM_PROBES, slot_step, &s, 0);
	if (!s.found) {
		count(COUNTER_no_slot);
		return;
	}
	i = s.found - 1;
	slot = bpf_map_lookup_elem(&slots, &i);
	if (!slot)
		return;
	slot->owed_ns = 0;
	slot->asked = slot->payments = 0;
	slot->paying = 0;
	slot_seen(t, slot);
	/* Two CPUs can meet a thread for the first time at once. */
	if (__sync_val_compare_and_swap(&t->slot, 0, s.found) != 0)
		slot_release_index(s.found);
}

static __always_inline void slot_release(struct thread *t)
{
	u32 had = __sync_lock_test_and_set(&t->slot, 0);

	if (had)
		slot_release_index(had);
}
