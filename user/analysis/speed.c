// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/speed.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Experiments beyond one of each kind that it takes to tell a slope. */
#define MIN_FREEDOM 8
/* Student's t of a slope that is no chance. */
#define SURE 2.5
/* What CPU time may change with the speedup, of what the time per visit does; what is seen of that,
 * the intervals allow for. */
#define INDEPENDENT 0.15
/* ... and of how much longer pauses make the real time, which is mostly much more. Who waits and
 * spins executes in a third of that, or in all. */
#define OF_PAUSES 0.2
/* More of what is left of the effects, and they are not independent. */
#define MOST_FOLLOWING 0.3
/* Standard deviations beyond which a change is not noise. */
#define BEYOND 2.0
/* One in so many may have no visits, and stays as it is. */
#define MOST_UNREAD 10
/* Fewer of a line are no baseline. */
#define MIN_OWN_ZEROS 3

/* Logs of an experiment's CPU time per visit (x), effective time per visit (y) and of how much
 * longer the real time is (z), or of their means in a cell: the experiments at 0 %, or of one line
 * at one speedup. */
struct triple {
	double x, y, z, weight;
};

/* Within cells, around their means: weighted sums of squares and products. */
struct scatter {
	double xx, xy, yy, freedom;
};

/* Of x on z, line by line. */
struct trend {
	double zz, explained, left, lines, freedom;
};

/* Of cells against the line's own experiments at 0 %, or all. What such a mean is off by is off in
 * all cells that it is compared with. With r, what is left of y when the machine's speed is taken
 * out. */
struct contrast {
	double xx, yy, rr, xr;
	double noise, deviation; /* of such a sum of squares, of noise whose variance is 1: mean,
				    and standard deviation squared */
	double noise_xr;	 /* of xr, of such noise in x alone: variance */
};

/* Of weight 0 where there is nothing to read. */
static struct triple triple_of(const struct observation *o, bool lengths)
{
	double period = observation_pace(o, lengths, READ_TIMED);

	if (!isfinite(o->work) || !isfinite(o->stretch) || !isfinite(period))
		return (struct triple){0};
	return (struct triple){o->work, period, o->stretch, o->weight};
}

static void sum_add(struct triple *sum, const struct triple *v)
{
	sum->x += v->x * v->weight;
	sum->y += v->y * v->weight;
	sum->z += v->z * v->weight;
	sum->weight += v->weight;
}

static struct triple mean_of_sum(struct triple sum)
{
	if (sum.weight > 0) {
		sum.x /= sum.weight;
		sum.y /= sum.weight;
		sum.z /= sum.weight;
	}
	return sum;
}

static struct triple mean_of(const struct triple *v, size_t n)
{
	struct triple sum = {0};

	for (size_t i = 0; i < n; i++)
		sum_add(&sum, &v[i]);
	return mean_of_sum(sum);
}

static void scatter_add(struct scatter *s, const struct triple *v, size_t n)
{
	struct triple mean = mean_of(v, n);

	for (size_t i = 0; i < n; i++) {
		double x = v[i].x - mean.x, y = v[i].y - mean.y;

		s->xx += v[i].weight * x * x;
		s->xy += v[i].weight * x * y;
		s->yy += v[i].weight * y * y;
		s->freedom += v[i].weight > 0;
	}
	s->freedom -= mean.weight > 0;
}

/* One line's cells; @all: the mean of all lines' experiments at 0 %. */
static void compare_line(const struct observation *obs, const struct triple *v, size_t n,
			 const struct triple *all, double slope, struct contrast *ret)
{
	struct triple zero = *all;
	double common = 0, slanted = 0;

	for (size_t i = 0, len; i < n; i += len) {
		struct triple cell;
		double x, y, r;

		len = line_cell_length(obs + i, n - i, 1);
		cell = mean_of(v + i, len);
		if (!(cell.weight > 0))
			continue;
		if (obs[i].key == 0) {
			if (len >= MIN_OWN_ZEROS)
				zero = cell;
			continue;
		}
		x = cell.x - zero.x;
		y = cell.y - zero.y;
		r = y - slope * x;
		ret->xx += cell.weight * x * x;
		ret->yy += cell.weight * y * y;
		ret->rr += cell.weight * r * r;
		ret->xr += cell.weight * x * r;
		ret->noise++;
		ret->deviation += 2;
		common += cell.weight / zero.weight;
		slanted += cell.weight * r;
		ret->noise_xr += cell.weight * r * r;
	}
	ret->noise += common;
	ret->deviation += 2 * common * common;
	ret->noise_xr += slanted * slanted / zero.weight;
}

/* How one line's CPU time goes with the pauses: around its mean, which hangs on nothing. @all as
 * above. */
static void trend_add(struct trend *t, const struct triple *v, size_t n, const struct triple *all)
{
	struct triple mean = {0}, own = mean_of(v, n);
	double zz = 0, xz = 0, xx = 0;
	size_t got = 0;

	sum_add(&mean, &own);
	sum_add(&mean, all);
	mean = mean_of_sum(mean);
	for (size_t i = 0; i <= n; i++) {
		const struct triple *e = i < n ? &v[i] : all;

		zz += e->weight * (e->z - mean.z) * (e->z - mean.z);
		xz += e->weight * (e->x - mean.x) * (e->z - mean.z);
		xx += e->weight * (e->x - mean.x) * (e->x - mean.x);
		got += e->weight > 0;
	}
	if (got < 3 || !(zz > 0))
		return;
	t->zz += zz;
	t->explained += xz * xz / zz;
	t->left += xx - xz * xz / zz;
	t->lines++;
	t->freedom += (double)got - 2;
}

/* Does x not follow z? Noise is all that a straight line leaves, also between cells: a machine that
 * is slow now and then is so for one cell more than for another. */
static bool level(const struct trend *t)
{
	double variance = t->left / t->freedom, more = t->explained - variance * t->lines;

	return t->freedom > 0 && fmax(0, more) + BEYOND * variance * sqrt(2 * t->lines) <=
					 OF_PAUSES * OF_PAUSES * t->zz;
}

/* Is the CPU time per visit the same at all speedups, as far as the effective time shows, which is
 * not? */
static bool independent(const struct contrast *c, const struct scatter *s)
{
	double vx = s->xx / s->freedom, vy = s->yy / s->freedom, deviation = sqrt(c->deviation);
	double x = fmax(0, c->xx - vx * c->noise) + vx * deviation;
	double y = c->yy - vy * (c->noise + BEYOND * deviation);

	return y > 0 && x <= INDEPENDENT * INDEPENDENT * y;
}

/* Of how much longer pauses make the real time: a thread that executes while it waits executes in a
 * third of that, or in all. */
#define SPINNING 0.1

/* A thousandth of F(1, n) lies beyond 10.8 n / (n - FEWER), within 6 % from n = 8 on: few
 * experiments know little of how much they scatter. */
#define FEWER 4.6

/* Do threads execute while they wait? Said if chance would show it in one of a thousand runs,
 * however many lines there are (chi-squared, for its variance as well as it is known), and if they
 * surely do more so than SPINNING (noncentral chi-squared, whose variance is 2 (lines + 2 lambda)).
 */
static bool spins(const struct trend *t)
{
	double variance = t->left / t->freedom,
	       chance = (t->lines + 4 * sqrt(2 * t->lines) + 6) * t->freedom / (t->freedom - FEWER);
	double least = SPINNING * SPINNING * t->zz,
	       deviation = sqrt(variance * (2 * t->lines * variance + 4 * least));

	return t->freedom >= MIN_FREEDOM && t->explained > variance * chance &&
	       t->explained - variance * t->lines > least + BEYOND * deviation;
}

static double slope_of(const struct scatter *s)
{
	double slope, rho2;

	if (s->freedom < MIN_FREEDOM || !(s->xx > 0) || !(s->yy > 0) || !(s->xy > 0))
		return 0;
	slope = s->xy / s->xx;
	rho2 = fmin(s->xy * slope / s->yy, 1 - 1e-9);
	if (rho2 * (s->freedom - 1) < SURE * SURE * (1 - rho2))
		return 0;
	/* Time cannot pass faster than the machine is slower; beyond that it is chance. */
	return fmin(slope, 1);
}

/* What CPU time per visit changed by when the time per visit did, beyond chance. */
static double follows(const struct contrast *c, const struct scatter *s)
{
	double beyond =
		sqrt(fmax(0, c->xr * c->xr - BEYOND * BEYOND * s->xx / s->freedom * c->noise_xr));

	return c->rr > 0 ? fmin(beyond / c->rr, 1) : 0;
}

/* @arg: what is told of the times, and behind it of the lengths. */
static bool find_scales(const struct observation *obs, size_t n, bool lengths, double *scales,
			void *arg)
{
	struct analysis_speed *ret = arg;
	_cleanup_free_ struct triple *v = xcalloc(n + 1, sizeof(*v));
	struct triple mean, zero = {0};
	size_t unread = 0;
	struct contrast between = {0};
	struct scatter within = {0};
	struct trend trend = {0};
	double slope, share, variance;

	for (size_t i = 0; i < n; i++) {
		v[i] = triple_of(&obs[i], lengths);
		unread += !(v[i].weight > 0);
		if (obs[i].key == 0)
			sum_add(&zero, &v[i]);
	}
	zero = mean_of_sum(zero);
	if (!(zero.weight > 0) || unread > n / MOST_UNREAD)
		return false;
	for (size_t i = 0, len; i < n; i += len) {
		len = line_cell_length(obs + i, n - i, 1);
		scatter_add(&within, v + i, len);
	}
	for (size_t i = 0, len; i < n; i += len) {
		len = line_length(obs + i, n - i);
		trend_add(&trend, v + i, len, &zero);
	}
	ret[lengths].spins = spins(&trend);
	slope = slope_of(&within);
	if (!(slope > 0))
		return false;
	for (size_t i = 0, len; i < n; i += len) {
		len = line_length(obs + i, n - i);
		compare_line(obs + i, v + i, len, &zero, slope, &between);
	}
	share = follows(&between, &within);
	if ((!independent(&between, &within) && !level(&trend)) || share > MOST_FOLLOWING)
		return false;
	mean = mean_of(v, n);
	for (size_t i = 0; i < n; i++)
		scales[i] = v[i].weight > 0 ? exp(slope * (mean.x - v[i].x)) : 1;
	variance = within.yy - 2 * slope * within.xy + slope * slope * within.xx;
	ret[lengths] = (struct analysis_speed){
		.slope = slope,
		.before = sqrt(within.yy / within.freedom),
		.after = sqrt(fmax(0, variance) / within.freedom),
		.share = slope * share,
		.spins = ret[lengths].spins,
	};
	return true;
}

bool speed_remove(struct observation *obs, size_t n, struct analysis_speed *ret)
{
	/* Of times, then of lengths. */
	struct analysis_speed told[2] = {{.before = NAN, .after = NAN}, {0}};
	bool changed = observations_rescale(obs, n, find_scales, told);

	*ret = told[0];
	ret->share = fmax(told[0].share, told[1].share);
	return changed;
}
