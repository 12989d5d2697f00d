/* SPDX-License-Identifier: BSD-2-Clause */
/* What the next experiment tries. Every choice is a draw from the seed; none looks at a result,
 * because a plan that follows the results finds what it looks for. */
#pragma once

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two streams: how many lines are drawn depends on the program's timing, where the zeros come must
 * not. */
struct plan {
	struct rng speedups, lines;
	const double *grid; /* not owned */
	size_t n_grid, n_slow;
	double zero_share;
	double fixed_speedup;
	uint64_t n_dealt, n_blocks; /* experiments and blocks so far */
	uint64_t block_end,
		zero_at; /* experiments before the next block, and before this block's zero */
	size_t *deck;	 /* room for a line's. Owned */
};

/* What a line has been dealt; all zero at first. */
struct plan_line {
	uint64_t seed;
	uint64_t n_dealt; /* above 0 % */
};

/* @fixed_speedup negative: random, 0 with probability @zero_share, else uniform over @grid (which
 * outlives the plan; values in (0,1]; by the last @n_slow of them the line is to be slowed for
 * real). The zeros are spread among the others. Those are dealt to each line like cards, each value
 * of the grid once before any comes again, and of any four in a row one from each quarter of the
 * grid: so the few experiments of a line that is seldom drawn say as much as they can, and a short
 * run has no cell left empty by chance. -EINVAL: a value out of range, or random without a grid. */
int plan_init(struct plan *p, uint64_t seed, double fixed_speedup, double zero_share,
	      const double *grid, size_t n_grid, size_t n_slow);
void plan_free(struct plan *p); /* frees the contents, not @p */
/* The next experiment's speedup in @line: 0, or one of the grid. *ret_slows (NULL is allowed): the
 * line is to be slowed by it instead. */
double plan_speedup(struct plan *p, struct plan_line *line, bool *ret_slows);
/* One of @n_samples samples, each as likely as any other: its line is so drawn in proportion to
 * time. @n_samples > 0. */
uint64_t plan_sample(struct plan *p, uint64_t n_samples);

/* The largest speedup of the grid that is no more than @most; @most if there is none. */
double plan_at_most(const struct plan *p, double most);

/* What an experiment's length hangs on, none of which is a result. */
struct plan_pace {
	double visits_per_s;  /* of the point that is visited least; 0: not known */
	double samples_per_s; /* in the line; 0: not known */
	uint64_t elapsed_ns;  /* of the run so far */
	bool in_bursts;	      /* with rests between them */
};

/* How long an experiment is to be, ns: as long as 500 visits and 25 samples in its line take, but
 * from @shortest_ns to
 * @longest_ns. Of two runs of equal length the one with more experiments knows better how much they
 * scatter, and its lines have more speedups tried; past a hundred experiments that gains nothing,
 * and each costs a record and some work between two of them, so they get longer as the run does. In
 * bursts 25 visits do, whatever else: what a line is worth differs more from burst to burst, with
 * the load, than such an experiment scatters, so many bursts tell more than long ones do in the
 * same time. */
uint64_t plan_length(uint64_t shortest_ns, uint64_t longest_ns, const struct plan_pace *pace);
/* The pause after an experiment of @length_ns, ns: @cool_off_ns after one of @longest_ns, and after
 * a shorter one in proportion, as far as there is time for samples. */
uint64_t plan_cool_off(uint64_t cool_off_ns, uint64_t length_ns, uint64_t longest_ns);
