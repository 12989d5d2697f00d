/* SPDX-License-Identifier: BSD-2-Clause */
/* Does the method tell the truth about one line? The line was virtually sped up, and really slowed,
 * in the same run: the curve of the former, continued below 0, is compared with the latter. Pure.
 */
#pragma once

#include "profile/reader.h"

#include <stddef.h>

/* Points that prediction and truth may be apart. */
#define VALIDATION_BOUND 0.03
#define VALIDATION_LEVELS 2
/* What the experiments that slowed the line have as their line; their speedups are the share by
 * which it was slowed. */
#define VALIDATION_SLOWED "(slowed)"

enum validation_outcome {
	VALIDATION_AGREES,
	VALIDATION_GAP,
	VALIDATION_UNDECIDED,	   /* the intervals are too wide */
	VALIDATION_NOT_COMPARABLE, /* the curve need not go on straight below 0, and does not */
};

/* Effects are as in a report: negative where a round takes longer. */
struct validation_level {
	double slowed; /* the share by which the line was slowed */
	double measured, measured_half, predicted, predicted_half;
	double gap, gap_half; /* measured - predicted */
};

struct validation {
	enum validation_outcome outcome;
	const char *why;				   /* one sentence; a literal */
	struct validation_level levels[VALIDATION_LEVELS]; /* ascending; unknown numbers are NaN */
	size_t n_levels;
	size_t experiments;
	double missing_s; /* undecided: about how many more seconds; NaN: not known */
};

/* @p has experiments of one line, and the slowed ones. Only the first progress point with visits is
 * looked at. */
struct validation validation_make(const struct profile *p, uint64_t seed);
