// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/slowing.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

#define ENOUGH_SAMPLES \
	500 /* how long a visit takes is known to 4 % then; later experiments make it exact */
#define LEAST_SAMPLES 50
#define LONGEST_NS (1 * NSEC_PER_SEC)
#define SHORTEST_NS (50 * NSEC_PER_MSEC)
/* So much dearer than allowed, a program is not to be kept waiting for the rest. */
#define FAR 10
/* The kernel may have no way to run others meanwhile. A visit that is longer has samples enough to
 * be slowed evenly. */
#define LONGEST_SPIN_NS (2 * NSEC_PER_MSEC)

double slowing_cost(const struct slowing_seen *x)
{
	return x->elapsed_ns ? (double)x->visits * (double)x->cost_ns / (double)x->elapsed_ns : 0;
}

enum slowing_way slowing_judge(const struct slowing_seen *x, char *why, size_t size)
{
	double cost = slowing_cost(x),
	       per_visit = x->visits ? (double)x->line_ns / (double)x->visits : 0;
	bool over = x->elapsed_ns >= LONGEST_NS;

	if (size)
		*why = '\0';
	if (x->elapsed_ns < SHORTEST_NS)
		return SLOWING_OPEN;
	if (cost > (over ? SLOWING_COST_BOUND : FAR * SLOWING_COST_BOUND))
		(void)snprintf(
			why, size,
			"a probe at each visit takes up to %.0f %% of the run, %.0f %% are allowed",
			100 * fmin(cost, 1), 100 * SLOWING_COST_BOUND);
	else if (!over && x->samples < ENOUGH_SAMPLES)
		return SLOWING_OPEN;
	else if (!x->visits)
		(void)snprintf(why, size, "no visit was seen in the first %.1f s",
			       (double)x->elapsed_ns / (double)NSEC_PER_SEC);
	else if (x->samples < LEAST_SAMPLES)
		(void)snprintf(why, size,
			       "too few samples fell into the line in the first %.1f s to tell how "
			       "long a visit takes",
			       (double)x->elapsed_ns / (double)NSEC_PER_SEC);
	else if (x->most * per_visit > LONGEST_SPIN_NS)
		(void)snprintf(why, size,
			       "a visit takes %.3g ms: it cannot be stopped for so long in one go",
			       per_visit / (double)NSEC_PER_MSEC);
	else if (cost > SLOWING_COST_BOUND)
		return SLOWING_OPEN; /* visits come unevenly: the whole second tells */
	else
		return SLOWING_BY_PROBE;
	return SLOWING_BY_SAMPLES;
}
