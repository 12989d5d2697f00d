/* SPDX-License-Identifier: BSD-2-Clause */
/* How can a line be slowed for real? Sample by sample, which is always possible but comes in steps
 * of a sampling period; or visit by visit, by a probe that spins, where that is cheap and short.
 * Judged by an experiment at 0 % with the probe in place. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much of the run the probe may take, as if all visits were made one after the other. */
#define SLOWING_COST_BOUND 0.02

struct slowing_seen {
	uint64_t elapsed_ns;
	uint64_t visits;
	uint64_t cost_ns;	   /* of a visit's probe, not spinning */
	uint64_t samples, line_ns; /* in the line, and the time that they stand for, of all threads:
				    * without what was spun */
	uint64_t spun_ns;	   /* by which visits were made longer */
	double most;		   /* the largest share by which the line will be slowed, 0..1 */
};

enum slowing_way {
	SLOWING_OPEN, /* look longer */
	SLOWING_BY_PROBE,
	SLOWING_BY_SAMPLES,
};

/* @why, of @size, says why it is by samples, as the end of a sentence; else it is "". */
enum slowing_way slowing_judge(const struct slowing_seen *x, char *why, size_t size);
/* The share of the time that the probe takes. */
double slowing_cost(const struct slowing_seen *x);
