// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/fit.h"

#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KNEE_STEP 0.05
#define KNEE_LAST 0.95
#define MIN_KNEE_POINTS 6
#define MIN_KNEE_SPEEDUPS 3
/* A line that is all of a visit gives s at a speedup of s, and noise a little more: before the
 * first speedup that was drawn a steeper piece fits anywhere. */
#define STEEPEST 1.1
#define ROBUST_ROUNDS 3
#define HUBER 1.5	 /* residuals beyond this many standard deviations lose weight */
#define MAD_TO_SD 1.4826 /* of a normal distribution */
#define EXACT 1e-14	 /* squared error of data without noise */

double fit_at(const struct fit *f, double s)
{
	if (isnan(f->knee) || s <= f->knee)
		return f->slope * s;
	return f->slope * f->knee + f->after * (s - f->knee);
}

/* The best line, for a knee at @knee or none (NaN). False if the points do not tell its slopes
 * apart. */
static bool solve(const struct fit_point *p, const double *w, size_t n, double knee,
		  struct fit *ret)
{
	double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0, det;

	for (size_t i = 0; i < n; i++) {
		double u = isnan(knee) || p[i].speedup < knee ? p[i].speedup : knee,
		       v = p[i].speedup - u;

		uu += w[i] * u * u;
		uv += w[i] * u * v;
		vv += w[i] * v * v;
		uy += w[i] * u * p[i].effect;
		vy += w[i] * v * p[i].effect;
	}
	if (isnan(knee)) {
		*ret = (struct fit){.slope = uy / uu, .knee = NAN, .parameters = 1};
		return uu > 0;
	}
	det = uu * vv - uv * uv;
	if (!(det > 1e-9 * uu * vv))
		return false;
	*ret = (struct fit){.slope = (vv * uy - uv * vy) / det,
			    .knee = knee,
			    .after = (uu * vy - uv * uy) / det,
			    .parameters = 3};
	return true;
}

/* Mean squared error, weighted. */
static double error_of(const struct fit *f, const struct fit_point *p, const double *w, size_t n)
{
	double sum = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		double r = p[i].effect - fit_at(f, p[i].speedup);

		sum += w[i] * r * r;
		all += w[i];
	}
	return sum / all;
}

/* Akaike's criterion, corrected for few points; the scatter itself is a parameter, too. */
static double criterion(double error, size_t n, size_t parameters)
{
	double k = (double)parameters + 1;

	return (double)n * log(fmax(error, EXACT)) + 2 * k + 2 * k * (k + 1) / ((double)n - k - 1);
}

/* How many different ones there are beyond @knee, counted up to MIN_KNEE_SPEEDUPS. */
static size_t speedups_beyond(const struct fit_point *p, size_t n, double knee)
{
	double seen[MIN_KNEE_SPEEDUPS];
	size_t k = 0;

	for (size_t i = 0; i < n && k < MIN_KNEE_SPEEDUPS; i++) {
		bool known = p[i].speedup <= knee + 1e-9;

		for (size_t j = 0; j < k; j++)
			known |= seen[j] == p[i].speedup;
		if (!known)
			seen[k++] = p[i].speedup;
	}
	return k;
}

static struct fit best_fit(const struct fit_point *p, const double *w, size_t n, bool knees)
{
	struct fit straight, best, f;
	double least = INFINITY, error;

	if (!solve(p, w, n, NAN, &straight))
		return (struct fit){.slope = NAN, .knee = NAN};
	if (!knees)
		return straight;
	best = straight;
	for (int i = 1; i * KNEE_STEP < KNEE_LAST + KNEE_STEP / 2; i++) {
		/* A slope takes two speedups: one alone beyond the knee could be put anywhere. */
		if (speedups_beyond(p, n, i * KNEE_STEP) < 2 || !solve(p, w, n, i * KNEE_STEP, &f))
			continue;
		if (f.slope > STEEPEST)
			continue;
		error = error_of(&f, p, w, n);
		if (error < least) {
			least = error;
			best = f;
		}
	}
	error = error_of(&straight, p, w, n);
	return criterion(least, n, 3) < criterion(error, n, 1) ? best : straight;
}

/* Huber's weights for the residuals of @f, relative to the points' own. */
static void reweight(const struct fit *f, const struct fit_point *p, size_t n, double *w,
		     double *scratch)
{
	double sd;

	for (size_t i = 0; i < n; i++)
		scratch[i] = sqrt(p[i].weight) * fabs(p[i].effect - fit_at(f, p[i].speedup));
	sd = MAD_TO_SD * stats_quantile(scratch, n, 0.5);
	for (size_t i = 0; i < n; i++) {
		double r = sqrt(p[i].weight) * fabs(p[i].effect - fit_at(f, p[i].speedup));

		w[i] = p[i].weight * (r > HUBER * sd && sd > 0 ? HUBER * sd / r : 1);
	}
}

static struct fit fit_points(const struct fit_point *p, size_t n, bool knees, bool robust)
{
	_cleanup_free_ double *w = xcalloc(2 * n + 1, sizeof(*w));
	struct fit f = {.slope = NAN, .knee = NAN};

	if (n == 0)
		return f;
	for (size_t i = 0; i < n; i++)
		w[i] = p[i].weight;
	/* Two points have no outlier. */
	if (n <= 3 || !robust)
		return best_fit(p, w, n, knees);
	/* The first weights come from the median slope: least squares would have bent towards an
	 * outlier already. */
	for (size_t i = 0; i < n; i++)
		w[n + i] = p[i].effect / p[i].speedup;
	f = (struct fit){.slope = stats_quantile(w + n, n, 0.5), .knee = NAN};
	for (int i = 0; i < ROBUST_ROUNDS && !isnan(f.slope); i++) {
		reweight(&f, p, n, w, w + n);
		f = best_fit(p, w, n, knees);
	}
	return f;
}

struct fit fit_curve(const struct fit_point *p, size_t n, bool robust)
{
	return fit_points(p, n,
			  n >= MIN_KNEE_POINTS && speedups_beyond(p, n, 0) >= MIN_KNEE_SPEEDUPS,
			  robust);
}

struct fit fit_straight(const struct fit_point *p, size_t n, bool robust)
{
	return fit_points(p, n, false, robust);
}
