// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/executions.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Weights are refined so many times: more would follow what is chance in them. */
#define MOST_ROUNDS 20
/* Places that were hit less often in windows of a level are taken together when its windows are
 * weighted. */
#define FEW_HITS 30
#define REDRAWN 20 /* sets of windows */
/* What a hit takes is known to so much of it. */
#define HIT_ERROR 0.15
#define USUAL_HIT_S 5e-6

struct estimate {
	const struct executions_input *in;
	uint32_t *drawn; /* of each window: how many times it counts */
	double *weights; /* of each: what brings its hits to those of a second */
	double *sums;	 /* of each place */
	bool *lumped;	 /* of each: taken together with others */
	uint32_t last;	 /* level */
	double unsure;	 /* what the CPU time of the last level may be off by, relative */
};

static bool is_of(const struct estimate *e, size_t window, uint32_t level)
{
	return e->drawn[window] && e->in->windows[window].level == level;
}

/* Hits in the windows of @level at places of later levels than @from, weighted by how often each
 * window was drawn; *ret_cpu_s: their time. */
static double hits_beyond(const struct estimate *e, uint32_t level, uint32_t from,
			  double *ret_cpu_s)
{
	double sum = 0;

	*ret_cpu_s = 0;
	for (size_t i = 0; i < e->in->n_windows; i++) {
		const struct executions_window *w = &e->in->windows[i];

		if (!is_of(e, i, level))
			continue;
		*ret_cpu_s += e->drawn[i] * w->cpu_s;
		for (size_t s = 0; s < e->in->n_places; s++)
			if (e->in->levels[s] >= from)
				sum += e->drawn[i] * (double)w->hits[s];
	}
	return sum;
}

/* CPU time in the windows of the last level without what the probes took. What a hit takes follows
 * from the level before: the program did as much there as the rarest places say, and all other time
 * went to hits. */
static double program_time(struct estimate *e, double *ret_hits)
{
	double cpu_s, hits = hits_beyond(e, e->last, e->last, &cpu_s), before_s, rare, all,
		      hit_s = 0, own = cpu_s;

	*ret_hits = hits;
	e->unsure = 0;
	if (!(hits > 0) || !(cpu_s > 0))
		return own;
	if (e->last == 0) {
		e->unsure = USUAL_HIT_S * hits / cpu_s;
		return own;
	}
	rare = hits_beyond(e, e->last - 1, e->last, &before_s);
	all = hits_beyond(e, e->last - 1, e->last - 1, &before_s);
	for (int round = 0; round < MOST_ROUNDS && all > 0; round++) {
		double rate = hits / own;

		hit_s = fmax(0, (before_s - rare / rate) / all);
		own = fmax(cpu_s - hit_s * hits, 0.1 * cpu_s);
	}
	e->unsure = HIT_ERROR * hit_s * hits / own;
	return own;
}

/* The sums over the windows of @level of what places later than it were hit, each with its weight.
 * The lumped ones stand in one sum, the last. */
static void add_up(struct estimate *e, uint32_t level)
{
	size_t n = e->in->n_places;

	memset(e->sums, 0, (n + 1) * sizeof(*e->sums));
	for (size_t i = 0; i < e->in->n_windows; i++) {
		const struct executions_window *w = &e->in->windows[i];

		for (size_t s = 0; is_of(e, i, level) && s < n; s++)
			if (e->in->levels[s] >= level)
				e->sums[e->lumped[s] ? n : s] +=
					e->drawn[i] * e->weights[i] * (double)w->hits[s];
	}
}

/* One round of expectation maximisation. @known: rates, those of lumped places summed up at the
 * end. */
static void refine(struct estimate *e, uint32_t level, const double *known)
{
	size_t n = e->in->n_places;

	add_up(e, level);
	for (size_t i = 0; i < e->in->n_windows; i++) {
		double all = 0, should = 0;

		for (size_t s = 0; is_of(e, i, level) && s < n; s++) {
			size_t k = e->lumped[s] ? n : s;
			double hits = (double)e->in->windows[i].hits[s];

			if (e->in->levels[s] <= level || !(e->sums[k] > 0))
				continue;
			all += hits;
			should += hits * known[k] / e->sums[k];
		}
		/* A window without any of them, as in a long loop, stays as it is. */
		if (all > 0)
			e->weights[i] *= should / all;
	}
}

/* The rates of the places of @level, from those of later ones. */
static void estimate_level(struct estimate *e, uint32_t level, double *rates, double *known)
{
	size_t n = e->in->n_places;
	double all = 0, cpu_s, hits = hits_beyond(e, level, level + 1, &cpu_s);

	memset(known, 0, (n + 1) * sizeof(*known));
	memset(e->lumped, 0, n * sizeof(*e->lumped));
	for (size_t i = 0; i < e->in->n_windows; i++)
		e->weights[i] = 1;
	add_up(e, level);
	for (size_t s = 0; s < n; s++) {
		if (e->in->levels[s] <= level)
			continue;
		e->lumped[s] = e->sums[s] < FEW_HITS;
		known[e->lumped[s] ? n : s] += rates[s];
		all += rates[s];
	}
	for (size_t i = 0; i < e->in->n_windows; i++)
		e->weights[i] = hits > 0 ? all / hits : 0;
	for (int round = 0; round < MOST_ROUNDS; round++)
		refine(e, level, known);
	add_up(e, level);
	for (size_t s = 0; s < n; s++)
		if (e->in->levels[s] == level)
			rates[s] = e->sums[s];
}

/* From the windows as they were drawn. False: those of the last level say nothing. */
static bool estimate(struct estimate *e, double *rates, double *known)
{
	double hits, own = program_time(e, &hits);

	if (!(hits > 0) || !(own > 0))
		return false;
	memset(rates, 0, e->in->n_places * sizeof(*rates));
	for (size_t i = 0; i < e->in->n_windows; i++)
		for (size_t s = 0; is_of(e, i, e->last) && s < e->in->n_places; s++)
			if (e->in->levels[s] == e->last)
				rates[s] += e->drawn[i] * (double)e->in->windows[i].hits[s] / own;
	for (uint32_t level = e->last; level-- > 0;)
		estimate_level(e, level, rates, known);
	return true;
}

/* As many windows of each level as there are, each drawn at random: the bootstrap (Efron, Annals of
 * Statistics, 1979). */
static void draw(struct estimate *e, struct rng *r)
{
	const struct executions_window *w = e->in->windows;

	memset(e->drawn, 0, e->in->n_windows * sizeof(*e->drawn));
	for (size_t i = 0; i < e->in->n_windows; i++) {
		size_t k = rng_below(r, e->in->n_windows);

		while (w[k].level != w[i].level)
			k = rng_below(r, e->in->n_windows);
		e->drawn[k]++;
	}
}

static void find_errors(struct estimate *e, const double *rates, double *again, double *known,
			double *errors)
{
	struct rng r;
	int n = 0;

	rng_seed(&r, 1);
	for (int i = 0; i < REDRAWN; i++) {
		draw(e, &r);
		if (!estimate(e, again, known))
			continue;
		n++;
		for (size_t s = 0; s < e->in->n_places; s++)
			errors[s] += (again[s] - rates[s]) * (again[s] - rates[s]);
	}
	for (size_t s = 0; s < e->in->n_places; s++)
		errors[s] = n && rates[s] > 0 ? hypot(sqrt(errors[s] / n) / rates[s], e->unsure)
					      : INFINITY;
}

int executions_estimate(const struct executions_input *in, double *rates, double *errors)
{
	size_t n = in->n_places;
	_cleanup_free_ uint32_t *drawn = xcalloc(in->n_windows, sizeof(*drawn));
	_cleanup_free_ double *numbers = xcalloc(in->n_windows + 3 * (n + 1), sizeof(*numbers));
	_cleanup_free_ bool *lumped = xcalloc(n, sizeof(*lumped));
	struct estimate e = {.in = in, .drawn = drawn, .weights = numbers, .lumped = lumped};
	double *known, *again;

	e.sums = numbers + in->n_windows;
	known = e.sums + n + 1;
	again = known + n + 1;
	for (size_t s = 0; s < n; s++) {
		e.last = in->levels[s] > e.last ? in->levels[s] : e.last;
		errors[s] = 0;
	}
	for (size_t i = 0; i < in->n_windows; i++)
		drawn[i] = 1;
	if (!estimate(&e, rates, known))
		return -ERANGE;
	find_errors(&e, rates, again, known, errors);
	return 0;
}

struct ranked {
	size_t place;
	double rate;
};

static int by_rate(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->rate > y->rate) - (x->rate < y->rate);
}

uint32_t executions_levels(const double *rates, size_t n, double last, double factor,
			   uint32_t *levels)
{
	_cleanup_free_ struct ranked *all = xcalloc(n, sizeof(*all));
	double sum = 0, most = last;
	uint32_t level = 0;

	for (size_t s = 0; s < n; s++)
		all[s] = (struct ranked){s, rates[s]};
	qsort(all, n, sizeof(*all), by_rate);
	for (size_t k = 0; k < n; k++) {
		sum += all[k].rate;
		/* Those of the last level are counted from 0 here, and turned round below. */
		if (sum > most && k) {
			level++;
			most = fmax(sum, most * factor);
		}
		levels[all[k].place] = level;
	}
	for (size_t s = 0; s < n; s++)
		levels[s] = level - levels[s];
	return level + 1;
}
