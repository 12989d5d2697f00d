// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/forecast.h"

#include "analysis/fidelity.h"
#include "analysis/stats.h"

#include <math.h>

#define SURELY 0.8    /* how probable it must be that the line is decided by then */
#define EFFECTS 0.2   /* the standard deviation of effects at 100 %, of lines that have one */
#define INTERVAL 1.96 /* 95 % are within so many standard errors */
#define MOST 1000.0
#define STEP 1.1

static double below(double x)
{
	return erfc(-x / M_SQRT2) / 2;
}

/* The deviate with that two-sided p-value. */
static double deviate(double chance)
{
	double low = 0, high = 40;

	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;

		if (erfc(mid / M_SQRT2) > chance)
			low = mid;
		else
			high = mid;
	}
	return high;
}

/* An estimate, to which experiments are added until there are @factor times as many. If the effect
 * is @truth, the new ones' mean is that, with an error of @se / sqrt(@factor - 1). */
struct later {
	double mean, sd;
};

static struct later later(const struct effect *now, double truth, double factor)
{
	return (struct later){now->value / factor + truth * (1 - 1 / factor),
			      now->se * sqrt(factor - 1) / factor};
}

static double within(const struct later *l, double bound)
{
	return bound > 0 ? below((bound - l->mean) / l->sd) - below((-bound - l->mean) / l->sd) : 0;
}

/* The chance that the line is decided then, if its effect at 100 % is @truth and it is a straight
 * line. */
static double decided(const struct analysis_line *line, const struct evidence *ev,
		      const struct forecast_bars *bars, double bar, double truth, double factor)
{
	struct later l = later(&ev->trend, truth, factor);
	double own = fidelity_allowance(line->allow, 0);
	double open = within(
		&l, fmax(own + bar * ev->trend.se / sqrt(factor), bars->least / ev->most_speedup));
	double flat = 1;

	for (size_t i = 0; i < N_QUARTERS; i++) {
		const struct effect *e = &ev->quarters[i];

		if (isnan(e->value) || isnan(e->se))
			continue;
		l = later(e, truth * ev->speedups[i], factor);
		flat *= within(&l, bars->nothing - hypot(effect_half_width(e) / sqrt(factor), own));
	}
	return 1 - open * (1 - flat);
}

/* How probable the trend is, if effects are normal with that deviation around 0; less a factor. */
static double likelihood(const struct effect *trend, double deviation)
{
	double sd = hypot(trend->se, deviation);

	return exp(-trend->value * trend->value / (2 * sd * sd)) / sd;
}

/* Of a line of which nothing is known but that it is one of those, the trend that stands out is
 * mostly luck, which does not last. So before the experiments, a line has no effect with the
 * probability @bars->none, and else one of any size up to about EFFECTS. */
static double expected(const struct analysis_line *line, const struct evidence *ev,
		       const struct forecast_bars *bars, double bar, double factor)
{
	double none = bars->none * likelihood(&ev->trend, 0),
	       some = (1 - bars->none) * likelihood(&ev->trend, EFFECTS),
	       part = EFFECTS * EFFECTS / (EFFECTS * EFFECTS + ev->trend.se * ev->trend.se),
	       sum = 0, weights = 0;

	for (double z = -3; z <= 3; z += 0.25) {
		double weight = exp(-z * z / 2),
		       truth = part * ev->trend.value + z * sqrt(part) * ev->trend.se;

		sum += weight * decided(line, ev, bars, bar, truth, factor);
		weights += weight;
	}
	none /= none + some;
	return none * decided(line, ev, bars, bar, 0, factor) + (1 - none) * sum / weights;
}

double forecast_factor(const struct analysis_line *line, const struct evidence *ev,
		       const struct forecast_bars *bars)
{
	double bar = deviate(bars->limit), beyond, widest = 0, narrowest = INFINITY;
	struct evidence e = *ev;

	if (!(e.trend.se > 0))
		return NAN;
	/* The quarter that has had few experiments gets as many as the others from now on. */
	for (size_t i = 0; i < N_QUARTERS; i++)
		widest = fmax(widest, e.quarters[i].se);
	for (size_t i = 0; i < N_QUARTERS; i++)
		e.quarters[i].se = widest;
	/* Neither the p-value nor the intervals are by the trend alone. */
	beyond = fabs(e.trend.value) - fidelity_allowance(line->allow, 0);
	if (e.chance < 1)
		e.trend.se = fmax(e.trend.se, beyond / deviate(e.chance));
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct analysis_change c = analysis_shown(line, k);

		narrowest = fmin(narrowest, (c.high - c.low) / 2 / fabs(c.effect));
	}
	if (isfinite(narrowest))
		e.trend.se = fmax(e.trend.se, fabs(e.trend.value) * narrowest / INTERVAL);
	if (expected(line, &e, bars, bar, MOST) < SURELY)
		return NAN;
	/* The first factor is above 1: now the line is not decided. */
	for (double factor = STEP; factor <= MOST; factor *= STEP)
		if (expected(line, &e, bars, bar, factor) >= SURELY)
			return factor;
	return NAN;
}
