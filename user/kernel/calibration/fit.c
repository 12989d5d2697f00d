// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/calibration/fit.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define STEEPEST 4.0
/* Times the median distance. Every interrupt of a virtual machine has the chance that the host does
 * something else first: of twenty, one takes 20 us longer. That is part of what it costs. */
#define FAR 100
#define FAR_FIRST 5	  /* ... but not as long as the line is sought */
#define LONG 4		  /* times the median */
#define FAR_LEAST_NS 1000 /* what is nearer than this is not far, however alike the others are */
/* Points that hardly differ in what was measured beside them say nothing of a slope. */
#define SPREAD_LEAST_NS 100.0

struct line {
	double x, y, slope;
};

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t fit_mean(int64_t *v, size_t n)
{
	int64_t sum = 0;
	size_t used = 0;

	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), ascending);
	while (used < n && v[used] <= LONG * v[n / 2])
		sum += v[used++];
	return used ? sum / (int64_t)used : 0;
}

static double distance(const struct line *l, const struct unseen_point *p)
{
	return (double)p->ns - l->y - l->slope * ((double)p->beside - l->x);
}

/* Of those no further than @limit from @from; NULL: of all. */
static struct line least_squares(const struct unseen_point *p, size_t n, const struct line *from,
				 double limit)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0;
	struct line l = {0};
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (from && fabs(distance(from, &p[i])) > limit)
			continue;
		sx += (double)p[i].beside;
		sy += (double)p[i].ns;
		used++;
	}
	if (!used)
		return l;
	l.x = sx / (double)used;
	l.y = sy / (double)used;
	for (size_t i = 0; i < n; i++) {
		double dx = (double)p[i].beside - l.x;

		if (from && fabs(distance(from, &p[i])) > limit)
			continue;
		sxx += dx * dx;
		sxy += dx * ((double)p[i].ns - l.y);
	}
	if (sxx < SPREAD_LEAST_NS * SPREAD_LEAST_NS * (double)used)
		return l;
	l.slope = sxy / sxx;
	l.slope = l.slope < 0 ? 0 : l.slope > STEEPEST ? STEEPEST : l.slope;
	return l;
}

/* The median of how far the points are above @l, or, with @magnitudes, away from it; @none: there
 * is none. */
static int64_t median(const struct line *l, const struct unseen_point *p, size_t n, bool magnitudes,
		      int64_t none)
{
	_cleanup_free_ int64_t *v = xcalloc(n, sizeof(*v));

	if (!n)
		return none;
	for (size_t i = 0; i < n; i++)
		v[i] = (int64_t)(magnitudes ? fabs(distance(l, &p[i])) : distance(l, &p[i]));
	qsort(v, n, sizeof(*v), ascending);
	return v[n / 2];
}

/* What is far from @l: several times the median distance. */
static double far_from(const struct line *l, const struct unseen_point *p, size_t n, double times)
{
	double far = times * (double)median(l, p, n, true, INT64_MAX);

	return far > FAR_LEAST_NS ? far : FAR_LEAST_NS;
}

struct abi_unseen fit_unseen(const struct unseen_point *points, size_t n)
{
	const struct line zero = {0};
	/* A level through the middle, to begin with: one point in a hundred that is a hundred times
	 * as long turns a line. */
	struct line l = {.y = (double)median(&zero, points, n, false, 0)};

	for (int i = 0; i < 3; i++)
		l = least_squares(points, n, &l, far_from(&l, points, n, i < 2 ? FAR_FIRST : FAR));
	return (struct abi_unseen){
		.ns = l.y > 0 ? (abi_s64)(l.y + 0.5) : 0,
		.beside_ns = l.x > 0 ? (abi_s64)(l.x + 0.5) : 0,
		.slope_q8 = (abi_s64)(l.slope * 256 + 0.5),
	};
}

int64_t fit_distance(const struct unseen_point *points, size_t n, const struct abi_unseen *line)
{
	const struct line l = {(double)line->beside_ns, (double)line->ns,
			       (double)line->slope_q8 / 256};

	return median(&l, points, n, false, 0);
}
