// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/curve.h"

#include "analysis/fit.h"
#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>

#define DRAWS 200
/* More experiments than this are joined with their neighbours of the same speedup: bounded work. */
#define MAX_POINTS 400
#define MIN_POINTS 4
/* A knee is a knee if this share of the draws has one. */
#define KNEE_SHARE 0.8

/* Joins up to @join experiments of one speedup. Returns how many points were made; 0: some have no
 * visits. */
static size_t join_points(const struct observation *obs, size_t n, enum reading how, size_t join,
			  const struct curve_base *base, struct fit_point *ret)
{
	size_t made = 0;

	for (size_t i = 0, len; i < n; i += len) {
		double num = 0, den = 0;

		for (len = 0; len < join && i + len < n && obs[i + len].key == obs[i].key; len++) {
			num += obs[i + len].num[how];
			den += obs[i + len].den[how];
		}
		if (!(num > 0) || !(den > 0))
			return 0;
		ret[made++] = (struct fit_point){obs[i].key / 1000.0, 1 - num / den / base->period,
						 den, obs[i].burst};
	}
	return made;
}

/* An experiment without a visit has no period of its own, and is not dropped for that: it is joined
 * with others until they have one. */
static size_t make_points(const struct observation *obs, size_t n, enum reading how,
			  const struct curve_base *base, struct fit_point *ret)
{
	for (size_t join = 1 + n / MAX_POINTS; join <= n; join *= 2) {
		size_t made = join_points(obs, n, how, join, base, ret);

		if (made)
			return made;
	}
	return join_points(obs, n, how, n, base, ret);
}

struct draws {
	double at[ANALYSIS_CURVE_POINTS][DRAWS], edge[DRAWS], slope[DRAWS],
		knee[DRAWS]; /* edge: at the largest speedup that was measured */
	size_t n, knees;
};

static int by_burst(const void *a, const void *b)
{
	const struct fit_point *x = a, *y = b;

	return (x->burst > y->burst) - (x->burst < y->burst);
}

/* Where the bursts begin among @n points in their order, and the end. Returns how many there are;
 * *ret_most: points of the largest. */
static size_t find_bursts(const struct fit_point *points, size_t n, size_t *begin, size_t *ret_most)
{
	size_t found = 0;

	*ret_most = 0;
	for (size_t i = 0, len; i < n; i += len) {
		for (len = 1; i + len < n && points[i + len].burst == points[i].burst;)
			len++;
		begin[found++] = i;
		if (len > *ret_most)
			*ret_most = len;
	}
	begin[found] = n;
	return found;
}

/* The points in the order of their bursts, as they are drawn: those of a burst together, since they
 * have the load of its time in common. Where there are no bursts each point is one. */
struct deck {
	const struct fit_point *points;
	const size_t *begin;
	size_t n_bursts;
	bool robust;		 /* fits are */
	struct fit_point *drawn; /* room for that many of the largest burst */
};

static size_t draw(const struct deck *deck, double scale, struct rng *rng)
{
	size_t n = 0;

	for (size_t i = 0; i < deck->n_bursts; i++) {
		size_t burst = rng_below(rng, deck->n_bursts);

		for (size_t j = deck->begin[burst]; j < deck->begin[burst + 1]; j++) {
			deck->drawn[n] = deck->points[j];
			deck->drawn[n].effect = 1 - (1 - deck->drawn[n].effect) * scale;
			n++;
		}
	}
	return n;
}

static void draw_all(const struct deck *deck, bool straight, double most,
		     const struct curve_base *base, struct rng *rng, struct draws *d)
{
	for (size_t i = 0; i < DRAWS; i++) {
		double scale = base->period / base->resampled[i];
		struct fit f;
		size_t n;

		if (!isfinite(scale))
			continue;
		n = draw(deck, scale, rng);
		f = fit_curve(deck->drawn, n, deck->robust);
		if (isnan(f.slope))
			continue;
		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
			d->at[k][d->n] = fit_at(&f, analysis_curve_speedups[k]);
		d->edge[d->n] = fit_at(&f, most);
		/* Where there is no knee, those that chance puts into a draw near 0, with any slope
		 * before them, are no doubt about it. */
		d->slope[d->n] =
			straight ? fit_straight(deck->drawn, n, deck->robust).slope : f.slope;
		if (!isnan(f.knee))
			d->knee[d->knees++] = f.knee;
		d->n++;
	}
}

/* @n: bursts. */
static void conclude(const struct fit *f, size_t n, struct draws *d, struct analysis_curve *ret)
{
	/* The bootstrap of few points is too narrow: residuals have fewer degrees of freedom than
	 * points. */
	double df = (double)n - (double)f->parameters,
	       widen = df > 0 && d->n > DRAWS / 2 ? stats_t_quantile(df) * sqrt((double)n / df)
						  : NAN;
	struct analysis_change edge = analysis_around(fit_at(f, ret->most_speedup),
						      widen * stats_deviation(d->edge, d->n));

	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct analysis_change *at = &ret->at[k];

		*at = analysis_around(fit_at(f, analysis_curve_speedups[k]),
				      widen * stats_deviation(d->at[k], d->n));
		/* Beyond what was measured the curve goes on as it does there. A knee just behind
		 * it would leave the effect where it is. */
		if (analysis_curve_speedups[k] > ret->most_speedup + 1e-9) {
			at->low = fmin(at->low, edge.low);
			at->high = fmax(at->high, edge.high);
		}
	}
	ret->slope = analysis_around(f->slope, widen * stats_deviation(d->slope, d->n));
	if (!isnan(f->knee) && d->n > DRAWS / 2 && (double)d->knees >= KNEE_SHARE * (double)d->n) {
		ret->knee = f->knee;
		ret->knee_low = stats_quantile(d->knee, d->knees, 0.025);
		ret->knee_high = stats_quantile(d->knee, d->knees, 0.975);
		ret->knee_effect = fit_at(f, f->knee);
		ret->slope_after = f->after;
	}
}

void curve_forget(struct analysis_curve *c)
{
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		c->at[k] = ANALYSIS_UNKNOWN;
	c->slope = ANALYSIS_UNKNOWN;
	c->knee = c->knee_low = c->knee_high = c->knee_effect = c->slope_after = NAN;
}

void curve_make(const struct observation *obs, size_t n, enum reading how,
		const struct curve_base *base, struct rng *rng, struct analysis_curve *ret)
{
	_cleanup_free_ struct fit_point *points = xcalloc(n + 1, sizeof(*points)), *drawn = NULL;
	_cleanup_free_ size_t *begin = xcalloc(n + 2, sizeof(*begin));
	_cleanup_free_ struct draws *d = xcalloc(1, sizeof(*d));
	struct fit f;
	size_t made, n_bursts, most;

	curve_forget(ret);
	if (n < MIN_POINTS || !base->resampled || !(base->period > 0))
		return;
	made = make_points(obs, n, how, base, points);
	if (made < MIN_POINTS)
		return;
	qsort(points, made, sizeof(*points), by_burst);
	n_bursts = find_bursts(points, made, begin, &most);
	drawn = xcalloc(n_bursts * most + 1, sizeof(*drawn));
	f = fit_curve(points, made, !obs[0].in_burst);
	if (isnan(f.slope))
		return;
	ret->least_speedup = obs[0].key / 1000.0;
	ret->most_speedup = obs[n - 1].key / 1000.0;
	draw_all(&(struct deck){points, begin, n_bursts, !obs[0].in_burst, drawn}, isnan(f.knee),
		 ret->most_speedup, base, rng, d);
	conclude(&f, n_bursts, d, ret);
}
