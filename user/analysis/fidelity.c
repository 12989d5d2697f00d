// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/fidelity.h"

#include "analysis/analysis.h"

#include <math.h>
#include <stdlib.h>

#define IMBALANCE_BOUND 0.01
#define OVERSLEEP_BOUND 0.25
#define RATE_BOUND 0.05

#define METHOD_POINTS 0.005
#define POINTS_OF_SHARE 0.3 /* of what the share is beyond LONG_SHARE: lines without effect are off by more, too, where visits are short */
#define LONG_SHARE 0.04
#define METHOD_SHARE 0.01
#define PERIOD_SHARE 0.25 /* per sampling period in the time between two visits */
#define MOST_SHARE 0.10	  /* visits can be much shorter than what threads wait for */

static double bounded(double value, double bound)
{
	return value > bound ? bound / value * (bound / value) : 1;
}

uint64_t *fidelity_settled_periods(const struct profile *p)
{
	uint64_t *ret = calloc(p->n_runs + 1, sizeof(*ret));

	for (size_t i = 0; ret && i < p->n_experiments; i++)
		ret[p->experiments[i].run] = p->experiments[i].x.period_ns;
	return ret;
}

double fidelity_share(double share)
{
	return share >= 0 && share <= 1 ? share : 0;
}

double fidelity_weight(const struct profile_experiment *x, uint64_t settled_period_ns)
{
	double length = (double)(x->elapsed ? x->elapsed : x->duration), weight = 1;

	weight *= bounded(fidelity_share(x->foreign), ANALYSIS_FOREIGN_FLAG);
	weight *= bounded(fidelity_share(x->stolen), ANALYSIS_STOLEN_FLAG);
	if (length > 0)
		weight *= bounded(fabs((double)x->imbalance) / length, IMBALANCE_BOUND);
	if (x->paid)
		weight *= bounded(fabs((double)x->oversleep) / (double)x->paid, OVERSLEEP_BOUND);
	if (x->period_ns && settled_period_ns)
		weight *= bounded(fabs((double)x->period_ns / (double)settled_period_ns - 1), RATE_BOUND);
	/* A hostile file's numbers must not make the weight vanish. */
	return fmax(weight, 1e-6);
}

bool fidelity_within_bounds(const struct profile_experiment *x, uint64_t settled_period_ns)
{
	return fidelity_weight(x, settled_period_ns) >= 1;
}

double fidelity_allowed_share(double period_ns, double visit_ns)
{
	if (!(period_ns > 0) || !(visit_ns > 0))
		return NAN;
	return fmin(METHOD_SHARE + PERIOD_SHARE * period_ns / visit_ns, MOST_SHARE);
}

double fidelity_allowance(double share, double effect)
{
	return isnan(share) ? 0 : METHOD_POINTS + POINTS_OF_SHARE * fmax(0, fmin(share, MOST_SHARE) - LONG_SHARE) + share * fabs(effect);
}
