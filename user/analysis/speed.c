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
/* Standard deviations beyond which a change is not noise. */
#define BEYOND 2.0
/* One in so many may have no visits, and stays as it is. */
#define MOST_UNREAD 10
/* Fewer of a line are no baseline. */
#define MIN_OWN_ZEROS 3

/* Logs of an experiment's CPU time and time per visit, or of their means in a cell: the experiments at 0 %, or of one line at one speedup. */
struct pair {
	double x, y, weight;
};

/* Within cells, around their means: weighted sums of squares and products. */
struct scatter {
	double xx, xy, yy, freedom;
};

/* Of cells against the line's own experiments at 0 %, or all. What such a mean is off by is off in all cells that it is compared with. */
struct contrast {
	double xx, xy, yy;
	double noise, deviation; /* of such a sum of squares, of noise whose variance is 1: mean, and standard deviation squared */
	double noise_xy;	 /* of xy, of such noise in x alone: variance */
};

static bool readable(const struct observation *o)
{
	return isfinite(o->work) && o->num[READ_TIMED] > 0 && o->den[READ_TIMED] > 0;
}

/* Of weight 0 where there is nothing to read. */
static struct pair pair_of(const struct observation *o)
{
	if (!readable(o))
		return (struct pair){0};
	return (struct pair){o->work, log(o->num[READ_TIMED] / o->den[READ_TIMED]), o->weight};
}

static void sum_add(struct pair *sum, const struct pair *v)
{
	sum->x += v->x * v->weight;
	sum->y += v->y * v->weight;
	sum->weight += v->weight;
}

static struct pair mean_of_sum(struct pair sum)
{
	if (sum.weight > 0) {
		sum.x /= sum.weight;
		sum.y /= sum.weight;
	}
	return sum;
}

static struct pair mean_of(const struct pair *v, size_t n)
{
	struct pair sum = {0};

	for (size_t i = 0; i < n; i++)
		sum_add(&sum, &v[i]);
	return mean_of_sum(sum);
}

static void scatter_add(struct scatter *s, const struct pair *v, size_t n, const struct pair *mean)
{
	for (size_t i = 0; i < n; i++) {
		double x = v[i].x - mean->x, y = v[i].y - mean->y;

		s->xx += v[i].weight * x * x;
		s->xy += v[i].weight * x * y;
		s->yy += v[i].weight * y * y;
		s->freedom += v[i].weight > 0;
	}
	s->freedom -= mean->weight > 0;
}

static size_t length_of(const struct observation *obs, size_t n, bool line)
{
	size_t len = 1;

	while (len < n && obs[len].line == obs->line && (line || obs[len].key == obs->key))
		len++;
	return len;
}

/* One line's cells; @all: the mean of all lines' experiments at 0 %. */
static void compare_line(const struct observation *obs, const struct pair *pairs, size_t n, const struct pair *all, struct scatter *within,
			 struct contrast *between)
{
	struct pair zero = *all;
	double common = 0, slanted = 0;

	for (size_t i = 0, len; i < n; i += len) {
		struct pair cell;

		len = length_of(obs + i, n - i, false);
		cell = mean_of(pairs + i, len);
		if (!(cell.weight > 0))
			continue;
		scatter_add(within, pairs + i, len, &cell);
		if (obs[i].key == 0) {
			if (len >= MIN_OWN_ZEROS)
				zero = cell;
			continue;
		}
		between->xx += cell.weight * (cell.x - zero.x) * (cell.x - zero.x);
		between->xy += cell.weight * (cell.x - zero.x) * (cell.y - zero.y);
		between->yy += cell.weight * (cell.y - zero.y) * (cell.y - zero.y);
		between->noise++;
		between->deviation += 2;
		common += cell.weight / zero.weight;
		slanted += cell.weight * (cell.y - zero.y);
		between->noise_xy += cell.weight * (cell.y - zero.y) * (cell.y - zero.y);
	}
	between->noise += common;
	between->deviation += 2 * common * common;
	between->noise_xy += slanted * slanted / zero.weight;
}

/* Is the CPU time per visit the same at all speedups, as far as there is an effect that would show if it were not? */
static bool independent(const struct contrast *c, const struct scatter *s)
{
	double vx = s->xx / s->freedom, vy = s->yy / s->freedom, deviation = sqrt(c->deviation);
	double x = fmax(0, c->xx - vx * c->noise) + vx * deviation;
	double y = c->yy - vy * (c->noise + BEYOND * deviation);

	return y > 0 && x <= INDEPENDENT * INDEPENDENT * y;
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
	return sqrt(fmax(0, c->xy * c->xy - s->xx / s->freedom * c->noise_xy)) / c->yy;
}

int speed_remove(struct observation *obs, size_t n, struct analysis_speed *ret)
{
	_cleanup_free_ struct pair *pairs = calloc(n + 1, sizeof(*pairs));
	struct pair mean, zero = {0};
	size_t unread = 0;
	struct contrast between = {0};
	struct scatter within = {0};
	double slope, variance;

	*ret = SPEED_UNCHANGED;
	if (!pairs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		pairs[i] = pair_of(&obs[i]);
		unread += !(pairs[i].weight > 0);
		if (obs[i].key == 0)
			sum_add(&zero, &pairs[i]);
	}
	zero = mean_of_sum(zero);
	if (!(zero.weight > 0) || unread > n / MOST_UNREAD)
		return 0;
	for (size_t i = 0, len; i < n; i += len) {
		len = length_of(obs + i, n - i, true);
		compare_line(obs + i, pairs + i, len, &zero, &within, &between);
	}
	slope = slope_of(&within);
	if (!(slope > 0) || !independent(&between, &within))
		return 0;
	mean = mean_of(pairs, n);
	for (size_t i = 0; i < n; i++) {
		double scale = pairs[i].weight > 0 ? exp(slope * (mean.x - pairs[i].x)) : 1;

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
