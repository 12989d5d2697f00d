/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The arithmetic of the ledger rules, without state: compiled for BPF and, by the unit tests,
 * natively. Times in nanoseconds. A thread's virtual clock is now - local; a thread that waits for
 * an event goes on at the later of the two virtual clocks. */
#pragma once

#include "shared/abi.h"
#include "shared/histogram.h"

#define LEDGER_UNSEEN_NS 100000000LL /* longer ones are not estimated */
#define LEDGER_SEEN_NS 80000000ULL   /* what a thread's share of hits is taken from, at most */
#define LEDGER_AHEAD_NS 10000000LL   /* no edge takes a thread further beyond G */

static __always_inline s64 ledger_min(s64 a, s64 b)
{
	return a < b ? a : b;
}

/* R1: what a sample that stands for @weight_ns earns at a speedup of @q16 / 65536. */
static __always_inline s64 ledger_earned(u64 weight_ns, u64 q16)
{
	return (s64)((weight_ns * q16) >> 16);
}

/* R1 in quanta: returns the whole quanta in @earned and *kept, which earlier samples left, to be
 * booked now. The remainder is kept. *kept begins at random between 0 and a quantum, so that a
 * thread is booked on average what it earns, however short it lives. */
static __always_inline s64 ledger_quanta(s64 earned, u64 quantum, s64 *kept)
{
	u64 sum;

	if (!quantum)
		return earned;
	sum = (u64)(*kept + earned);
	*kept = (s64)(sum % quantum);
	return (s64)(sum - sum % quantum);
}

/* What a thread will be booked on average for what it executed since its last sample (@unseen): the
 * share that it @earned of all that its samples stood for (@seen). Not what its last sample or the
 * place where it is would say: it is booked by its next sample, wherever that finds it, and whom an
 * edge had given what no sample then confirms would pay for it (tests/unit/bpf_model_test.c). */
static __always_inline s64 ledger_expected(s64 unseen, u64 earned, u64 seen)
{
	if (unseen <= 0 || !seen)
		return 0;
	if (unseen > LEDGER_UNSEEN_NS)
		unseen = LEDGER_UNSEEN_NS;
	return (s64)((u64)unseen * earned / seen);
}

/* Of a debt, what its thread may turn out to have earned in @unseen, at a speedup of @q16 / 65536:
 * it pays that if its next sample says otherwise. A pause too early cannot be taken back, one too
 * late is made up for. Twice the mean, for a thread that is mostly in the line all of it. */
static __always_inline s64 ledger_deferrable(s64 unseen, u64 earned, u64 seen, u64 q16)
{
	s64 mean = ledger_expected(unseen, earned, seen);

	if (mean <= 0)
		return 0;
	return ledger_min(ledger_min(2 * mean, ledger_earned((u64)unseen, q16)), LEDGER_AHEAD_NS);
}

/* How far G grows by a selected sample that @earned and took its thread to @local. Edges took the
 * thread ahead of G by @by_edges. G does not grow by that part: edges gave it because other threads
 * are expected to be booked for it, and their own selected samples will raise G. Others do owe what
 * the thread was really stopped for beyond G. */
static __always_inline s64 ledger_growth(s64 g, s64 local, s64 earned, s64 by_edges)
{
	s64 ahead = local - earned - g;

	if (ahead < 0)
		ahead = 0;
	return local - g - ledger_min(by_edges, ahead);
}

/* What is left of unused blocked time after @age_ns: a straight line down to nothing at @forget_ns,
 * so that credit from an earlier phase of the program does not answer a later one's hits. */
static __always_inline s64 ledger_unused_wait_left(s64 unused_wait, u64 age_ns, s64 forget_ns)
{
	if (unused_wait <= 0 || forget_ns <= 0 || age_ns >= (u64)forget_ns)
		return 0;
	return unused_wait -
	       (s64)((u64)unused_wait * (age_ns >> 10) / (((u64)forget_ns >> 10) + 1));
}

/* R3: local(W) = min(local(K), local(W) + blocked), as the change of local(W). A selected sample
 * stands for all the rounds since the last one, so blocked time that those rounds left unused
 * (@unused_wait) may answer it as well; *ret_unused is what remains, at most @unused_max. Past a
 * knee a waiter uses all its blocked time: none is left unused, and the rule is the plain one. */
static __always_inline s64 ledger_wake(s64 local_w, s64 local_k, s64 blocked, s64 unused_wait,
				       s64 unused_max, s64 *ret_unused)
{
	s64 slack = blocked + unused_wait;
	s64 change = ledger_min(local_k - local_w, slack);
	s64 left = slack - (change > 0 ? change : 0);

	*ret_unused = ledger_min(left, unused_max);
	return change;
}

/* --sync pthread: how long a call that began at @from waited, of which the thread was stopped for
 * @paid. */
static __always_inline s64 ledger_waited(u64 from, u64 now, s64 paid)
{
	s64 waited = now > from ? (s64)(now - from) : 0;

	if (paid < 0)
		return waited;
	return paid < waited ? waited - paid : 0;
}

/* R4: local(W) = min(cpu, local(W) + waited), as the change of local(W). */
static __always_inline s64 ledger_cpu_edge(s64 local_w, s64 cpu_local, s64 waited)
{
	return ledger_min(cpu_local - local_w, waited);
}

/* R4: a CPU's clock after @outside_ns of tasks out of scope: their time counts as pause, up to G.
 */
static __always_inline s64 ledger_cpu_advance(s64 cpu_local, u64 outside_ns, s64 g)
{
	return cpu_local > g ? cpu_local : ledger_min(cpu_local + (s64)outside_ns, g);
}

/* What cannot be measured in place, now that what goes with it took @took: a neighbour of the
 * virtual machine and cold caches slow both down. Not in proportion: of a selected sample, what is
 * unseen is mostly its exits from the virtual machine, several for the one that its asking has.
 * What took more than three times as long as when it was calibrated had something else come in
 * between. */
static __always_inline u64 ledger_unseen(const struct abi_unseen *c, u64 took)
{
	s64 beyond = ledger_min((s64)took, 3 * c->beside_ns) - c->beside_ns,
	    ns = c->ns + (c->slope_q8 * beyond >> 8);

	return (u64)(ns > c->ns >> 2 ? ns : c->ns >> 2);
}

/* What it stopped a thread for that its selected sample had @asked others pay: all of it @took, of
 * which the asking was @asking; and what follows for each of them. */
static __always_inline s64 ledger_asking(u64 took, u64 asking, u32 asked,
					 const struct abi_unseen *hit)
{
	return (s64)(took + ledger_unseen(hit, asking / asked) * asked);
}

/* Quarter-octave bucket of a duration: exponent and the two bits below the leading one. */
static __always_inline u32 ledger_bucket(u64 ns)
{
	u32 e;

	if (ns < 4)
		return 0;
	e = histogram_log2(ns);
	e = 4 * e + (u32)((ns >> (e - 2)) & 3);
	return e < ABI_PAUSE_LATENCY_BUCKETS ? e : ABI_PAUSE_LATENCY_BUCKETS - 1;
}
