// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/speed.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Experiments beyond one of each kind that it takes to tell a slope. */
#define MIN_FREEDOM 8
/* Student's t of a slope that is no chance. */
#define SURE 2.5
/* What CPU time may change with the speedup, of what the time per visit does; what is seen of that, the intervals allow for. */
#define INDEPENDENT 0.15
/* ... and of how much longer pauses make the real time, which is mostly much more. Who waits and spins executes in half or all of that. */
#define OF_PAUSES 0.3
/* Standard deviations beyond which a change is not noise. */
#define BEYOND 2.0
/* One in so many may have no visits, and stays as it is. */
#define MOST_UNREAD 10
/* Fewer of a line are no baseline. */
#define MIN_OWN_ZEROS 3

/* Logs of an experiment's CPU time per visit (x), effective time per visit (y) and of how much longer the real time is (z), or of their means in a
 * cell: the experiments at 0 %, or of one line at one speedup. */
struct triple {
	double x, y, z, weight;
};

/* Within cells, around their means: weighted sums of squares and products. */
struct scatter {
	double xx, xy, yy, zz, freedom;
};

/* Of cells against the line's own experiments at 0 %, or all. What such a mean is off by is off in all cells that it is compared with. With r, what
 * is left of y when the machine's speed is taken out. */
struct contrast {
	double xx, yy, zz, rr, xr;
	double noise, deviation; /* of such a sum of squares, of noise whose variance is 1: mean, and standard deviation squared */
	double noise_xr;	 /* of xr, of such noise in x alone: variance */
};

static bool readable(const struct observation *o)
{
	return isfinite(o->work) && isfinite(o->passed) && o->num[READ_TIMED] > 0 && o->den[READ_TIMED] > 0;
}

/* Of weight 0 where there is nothing to read. */
static struct triple triple_of(const struct observation *o)
{
	double period;

	if (!readable(o))
		return (struct triple){0};
	period = log(o->num[READ_TIMED] / o->den[READ_TIMED]);
	return (struct triple){o->work, period, o->passed - period, o->weight};
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
		double x = v[i].x - mean.x, y = v[i].y - mean.y, z = v[i].z - mean.z;

		s->xx += v[i].weight * x * x;
		s->xy += v[i].weight * x * y;
		s->yy += v[i].weight * y * y;
		s->zz += v[i].weight * z * z;
		s->freedom += v[i].weight > 0;
	}
	s->freedom -= mean.weight > 0;
}

static size_t length_of(const struct observation *obs, size_t n, bool line)
{
	size_t len = 1;

	while (len < n && obs[len].line == obs->line && (line || obs[len].key == obs->key))
		len++;
	return len;
}

/* One line's cells; @all: the mean of all lines' experiments at 0 %. */
static void compare_line(const struct observation *obs, const struct triple *v, size_t n, const struct triple *all, double slope, struct contrast *ret)
{
	struct triple zero = *all;
	double common = 0, slanted = 0;

	for (size_t i = 0, len; i < n; i += len) {
		struct triple cell;
		double x, y, z, r;

		len = length_of(obs + i, n - i, false);
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
		z = cell.z - zero.z;
		r = y - slope * x;
		ret->xx += cell.weight * x * x;
		ret->yy += cell.weight * y * y;
		ret->zz += cell.weight * z * z;
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

/* Bounds of what is no noise in such a sum of squares. */
struct bounds {
	double low, high;
};

static struct bounds bounds_of(double squares, double within, const struct scatter *s, const struct contrast *c, double beyond)
{
	double variance = within / s->freedom, deviation = beyond * sqrt(c->deviation) * variance, got = squares - variance * c->noise;

	return (struct bounds){fmax(0, got - deviation), fmax(0, got) + deviation};
}

/* Is the CPU time per visit the same at all speedups? Where the effective time is not, that shows it, or else the pauses, unless the effective time
 * contradicts: who waits and spins executes more in the time that others are stopped for, or less where it is itself stopped instead. */
static bool independent(const struct contrast *c, const struct scatter *s)
{
	struct bounds x = bounds_of(c->xx, s->xx, s, c, 1);
	struct bounds y = bounds_of(c->yy, s->yy, s, c, BEYOND), z = bounds_of(c->zz, s->zz, s, c, BEYOND);
	double share = INDEPENDENT * INDEPENDENT;

	if (y.low > 0 && x.high <= share * y.low)
		return true;
	return z.low > 0 && x.high <= OF_PAUSES * OF_PAUSES * z.low && x.low <= share * y.high;
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
	double beyond = sqrt(fmax(0, c->xr * c->xr - s->xx / s->freedom * c->noise_xr));

	return c->rr > 0 ? fmin(beyond / c->rr, 1) : 0;
}

int speed_remove(struct observation *obs, size_t n, struct analysis_speed *ret)
{
	_cleanup_free_ struct triple *v = calloc(n + 1, sizeof(*v));
	struct triple mean, zero = {0};
	size_t unread = 0;
	struct contrast between = {0};
	struct scatter within = {0};
	double slope, variance;

	*ret = SPEED_UNCHANGED;
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		v[i] = triple_of(&obs[i]);
		unread += !(v[i].weight > 0);
		if (obs[i].key == 0)
			sum_add(&zero, &v[i]);
	}
	zero = mean_of_sum(zero);
	if (!(zero.weight > 0) || unread > n / MOST_UNREAD)
		return 0;
	for (size_t i = 0, len; i < n; i += len) {
		len = length_of(obs + i, n - i, false);
		scatter_add(&within, v + i, len);
	}
	slope = slope_of(&within);
	if (!(slope > 0))
		return 0;
	for (size_t i = 0, len; i < n; i += len) {
		len = length_of(obs + i, n - i, true);
		compare_line(obs + i, v + i, len, &zero, slope, &between);
	}
	if (!independent(&between, &within))
		return 0;
	mean = mean_of(v, n);
	for (size_t i = 0; i < n; i++) {
		double scale = v[i].weight > 0 ? exp(slope * (mean.x - v[i].x)) : 1;

		for (int how = 0; how < N_READINGS; how++)
			obs[i].num[how] *= scale;
	}
	variance = within.yy - 2 * slope * within.xy + slope * slope * within.xx;
	*ret = (struct analysis_speed){
		.slope = slope,
		.before = sqrt(within.yy / within.freedom),
		.after = sqrt(fmax(0, variance) / within.freedom),
		.share = slope * follows(&between, &within),
	};
	return 1;
}
