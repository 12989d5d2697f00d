/* SPDX-License-Identifier: BSD-2-Clause */
/* Does a line's speedup matter? A test that makes no assumption about how experiments scatter.
 * Internal to the package.
 *
 * Speedups are drawn at random. So if they do not matter, any other assignment of the same speedups
 * to the same experiments was as likely, and the share of assignments that look at least as much
 * like an effect is the p-value (Fisher, The Design of Experiments, 1935). That holds for visits
 * that come in bursts, too, where Student's t finds effects in nothing: an average of few large
 * numbers and many small ones is no normal deviate. */
#pragma once

#include "analysis/collect.h"
#include "base/rng.h"

struct permutation {
	double chance; /* two-sided p-value of "no effect beyond @allowance"; NaN: nothing to
			  compare */
	double sign;   /* of the effect that it speaks of: 1 less time per visit, -1 more */
};

/* @obs: the line's @n experiments above 0 %. @base: @n_base experiments at 0 % that they are
 * compared with. @allowance: the method's own error, of an effect. @rng is a copy, so that the
 * caller's sequence stays as it is. */
struct permutation permutation_test(const struct observation *obs, size_t n,
				    const struct observation *base, size_t n_base, enum reading how,
				    double allowance, struct rng rng);
