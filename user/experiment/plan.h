/* SPDX-License-Identifier: BSD-2-Clause */
/* What the next experiment tries. Every choice is a draw from the seed; none looks at a result, because a plan that follows
 * the results finds what it looks for. */
#pragma once

#include "base/rng.h"

#include <stddef.h>
#include <stdint.h>

/* Two streams: how many lines are drawn depends on the program's timing, the sequence of speedups must not. */
struct plan {
	struct rng speedups, lines;
	const double *grid; /* not owned */
	size_t n_grid;
	double zero_share;
	double fixed_speedup;
	/* What is left of the deck that speedups are dealt from, as indexes into the grid; n_grid: 0 %. Owned. */
	size_t *deck;
	size_t n_deck;
};

/* @fixed_speedup negative: random, 0 with probability @zero_share, else uniform over @grid (which outlives the plan; values in [-1,1],
 * none of them 0: below 0 the line is to be slowed). They are dealt like cards, each value of the grid once before any comes again, so that a
 * short run has no cell left empty by chance, and with the zeros spread among them.
 * -EINVAL: a value out of range, or random without a grid; -ENOMEM. */
int plan_init(struct plan *p, uint64_t seed, double fixed_speedup, double zero_share, const double *grid, size_t n_grid);
void plan_free(struct plan *p); /* frees the contents, not @p */
/* The next experiment's speedup: 0, or one of the grid. */
double plan_speedup(struct plan *p);
/* One of @n_samples samples, each as likely as any other: its line is so drawn in proportion to time. @n_samples > 0. */
uint64_t plan_sample(struct plan *p, uint64_t n_samples);
