/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A thread's clock between samples, without the rest of its books: compiled for BPF and, by the
 * unit tests, natively. Times in nanoseconds.
 *
 * The ledger books what a line earned when a sample finds it, all at once and for all that was
 * executed since the sample before. That sum is right and its moment is not: an interval that
 * begins or ends in between has up to the distance of two samples too much or too little. Here is
 * what the thread should be ahead of its local for: for each stretch of execution between two marks
 * (samples, and visits of latency points) what it earned by our best guess, less what was booked. A
 * stretch between two samples counts for half where they differ. At a visit the thread is known to
 * be between two things: before it, the last sample holds, after it, the next one. */
#pragma once

#include "shared/histogram.h"

struct smooth {
	s64 exec;      /* executed since the last mark, as far as it is known: what goes on since
			  running_at is not in it */
	s64 ahead;     /* of local, at the last mark */
	u32 in_line;   /* the last sample was in the selected line */
	u32 visited;   /* there was a visit since */
	s64 forgotten; /* of ahead, in all */
	u64 taken;     /* when another thread's clock was taken over */
	u64 line;      /* time in the line since, by our best guess */
	u64 blur;      /* the variance of that: sum of (1024 ns)^2, in twelfths */
};

/* Of what is ahead, 1/256 is forgotten at each sample. Where threads wait for each other that is
 * never needed, since each edge makes two clocks one (smooth_woken); elsewhere the sum of guesses
 * would grow without bounds, and intervals that one thread begins and another ends with it; those
 * of one thread have it back. Faster, it would take from what is known. */
#define SMOOTH_FORGET_SHIFT 8

static __always_inline s64 smooth_earned(s64 ns, u64 q16)
{
	return (ns * (s64)q16) >> 16;
}

/* How far ahead of its local the thread is, @exec after its last mark. */
static __always_inline s64 smooth_now(const struct smooth *s, s64 exec, u64 q16)
{
	return s->ahead + (s64)s->in_line * smooth_earned(exec, q16);
}

/* A visit of a latency point. */
static __always_inline void smooth_visited(struct smooth *s, s64 exec, u64 q16)
{
	s->ahead = smooth_now(s, exec, q16);
	s->line += s->in_line * (u64)exec;
	s->visited = 1;
}

/* A sample, for which @booked was added to the thread's local. Without branches, of which each
 * would have the verifier go through the rest of the program twice. */
static __always_inline void smooth_sampled(struct smooth *s, s64 exec, u32 in_line, s64 booked,
					   u64 q16)
{
	s64 halves = (s64)in_line * (1 + s->visited) + (s64)s->in_line * (1 - s->visited);
	u64 us = ((u64)exec >> 10) & 0xfffff, differ = halves & 1;
	s64 forgets = s->ahead >> SMOOTH_FORGET_SHIFT;

	s->line += ((u64)exec * (u64)halves) >> 1;
	/* The line began or ended anywhere in the stretch. */
	s->blur += differ * us * us;
	s->ahead += ((smooth_earned(exec, q16) * halves) >> 1) - booked - forgets;
	s->forgotten += forgets;
	s->in_line = in_line;
	s->visited = 0;
}

/* A thread, @exec after its last mark, takes over another's clock, which is @ahead of the same
 * local. What it has executed and nobody has booked will be booked to it later, and is none of that
 * clock: its next sample would move it once more. */
static __always_inline void smooth_woken(struct smooth *s, s64 exec, s64 ahead, u64 q16, u64 now)
{
	s->ahead = ahead - (s64)s->in_line * smooth_earned(exec, q16);
	s->taken = now;
	s->line = s->blur = 0;
}

/* What intervals of about one length have of it in the line: the mean share and its variance, and
 * how much of that variance is our guesses'. Of one line; of another one nothing is known. */
struct smooth_share {
	u64 line; /* a number that the line has and no other */
	u64 n;
	s64 mean;	    /* 1 / 2^32 */
	u64 variance, blur; /* 1 / 2^32 */
};

#define SMOOTH_FEW 8		    /* of so many intervals the variance means nothing */
#define SMOOTH_MANY 512		    /* what was longer ago is forgotten */
#define SMOOTH_LONGEST (1ULL << 40) /* ns; the products below have room for that */

/* The square root of @v, rounded down; @v < 2^32. Without branches, and the compiler must not make
 * any: the verifier would follow 2^16 ways. */
static __always_inline u64 smooth_root(u64 v)
{
	u64 root = 0;

	for (u64 bit = 1 << 15; bit; bit >>= 1) {
		u64 next = root + bit, over = (v - next * next) >> 63;

		asm volatile("" : "+r"(over));
		root += bit & (over - 1);
	}
	return root;
}

static __always_inline u64 smooth_size(s64 v)
{
	return v < 0 ? -(u64)v : (u64)v;
}

/* @share, 1 / 2^32, is one more of @of. @blur: its variance by guessing, 1 / 2^32. */
static __always_inline void smooth_learn(struct smooth_share *of, s64 share, u64 blur)
{
	s64 off = share - of->mean, step;
	u64 product;

	of->n += of->n < SMOOTH_MANY;
	/* BPF before 6.6 divides nothing signed. */
	step = (s64)(smooth_size(off) / of->n);
	of->mean += off < 0 ? -step : step;
	/* Welford's: both factors have one sign. */
	product = (smooth_size(off) >> 16) * (smooth_size(share - of->mean) >> 16);
	of->variance += product / of->n - of->variance / of->n;
	of->blur += blur / of->n - of->blur / of->n;
}

/* The time in the line of an interval that would take @length without the gain of it, from what its
 * thread says of that, @line and @blur (as in struct smooth). What thousands of intervals have in
 * the line is known well, of each it is known to a sample's distance; that would make the longest
 * ones longer. Where intervals of this length differ in their share by no more than guesses do,
 * they all had the mean; where they differ by more, each keeps so much of its difference that their
 * variance is what it is without the guesses (as an empirical Bayes estimator has it: Efron and
 * Morris, JASA 70, 1975; but by the root, which keeps the variance and not the least error). */
static __always_inline u64 smooth_line(struct smooth_share *of, u64 length, u64 line, u64 blur)
{
	u64 us = (length >> 10) + 1, kept;
	s64 share, off;

	if (!length || length >= SMOOTH_LONGEST)
		return line;
	if (line > length)
		line = length;
	share = (s64)((line << 16) / length << 16);
	blur = blur < 1ULL << 44 ? blur : 1ULL << 44;
	blur = ((blur << 20) / (us * us) << 12) / 12;
	smooth_learn(of, share, blur);
	if (of->n < SMOOTH_FEW)
		return line;
	kept = of->blur < of->variance ? smooth_root(0xffffffff - (of->blur << 32) / of->variance)
				       : 0;
	off = share - of->mean;
	off = (s64)((smooth_size(off) >> 16) * kept) * (off < 0 ? -1 : 1);
	share = of->mean + off;
	return share > 0 ? (length >> 8) * ((u64)share >> 16) >> 8 : 0;
}

/* What is learnt of intervals by their length: 16 classes to a power of two. */
#define SMOOTH_SHARES_SHIFT (HISTOGRAM_SUB_BITS - 4)
#define SMOOTH_SHARES ((HISTOGRAM_BUCKETS >> SMOOTH_SHARES_SHIFT) + 1)

/* The length of an interval that is @length by the clock of the thread that ends it, @end; @begin
 * was the clock of the thread that began it, at @ns,
 * @same: the same thread. Corrected by what is known of other intervals; @shares: SMOOTH_SHARES of
 * them; @line_number: the selected line has it and no other does. */
static __always_inline s64 smooth_length(const struct smooth *end, const struct smooth *begin,
					 u64 ns, u32 same, s64 length, u64 q16,
					 struct smooth_share *shares, u64 line_number)
{
	u64 line = end->line, blur = end->blur;
	s64 whole;
	u32 i;

	/* If it took over another's clock since, what it says is of later than that. One thread's
	 * clock says nothing of another's. */
	if (end->taken <= ns) {
		if (!same)
			return length;
		length -= end->forgotten - begin->forgotten;
		line -= begin->line;
		blur -= begin->blur;
	}
	whole = length + smooth_earned((s64)line, q16);
	if (whole <= 0)
		return length;
	i = histogram_bucket((u64)whole) >> SMOOTH_SHARES_SHIFT;
	if (i >= SMOOTH_SHARES)
		return length;
	if (shares[i].line != line_number)
		shares[i] = (struct smooth_share){.line = line_number};
	return whole - smooth_earned((s64)smooth_line(&shares[i], (u64)whole, line, blur), q16);
}
