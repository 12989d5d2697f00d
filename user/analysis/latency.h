/* SPDX-License-Identifier: BSD-2-Clause */
/* Latency points whose intervals were measured: means and percentiles, and what a faster line does
 * to them. Internal to the package.
 *
 * Which intervals count: an experiment of length D sees an interval of length d whole if it begins
 * in the experiment's first D - d. So long ones are seen too rarely, by the factor 1 - d/D, and
 * each counts 1 / (1 - d/D) times (Horvitz and Thompson, JASA 47, 1952: the inverse of the chance
 * to be in the sample). Both lengths are virtual time.
 *
 * Percentiles are of all experiments of a speedup together, not means of the experiments' own,
 * which are of too few intervals for the tail. Their intervals are by the bootstrap over
 * experiments: those are what is independent, not the requests in them. */
#pragma once

#include "analysis/effect.h"

#define LATENCY_DRAWS 300
/* Lines whose percentiles are told, of one point and in all of an analysis: bounded work. */
#define LATENCY_LINES_OF_POINT 64
#define LATENCY_LINES 256

/* The statistics of some experiments together, and LATENCY_DRAWS draws of them. At 0 %, effects are
 * relative to them. */
struct latency_base {
	size_t experiments;
	double intervals;
	double ns[N_LATENCY_STATISTICS];
	double draws[LATENCY_DRAWS][N_LATENCY_STATISTICS];
};
/* The caller's (free). */
struct latency_base *latency_base_make(const struct observation *obs, size_t n, struct rng *rng);

/* The line whose experiments above 0 % are @obs, by speedup; @step: speedups in thousandths that
 * are one cell;
 * @allow: what the method may be off by (analysis/fidelity.h). The caller's (free). */
struct analysis_latency *latency_line(const struct observation *obs, size_t n, unsigned int step,
				      const struct latency_base *base,
				      struct analysis_allowance allow, struct rng *rng);

/* Multiplies all effects on statistic @i; NaN: they are not known then. */
void latency_scale(struct analysis_latency *l, size_t i, double factor);

/* What is known of the point itself, from all of its experiments @obs and its baseline. The
 * caller's (free). */
struct analysis_intervals *latency_point(const struct observation *obs, size_t n,
					 const struct latency_base *base);
