// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/plan.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define QUARTERS 4

/* An experiment's edges cut through a visit and a sample: with so many of them that is a part of
 * the scatter, not all of it. */
#define VISITS_WANTED 500
#define SAMPLES_WANTED 25
/* At a duty cycle the load differs from burst to burst, by more than a few visits do: many short
 * bursts say more than few long ones. However few samples are in the line then: what they do to the
 * visits is in the sum over the bursts. */
#define VISITS_IN_BURST 25
/* An experiment is no shorter than one in so many parts of the run before it. */
#define PARTS_OF_RUN 100
/* The next line is drawn from the samples between two experiments: there must be some. */
#define LEAST_COOL_OFF_NS (2 * NSEC_PER_MSEC)

/* False for NaN too. */
static bool within(double v, double low, double high)
{
	return v >= low && v <= high;
}

int plan_init(struct plan *p, uint64_t seed, double fixed_speedup, double zero_share,
	      const double *grid, size_t n_grid, size_t n_slow)
{
	if (!within(fixed_speedup, -1, 1) || !within(zero_share, 0, 1) || n_slow > n_grid)
		return -EINVAL;
	for (size_t i = 0; i < n_grid; i++)
		if (!within(grid[i], 0, 1) || grid[i] == 0)
			return -EINVAL;
	if (fixed_speedup < 0 && n_grid == 0 && zero_share < 1)
		return -EINVAL;
	rng_seed(&p->speedups, seed);
	rng_seed(&p->lines, rng_next(&p->speedups));
	p->grid = grid;
	p->n_grid = n_grid;
	p->n_slow = n_slow;
	p->zero_share = zero_share;
	p->fixed_speedup = fixed_speedup;
	p->n_dealt = p->n_blocks = p->block_end = 0;
	p->deck = xcalloc(n_grid, sizeof(*p->deck));
	return 0;
}

void plan_free(struct plan *p)
{
	free(p->deck);
	p->deck = NULL;
}

/* Experiments are in blocks, each with one zero at a random place (randomised blocks), so that
 * every experiment has a 0 % one near it in time: what changes slowly is the same for both. */
static bool is_zero(struct plan *p)
{
	if (p->zero_share <= 0)
		return false;
	if (p->n_dealt == p->block_end) {
		p->block_end = (uint64_t)((double)++p->n_blocks / p->zero_share);
		p->zero_at = p->n_dealt + rng_below(&p->speedups, p->block_end - p->n_dealt);
	}
	return p->n_dealt++ == p->zero_at;
}

static void shuffle(struct rng *r, size_t *cards, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = rng_below(r, i), card = cards[j];

		cards[j] = cards[i - 1];
		cards[i - 1] = card;
	}
}

/* The line's next card. Its decks are made anew from their seed each time: they are small, lines
 * are many, and experiments take long. */
static size_t deal(struct plan *p, struct plan_line *line)
{
	size_t quarters = p->n_grid < QUARTERS ? p->n_grid : QUARTERS, of[QUARTERS], at[QUARTERS],
	       n = 0, nth = line->n_dealt % p->n_grid;
	struct rng r;

	if (!line->n_dealt)
		line->seed = rng_next(&p->speedups);
	rng_seed(&r, line->seed + line->n_dealt / p->n_grid);
	line->n_dealt++;
	for (size_t i = 0; i < p->n_grid; i++)
		p->deck[i] = i;
	for (size_t q = 0; q < quarters; q++) {
		of[q] = q;
		at[q] = q * p->n_grid / quarters;
		shuffle(&r, p->deck + at[q], (q + 1) * p->n_grid / quarters - at[q]);
	}
	/* One from each quarter in an order of their own, and again, as long as they last. */
	for (;;) {
		shuffle(&r, of, quarters);
		for (size_t i = 0; i < quarters; i++)
			if (at[of[i]] < (of[i] + 1) * p->n_grid / quarters && n++ == nth)
				return p->deck[at[of[i]]];
			else
				at[of[i]]++;
	}
}

double plan_speedup(struct plan *p, struct plan_line *line, bool *ret_slows)
{
	size_t card;

	if (ret_slows)
		*ret_slows = false;
	if (p->fixed_speedup >= 0)
		return p->fixed_speedup;
	if (p->n_grid == 0 || p->zero_share >= 1 || is_zero(p))
		return 0;
	card = deal(p, line);
	if (ret_slows)
		*ret_slows = card >= p->n_grid - p->n_slow;
	return p->grid[card];
}

double plan_at_most(const struct plan *p, double most)
{
	double ret = 0;

	for (size_t i = 0; i < p->n_grid; i++)
		if (p->grid[i] <= most)
			ret = fmax(ret, p->grid[i]);
	return ret > 0 ? ret : most;
}

uint64_t plan_sample(struct plan *p, uint64_t n_samples)
{
	return rng_below(&p->lines, n_samples);
}

uint64_t plan_length(uint64_t shortest_ns, uint64_t longest_ns, const struct plan_pace *pace)
{
	double ns;

	if (!(pace->visits_per_s > 0) || (!pace->in_bursts && !(pace->samples_per_s > 0)))
		return longest_ns;
	if (pace->in_bursts)
		ns = (double)NSEC_PER_SEC * VISITS_IN_BURST / pace->visits_per_s;
	else
		ns = fmax((double)NSEC_PER_SEC * fmax(VISITS_WANTED / pace->visits_per_s,
						      SAMPLES_WANTED / pace->samples_per_s),
			  (double)pace->elapsed_ns / PARTS_OF_RUN);
	return ns >= (double)longest_ns	   ? longest_ns
	       : ns <= (double)shortest_ns ? shortest_ns
					   : (uint64_t)ns;
}

uint64_t plan_cool_off(uint64_t cool_off_ns, uint64_t length_ns, uint64_t longest_ns)
{
	double ns = (double)cool_off_ns * ((double)length_ns / (double)longest_ns);

	if (length_ns >= longest_ns || cool_off_ns <= LEAST_COOL_OFF_NS)
		return cool_off_ns;
	return ns > (double)LEAST_COOL_OFF_NS ? (uint64_t)ns : LEAST_COOL_OFF_NS;
}
