// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/fidelity.h"

#include "analysis/analysis.h"

#include <math.h>

#define IMBALANCE_BOUND 0.01
#define OVERSLEEP_BOUND 0.25

#define METHOD_POINTS 0.005
#define METHOD_SHARE 0.01
#define PERIOD_SHARE 0.25 /* per sampling period in the time between two visits */
#define MOST_SHARE 0.10	  /* visits can be much shorter than what threads wait for */

static double bounded(double value, double bound)
{
	return value > bound ? bound / value * (bound / value) : 1;
}

double fidelity_weight(const struct profile_experiment *x)
{
	double length = (double)(x->elapsed ? x->elapsed : x->duration), weight = 1;

	if (x->foreign > 0 && x->foreign <= 1)
		weight *= bounded(x->foreign, ANALYSIS_FOREIGN_FLAG);
	if (length > 0)
		weight *= bounded(fabs((double)x->imbalance) / length, IMBALANCE_BOUND);
	if (x->paid)
		weight *= bounded(fabs((double)x->oversleep) / (double)x->paid, OVERSLEEP_BOUND);
	/* A hostile file's numbers must not make the weight vanish. */
	return fmax(weight, 1e-6);
}

bool fidelity_within_bounds(const struct profile_experiment *x)
{
	return fidelity_weight(x) >= 1;
}

double fidelity_allowed_share(double period_ns, double visit_ns)
{
	if (!(period_ns > 0) || !(visit_ns > 0))
		return NAN;
	return fmin(METHOD_SHARE + PERIOD_SHARE * period_ns / visit_ns, MOST_SHARE);
}

double fidelity_allowance(double share, double effect)
{
	return isnan(share) ? 0 : METHOD_POINTS + share * fabs(effect);
}
