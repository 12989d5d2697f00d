/* SPDX-License-Identifier: BSD-2-Clause */
/* A line's fitted curve with its uncertainty. Internal to the package. */
#pragma once

#include "analysis/effect.h"

/* What a line's effects are relative to: the baseline's period, and RESAMPLES draws of it. */
struct curve_base {
	double period;
	const double *resampled;
};

/* @obs are the line's experiments above 0 %, by speedup. Intervals by the bootstrap: experiments
 * and baseline are drawn with replacement and the curve is fitted anew each time, knee or none
 * included. Nothing is known (NaN) where there are too few experiments, or where a whole speedup
 * went without a visit. */
void curve_make(const struct observation *obs, size_t n, enum reading how,
		const struct curve_base *base, struct rng *rng, struct analysis_curve *ret);
/* Marks all that comes from a fit as unknown. */
void curve_forget(struct analysis_curve *c);
