/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a thread has earned and is not booked for yet. Of two threads side by side in the selected line one is sampled later; until then its local
 * says that it is behind. It is not: clocks are compared with what is expected to be booked, and nobody pays what may turn out to be earned.
 * --sync pthread knows executions by CPU only; there this all is 0. */
#pragma once

#include "bpf/ledger.h"
#include "bpf/maps.h"

/* A sample of @t stood for @weight, of which @earned was earned. */
static __always_inline void expected_learn(struct thread *t, u64 weight, s64 earned)
{
	if (t->seen > LEDGER_SEEN_NS) {
		t->seen >>= 1;
		t->earned >>= 1;
	}
	t->seen += weight;
	t->earned += (u64)earned;
}

/* What @t has executed by @now since its last sample. @now: 0 for one that is off its CPU. */
static __always_inline s64 expected_unseen(const struct thread *t, u64 now)
{
	u64 from = t->running_at;

	return *(volatile s64 *)&t->exec + (from && now > from ? (s64)(now - from) : 0);
}

/* What @t is known to have earned, but for the quantum that it may still become part of. */
static __always_inline s64 expected_kept(const struct thread *t)
{
	return t->unbooked - (s64)t->unbooked_from;
}

/* @t's local as it will be in the mean when what it has executed by @now is booked. */
static __always_inline s64 expected_local(const struct thread *t, u64 now)
{
	if (sync_by_calls())
		return t->local;
	return t->local + expected_kept(t) + ledger_expected(expected_unseen(t, now), t->earned, t->seen);
}

/* Notes how much of its debt @t, which is not in the middle of a payment, need not pay yet. */
static __always_inline void expected_allow(struct thread *t, u64 now, u64 q16)
{
	s64 kept = expected_kept(t);

	if (sync_by_calls())
		return;
	t->deferrable = ledger_deferrable(expected_unseen(t, now), t->earned, t->seen, q16) + (kept > 0 ? kept : 0);
}

/* What a thread that ends has left unbooked is left to the next child of its maker, as if that were the same thread going on: of many that
 * live for less than a sample's distance, none would be booked for what it did, or some other thread would. */
static __always_inline void expected_transfer(struct thread *maker, const struct thread *t, s64 exec)
{
	ADD(maker->children.exec, exec);
	if (t->epoch != maker->epoch || !t->seen)
		return;
	maker->children.seen = t->seen;
	maker->children.earned = t->earned;
}

static __always_inline void expected_receive(struct thread *child, struct thread *maker)
{
	child->exec = (s64)__sync_lock_test_and_set(&maker->children.exec, 0);
	child->seen = maker->children.seen;
	child->earned = maker->children.earned;
}
