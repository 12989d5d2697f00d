// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/effect.h"

#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>

/* How many experiments the pooled noise is worth against a group's own: enough to steady two or
 * three experiments, too few to drown twenty. */
#define NOISE_WEIGHT 4
#define PLACEBO_SPLITS 400

static double quotient(double num, double den)
{
	/* A latency below zero is a program that ends what it never began: no answer, not a
	 * negative one. */
	return den > 0 && num > 0 ? num / den : NAN;
}

struct group group_make(const struct observation *obs, size_t n, enum reading how)
{
	struct group g = {.n = n};
	double mean;

	for (size_t i = 0; i < n; i++) {
		g.num += obs[i].num[how];
		g.den += obs[i].den[how];
		g.visits += obs[i].visits;
		g.weight += obs[i].weight;
	}
	g.period = quotient(g.num, g.den);
	if (isnan(g.period))
		return g;
	mean = g.period * g.den / g.weight;
	for (size_t i = 0; i < n; i++) {
		double r = (obs[i].num[how] - g.period * obs[i].den[how]) / mean;

		g.noise_sum += r * r / obs[i].weight;
	}
	return g;
}

void noise_add(struct noise *total, const struct group *g)
{
	if (g->n < 2 || isnan(g->period))
		return;
	total->variance += g->noise_sum;
	total->df += (double)(g->n - 1);
}

/* Relative, a standard deviation: two or three pairs that agree by chance say nothing of the
 * machine, whatever Student's t makes of them. */
#define FEW_FREEDOM 4
#define LEAST_NOISE 0.02

void noise_finish(struct noise *total)
{
	total->variance = total->df > 0 ? total->variance / total->df : NAN;
	if (total->df > 0 && total->df < FEW_FREEDOM)
		total->variance = fmax(total->variance, LEAST_NOISE * LEAST_NOISE);
}

double group_variance(const struct group *g, const struct noise *noise, double *ret_df)
{
	double weight = fmin(noise->df, NOISE_WEIGHT), df = (double)g->n - 1 + weight,
	       sum = g->noise_sum;

	*ret_df = df;
	if (g->n == 0 || isnan(g->period) || !(df > 0))
		return NAN;
	if (weight > 0)
		sum += weight * noise->variance;
	return sum / df / g->weight;
}

struct effect effect_of(const struct group *g, const struct group *base, const struct noise *noise)
{
	struct effect e = {NAN, NAN, 1};
	double df, df0, v = group_variance(g, noise, &df), v0 = group_variance(base, noise, &df0);

	if (g->n == 0 || base->n == 0 || isnan(g->period) || isnan(base->period))
		return e;
	e.value = 1 - g->period / base->period;
	if (!isfinite(e.value)) {
		e.value = NAN;
		return e;
	}
	if (isnan(v) || isnan(v0))
		return e;
	e.se = g->period / base->period * sqrt(v + v0);
	/* Welch and Satterthwaite. */
	e.df = v + v0 > 0 ? (v + v0) * (v + v0) / (v * v / df + v0 * v0 / df0) : df + df0;
	if (!isfinite(e.df))
		e.df = df + df0;
	/* The pooled noise holds everything that is known of the scatter, these two groups' own
	 * included. */
	if (noise->df > 0)
		e.df = fmin(e.df, noise->df);
	return e;
}

double effect_chance(const struct effect *e, double allowance)
{
	double beyond = fmax(0, fabs(e->value) - allowance);

	if (isnan(e->value) || isnan(e->se))
		return NAN;
	if (e->se == 0)
		return beyond == 0 ? 1 : 0;
	return stats_t_tail(beyond / e->se, e->df);
}

double effect_half_width(const struct effect *e)
{
	return stats_t_quantile(e->df) * e->se;
}

struct block {
	double num, den;
};

static int by_burst(const void *a, const void *b)
{
	const struct observation *const *x = a, *const *y = b;

	return ((*x)->burst > (*y)->burst) - ((*x)->burst < (*y)->burst);
}

/* The group as at most MAX_BLOCKS blocks; *ret_n of them, the caller's. Experiments of a burst stay
 * in one block. They have the load of its time in common. Where drift.c has taken that out, the two
 * at 0 % were each compared with the other, so that their errors have opposite signs. */
static struct block *make_blocks(const struct observation *obs, size_t n, enum reading how,
				 size_t *ret_n)
{
	_cleanup_free_ const struct observation **order = xcalloc(n + 1, sizeof(*order));
	struct block *blocks = xcalloc(MAX_BLOCKS, sizeof(*blocks));
	bool bursts = n && obs[0].in_burst;
	size_t units = 0, unit = 0, n_blocks;

	for (size_t i = 0; i < n; i++)
		order[i] = &obs[i];
	if (bursts)
		qsort(order, n, sizeof(*order), by_burst);
	for (size_t i = 0; i < n; i++)
		units += !bursts || i == 0 || order[i]->burst != order[i - 1]->burst;
	n_blocks = units < MAX_BLOCKS ? units : MAX_BLOCKS;
	for (size_t i = 0; i < n; i++) {
		struct block *b;

		unit += i > 0 && (!bursts || order[i]->burst != order[i - 1]->burst);
		b = &blocks[unit * n_blocks / units];
		b->num += order[i]->num[how];
		b->den += order[i]->den[how];
	}
	*ret_n = n_blocks;
	return blocks;
}

void group_resample(const struct observation *obs, size_t n, enum reading how, struct rng *rng,
		    double periods[RESAMPLES])
{
	size_t n_blocks = 0;
	_cleanup_free_ struct block *blocks = make_blocks(obs, n, how, &n_blocks);

	for (size_t i = 0; i < RESAMPLES; i++) {
		struct block sum = {0};

		for (size_t j = 0; j < n_blocks; j++) {
			const struct block *b = &blocks[rng_below(rng, n_blocks)];

			sum.num += b->num;
			sum.den += b->den;
		}
		periods[i] = quotient(sum.num, sum.den);
	}
}

/* One random half against the other. */
static double split(struct block *blocks, size_t n, struct rng *rng)
{
	struct block half[2] = {0};

	for (size_t i = n; i > 1; i--) {
		size_t j = rng_below(rng, i);
		struct block t = blocks[i - 1];

		blocks[i - 1] = blocks[j];
		blocks[j] = t;
	}
	for (size_t i = 0; i < n; i++) {
		half[i & 1].num += blocks[i].num;
		half[i & 1].den += blocks[i].den;
	}
	return fabs(1 - quotient(half[0].num, half[0].den) / quotient(half[1].num, half[1].den));
}

double group_placebo(const struct observation *obs, size_t n, enum reading how, struct rng *rng)
{
	double effects[PLACEBO_SPLITS];
	size_t n_blocks = 0, got = 0;
	_cleanup_free_ struct block *blocks = NULL;

	if (n < 4)
		return NAN;
	blocks = make_blocks(obs, n, how, &n_blocks);
	for (size_t i = 0; i < PLACEBO_SPLITS; i++) {
		double e = split(blocks, n_blocks, rng);

		if (isfinite(e))
			effects[got++] = e;
	}
	/* Halves without visits say nothing; if most are so, neither do the rest. */
	return got > PLACEBO_SPLITS / 2 ? stats_quantile(effects, got, 0.95) : NAN;
}
