/* SPDX-License-Identifier: BSD-2-Clause */
/* How far one experiment, and the method itself, can be trusted, by rules that do not look at what
 * it shows. Internal. */
#pragma once

#include "analysis/analysis.h"
#include "profile/reader.h"

#include <stdint.h>

/* A share as a file says it; what is none says nothing: 0. */
double fidelity_share(double share);

/* How long it took, pauses included; of a file by Coz, without them. */
double fidelity_length(const struct profile_experiment *x);

/* A hostile file's numbers must not make a weight vanish. */
#define FIDELITY_LEAST_WEIGHT 1e-6

/* What an experiment counts for: 1 within the bounds, less beyond them, and the effect that it
 * shows plays no part. Twice as far beyond as another, it is taken to scatter twice as much, so
 * that it counts for a quarter; never for nothing. The bounds: in-scope threads wait behind foreign
 * tasks for at most 2 % of their time, a hypervisor took no more than 3 % of that, no thread's
 * books are off by more than 1 % of the experiment, payments overshoot by no more than a quarter of
 * what is paid, and samples were as far apart as in the end, within 5 %: ticks cost time, so an
 * experiment from before the rate had followed the visits is faster than its neighbours, whatever
 * its speedup. @settled_period_ns: of its run, or 0. */
double fidelity_weight(const struct profile_experiment *x, uint64_t settled_period_ns);
/* One entry per run, the caller's (free): ns between samples at its end; 0: not in the profile. */
uint64_t *fidelity_settled_periods(const struct profile *p);
/* One entry per run: how long its experiments are on average, ns. Owned by the caller. */
double *fidelity_usual_lengths(const struct profile *p);

/* What an effect can be off by for reasons that repeating does not average out, as a 95 %
 * half-width. The causes are independent of each other, so it is the root of the sum of their
 * squares: 0.8 points, whatever the effect is; 3.5 % of it, and 5 % for each sampling period in the
 * time between visits, since a pause is about a period long and one that stands for several rounds
 * answers for none of them exactly; 8 % of it where phase correction changed it; and a part of what
 * sampling costs, which scatters from round to round, so that a thread that natively is never the
 * last to arrive is it now and then, and then does matter. The form was found on one half of the
 * truth suite and judged on the other and on a second machine; the last figures are by all of it
 * (tests/truth/HISTORY.md). If the line is a wait, 1.5 points and 7 % of the effect are added.
 * @period_ns: between samples; 0, a profile that does not say how it was measured: nothing is
 * known, the share is NaN.
 * @sampling: of a thread's time, the share that samples take. @waits: the line is a wait. */
struct analysis_allowance fidelity_allow(double period_ns, double visit_ns, double sampling,
					 bool waits);
double fidelity_allowance(struct analysis_allowance allow, double effect);
