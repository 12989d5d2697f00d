/* SPDX-License-Identifier: BSD-2-Clause */
/* How far one experiment, and the method itself, can be trusted, by rules that do not look at what it shows. Internal. */
#pragma once

#include "profile/profile.h"

#include <stdbool.h>

/* What an experiment counts for: 1 within the bounds, less beyond them, and the effect that it shows plays no part. Twice as far beyond as
 * another, it is taken to scatter twice as much, so that it counts for a quarter; never for nothing. The bounds: in-scope threads wait
 * behind foreign tasks for at most 2 % of their time, no thread's books are off by more than 1 % of the experiment, and payments overshoot
 * by no more than a quarter of what is paid. */
double fidelity_weight(const struct profile_experiment *x);
bool fidelity_within_bounds(const struct profile_experiment *x);

/* What an effect can be off by for reasons that repeating does not average out, as a 95 % half-width: half a point, and a share of the
 * effect. The share is one per cent, and more where the time between visits is not many sampling periods: a pause is about
 * a period long, and one that stands for several rounds answers for none of them exactly. Found on the truth suite (tests/truth/README.md).
 * @period_ns: between samples; 0, a profile that does not say how it was measured: nothing is known, NaN. */
double fidelity_allowed_share(double period_ns, double visit_ns);
double fidelity_allowance(double share, double effect);
