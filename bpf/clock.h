/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A thread's clock, and how the rules R3, R4 and R5 change it: compiled for BPF (thread.h has what
 * these need of the kernel) and, by the unit tests' models, natively. Times in nanoseconds; @g is
 * the global delay. */
#pragma once

#include "bpf/ledger.h"

struct clock {
	s64 local; /* the local delay */
	s64 exec;  /* executed since its last sample, without the time it was stopped and what goes
		      on now */
	u64 seen, earned; /* what its samples in this experiment stood for, lately, and what that
			     earned */
	s64 ahead; /* of global, by edges: its own selected samples do not raise G by this part */
	s64 deferrable;	 /* part of its debt that its own next sample may turn out to have earned:
			    not paid yet */
	s64 unused_wait; /* blocked time that no edge has used yet, as of unused_wait_at */
	u64 unused_wait_at;
};

/* A sample stood for @weight, of which @earned was earned. */
static __always_inline void clock_learn(struct clock *c, u64 weight, s64 earned)
{
	if (c->seen > LEDGER_SEEN_NS) {
		c->seen >>= 1;
		c->earned >>= 1;
	}
	c->seen += weight;
	c->earned += (u64)earned;
}

/* The local delay as it will be on average when what was executed since the last sample, @unseen,
 * is booked. */
static __always_inline s64 clock_expected(const struct clock *c, s64 unseen)
{
	return c->local + ledger_expected(unseen, c->earned, c->seen);
}

/* Of the @change that an edge makes, what does not take the thread too far beyond G. */
static __always_inline s64 clock_clamp_ahead(struct clock *c, s64 change, s64 g)
{
	s64 ahead;

	change = ledger_min(change, g + LEDGER_AHEAD_NS - c->local);
	ahead = c->local + change - g;
	if (ahead < 0)
		ahead = 0;
	c->ahead = change > 0 ? ahead : ledger_min(c->ahead, ahead);
	return change;
}

/* R3, of a thread that is expected at @expected and was blocked for @blocked until one woke it that
 * is expected at @waker: the change. It may use at most @most of unused waiting, which is forgotten
 * within @forget_ns. *ret_level: it goes on by the waker's clock. */
static __always_inline s64 clock_wake(struct clock *c, s64 expected, s64 waker, u64 blocked,
				      u64 now, s64 most, s64 forget_ns, int *ret_level)
{
	s64 unused = ledger_unused_wait_left(c->unused_wait, now - c->unused_wait_at, forget_ns);
	s64 change = ledger_wake(expected, waker, (s64)blocked, unused, most, &unused);

	*ret_level = expected + change == waker;
	c->unused_wait = unused;
	c->unused_wait_at = now;
	return change;
}

/* R4, of a thread that is expected at @expected and waited for @waited for a CPU whose clock is
 * @cpu: the change, in *ret. @external: nobody in scope was on it. False: nobody was there that it
 * could have waited for, and it stays ahead. */
static __always_inline int clock_cpu_edge(s64 expected, s64 cpu, u64 waited, int external, s64 g,
					  s64 *ret)
{
	*ret = ledger_cpu_edge(expected, cpu, (s64)waited);
	return !(*ret < 0 && external && cpu >= g);
}
