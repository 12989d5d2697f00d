// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/plan.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Zeros in one deck, at most: keeps a share near 1 from asking for endless decks. */
#define MAX_ZEROS 1024

/* An experiment's edges cut through a visit and a sample: with so many of them that is a part of the scatter, not all of it. */
#define VISITS_WANTED 500
#define SAMPLES_WANTED 25
/* An experiment is no shorter than one in so many parts of the run before it. */
#define PARTS_OF_RUN 100

/* False for NaN too. */
static bool within(double v, double low, double high)
{
	return v >= low && v <= high;
}

int plan_init(struct plan *p, uint64_t seed, double fixed_speedup, double zero_share, const double *grid, size_t n_grid, size_t n_slow)
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
	p->n_deck = 0;
	p->deck = calloc(n_grid + MAX_ZEROS + 1, sizeof(*p->deck));
	return p->deck ? 0 : -ENOMEM;
}

void plan_free(struct plan *p)
{
	free(p->deck);
	p->deck = NULL;
}

/* A new deck: the grid once, and as many zeros as make up their share. The fraction of a zero that remains is a draw of its own. The deck
 * is as many blocks as there are zeros, each with one of them at a random place (randomised blocks), so that every experiment has a 0 % one
 * near it in time: what changes slowly is the same for both. */
static void shuffle(struct plan *p)
{
	double zeros = (double)p->n_grid * p->zero_share / (1 - p->zero_share);
	size_t n_zeros = zeros < MAX_ZEROS ? (size_t)zeros : MAX_ZEROS, left = p->n_grid;

	if (rng_unit(&p->speedups) < zeros - (double)n_zeros)
		n_zeros++;
	p->n_deck = p->n_grid + n_zeros;
	for (size_t i = 0; i < p->n_grid; i++)
		p->deck[i] = i;
	for (size_t i = p->n_grid; i > 1; i--) {
		size_t j = rng_below(&p->speedups, i), card = p->deck[j];

		p->deck[j] = p->deck[i - 1];
		p->deck[i - 1] = card;
	}
	/* From the top, in place: there is room for every card above those that are still to be moved. */
	for (size_t block = n_zeros, end = p->n_deck; block > 0; block--) {
		size_t begin = p->n_deck * (block - 1) / n_zeros, zero = begin + rng_below(&p->speedups, end - begin);

		while (end > begin) {
			end--;
			p->deck[end] = end == zero ? p->n_grid : p->deck[--left];
		}
	}
}

double plan_speedup(struct plan *p, bool *ret_slows)
{
	size_t card;

	if (ret_slows)
		*ret_slows = false;
	if (p->fixed_speedup >= 0)
		return p->fixed_speedup;
	if (p->n_grid == 0 || p->zero_share >= 1)
		return 0;
	if (p->n_deck == 0)
		shuffle(p);
	card = p->deck[--p->n_deck];
	if (card == p->n_grid)
		return 0;
	if (ret_slows)
		*ret_slows = card >= p->n_grid - p->n_slow;
	return p->grid[card];
}

uint64_t plan_sample(struct plan *p, uint64_t n_samples)
{
	return rng_below(&p->lines, n_samples);
}

uint64_t plan_length(uint64_t shortest_ns, uint64_t longest_ns, const struct plan_pace *pace)
{
	double ns;

	if (!(pace->visits_per_s > 0) || !(pace->samples_per_s > 0))
		return longest_ns;
	ns = (double)NSEC_PER_SEC * fmax(VISITS_WANTED / pace->visits_per_s, SAMPLES_WANTED / pace->samples_per_s);
	ns = fmax(ns, (double)pace->elapsed_ns / PARTS_OF_RUN);
	return ns >= (double)longest_ns ? longest_ns : ns <= (double)shortest_ns ? shortest_ns : (uint64_t)ns;
}
