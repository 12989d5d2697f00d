// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/fidelity.h"

#include "analysis/analysis.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

#define IMBALANCE_BOUND 0.01
#define OVERSLEEP_BOUND 0.25
#define RATE_BOUND 0.05

/* What intervals allow for the method, by tests/truth/HISTORY.md ("Why intervals are wider than the
 * noise"). */
#define METHOD_POINTS 0.008
#define METHOD_SHARE 0.035
#define PERIOD_SHARE 0.05 /* per sampling period in the time between two visits */
#define MOST_SHARE 0.045  /* visits can be much shorter than what threads wait for */
/* In addition for waits: the profiler does not control what ends them, and with rounds of 1 to 2 ms
 * the effect beyond a knee is 2 to 4 points off. */
#define WAIT_POINTS 0.015
#define WAIT_SHARE 0.07
#define PHASE_SHARE                                                                            \
	0.08 /* of an effect that phase correction changed: experiments that begin in a line's \
		phase end in another's */
/* Of what samples cost in a visit, how much of its scatter from visit to visit shows in an effect.
 * That is the root of their number if they come as they like. Of two threads that take equally
 * long, the later is behind their mean by 1/sqrt(pi) of it; seldom are two so near to each other.
 */
#define SCATTER_PART 0.1
#define LEAST_SAMPLES \
	6.0 /* a visit: the rate follows to that; with fewer, visits are no rounds of anything */
#define MOST_SAMPLING 0.3 /* a file can say anything */

static double bounded(double value, double bound)
{
	return value > bound ? bound / value * (bound / value) : 1;
}

uint64_t *fidelity_settled_periods(const struct profile *p)
{
	uint64_t *ret = xcalloc(p->n_runs + 1, sizeof(*ret));

	for (size_t i = 0; i < p->n_experiments; i++)
		ret[p->experiments[i].run] = p->experiments[i].x.period_ns;
	return ret;
}

double *fidelity_usual_lengths(const struct profile *p)
{
	_cleanup_free_ double *n = xcalloc(p->n_runs + 1, sizeof(*n));
	double *ret = xcalloc(p->n_runs + 1, sizeof(*ret));

	for (size_t i = 0; i < p->n_experiments; i++) {
		ret[p->experiments[i].run] += fidelity_length(&p->experiments[i].x);
		n[p->experiments[i].run]++;
	}
	for (size_t i = 0; i <= p->n_runs; i++)
		ret[i] /= fmax(n[i], 1);
	return ret;
}

double fidelity_share(double share)
{
	return share >= 0 && share <= 1 ? share : 0;
}

double fidelity_length(const struct profile_experiment *x)
{
	return (double)(x->elapsed ? x->elapsed : x->duration);
}

double fidelity_weight(const struct profile_experiment *x, uint64_t settled_period_ns)
{
	double length = fidelity_length(x), weight = 1;

	weight *= bounded(fidelity_share(x->foreign), ANALYSIS_FOREIGN_FLAG);
	weight *= bounded(fidelity_share(x->stolen), ANALYSIS_STOLEN_FLAG);
	if (length > 0)
		weight *= bounded(fabs((double)x->imbalance) / length, IMBALANCE_BOUND);
	if (x->paid)
		weight *= bounded(fabs((double)x->oversleep) / (double)x->paid, OVERSLEEP_BOUND);
	if (x->period_ns && settled_period_ns)
		weight *= bounded(fabs((double)x->period_ns / (double)settled_period_ns - 1),
				  RATE_BOUND);
	return fmax(weight, FIDELITY_LEAST_WEIGHT);
}

struct analysis_allowance fidelity_allow(double period_ns, double visit_ns, double sampling,
					 bool waits)
{
	if (!(period_ns > 0) || !(visit_ns > 0))
		return (struct analysis_allowance){.share = NAN, .presence = {1, 1, 0}};
	return (struct analysis_allowance){
		.presence = {1, 1, 0},
		.share = hypot(fmin(METHOD_SHARE + PERIOD_SHARE * period_ns / visit_ns, MOST_SHARE),
			       waits ? WAIT_SHARE : 0),
		.waits = waits ? WAIT_POINTS : 0,
		.sampling = sampling > 0 ? fmin(sampling, MOST_SAMPLING) : 0,
		.scatter = SCATTER_PART / sqrt(fmax(visit_ns / period_ns, LEAST_SAMPLES)),
	};
}

double fidelity_allowance(struct analysis_allowance allow, double effect)
{
	double points = hypot(hypot(METHOD_POINTS, allow.waits), allow.scatter * allow.sampling) *
			allow.presence.factor;
	double share = hypot(allow.share, allow.presence.factor == 1 ? 0 : PHASE_SHARE);

	return isnan(allow.share) ? 0 : hypot(points, hypot(share, allow.presence.error) * effect);
}
