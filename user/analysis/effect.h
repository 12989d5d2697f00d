/* SPDX-License-Identifier: BSD-2-Clause */
/* Periods of groups of experiments, and effects of one group against another, with their
 * uncertainty. Internal. */
#pragma once

#include "analysis/collect.h"
#include "base/rng.h"

#define RESAMPLES 1000
/* A group with more experiments than this is resampled in blocks of neighbours: bounded work, and
 * kinder to slow drift. */
#define MAX_BLOCKS 512

/* Experiments that are pooled: those of @obs (in one piece) whose key is in [low, high], read one
 * way. */
struct group {
	size_t n;
	double num, den, visits;
	double period;	  /* num / den; NaN without visits */
	double weight;	  /* sum of the experiments' */
	double noise_sum; /* sum of squared residuals, each relative to the period of an average
			     experiment, and as if its weight were 1 */
};

/* How much experiments of the same kind differ, pooled over all groups of a point: relative
 * variance of one experiment of weight 1, and on how many degrees of freedom it rests. It steadies
 * groups too small to tell by themselves: random speedups on a fine grid leave one or two
 * experiments in a cell. */
struct noise {
	double variance, df;
};

struct group group_make(const struct observation *obs, size_t n, enum reading how);
void noise_add(struct noise *total, const struct group *g); /* sums; then: */
void noise_finish(struct noise *total);

/* Squared standard error of the group's period, relative to it, and its degrees of freedom; NaN if
 * it cannot be told. */
double group_variance(const struct group *g, const struct noise *noise, double *ret_df);

struct effect {
	double value, se, df; /* se NaN: unknown */
};

struct effect effect_of(const struct group *g, const struct group *base, const struct noise *noise);
/* Probability of an effect at least as far from 0 if there is none beyond @allowance, the method's
 * own error; NaN if unknown. */
double effect_chance(const struct effect *e, double allowance);
double effect_half_width(const struct effect *e); /* of the 95 % interval by Student's t */

/* The group's period recomputed from RESAMPLES draws of its experiments with replacement; NaN where
 * a draw has no visits. */
void group_resample(const struct observation *obs, size_t n, enum reading how, struct rng *rng,
		    double periods[RESAMPLES]);
/* 95 % half-width of one random half of the group against the other; NaN below 4 experiments. */
double group_placebo(const struct observation *obs, size_t n, enum reading how, struct rng *rng);
