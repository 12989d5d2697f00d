/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a thread has earned and is not booked for yet. Of two threads side by side in the selected
 * line one is sampled later; until then its local says that it is behind. It is not: clocks are
 * compared with what is expected to be booked, and nobody pays what may turn out to be earned.
 * --sync pthread knows executions by CPU only; there this all is 0. */
#pragma once

#include "bpf/ledger.h"
#include "bpf/maps.h"

/* What @t has executed by @now since its last sample. @now: 0 for one that is off its CPU. */
static __always_inline s64 expected_unseen(const struct thread *t, u64 now)
{
	u64 from = t->wait.running_at;

	return *(volatile s64 *)&t->clock.exec + (from && now > from ? (s64)(now - from) : 0);
}

/* What @t is known to have earned, but for the quantum that it may still become part of. */
static __always_inline s64 expected_kept(const struct thread *t)
{
	return t->sample.unbooked - (s64)t->sample.unbooked_from;
}

/* @t's local as it will be on average when what it has executed by @now is booked. */
static __always_inline s64 expected_local(const struct thread *t, u64 now)
{
	if (sync_by_calls())
		return t->clock.local;
	return clock_expected(&t->clock, expected_unseen(t, now)) + expected_kept(t);
}

/* Notes how much of its debt @t, which is not in the middle of a payment, need not pay yet. */
static __always_inline void expected_allow(struct thread *t, u64 now, u64 q16)
{
	s64 kept = expected_kept(t);

	if (sync_by_calls())
		return;
	t->clock.deferrable =
		ledger_deferrable(expected_unseen(t, now), t->clock.earned, t->clock.seen, q16) +
		(kept > 0 ? kept : 0);
}

/* What a thread that ends has left unbooked is left to the next child of its maker, as if that were
 * the same thread going on: of many that live for less than a sample's distance, none would be
 * booked for what it did, or some other thread would. */
static __always_inline void expected_transfer(struct thread *maker, const struct thread *t,
					      s64 exec)
{
	ADD(maker->sample.children.exec, exec);
	if (t->account.epoch != maker->account.epoch || !t->clock.seen)
		return;
	maker->sample.children.seen = t->clock.seen;
	maker->sample.children.earned = t->clock.earned;
}

static __always_inline void expected_receive(struct thread *child, struct thread *maker)
{
	child->clock.exec = (s64)__sync_lock_test_and_set(&maker->sample.children.exec, 0);
	child->clock.seen = maker->sample.children.seen;
	child->clock.earned = maker->sample.children.earned;
}
