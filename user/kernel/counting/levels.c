// SPDX-License-Identifier: BSD-2-Clause
/* Finds the rare places, sorts all others into levels, and counts in one window after another. */
#include "kernel/counting/private.h"

#include "annotate/executions.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* CPU time of a window; of one at rare places, which has to see more of the program. */
#define WINDOW_S 0.02
#define RARE_S 0.05
/* Hits at rare places in a second of CPU time, in any window, at most. A hit takes some 2 us, so
 * they slow the program down by a tenth. */
#define MOST_RARE 50000
#define LEVEL_FACTOR 50.0 /* between levels */
#define LEAST_ROUNDS 2
#define ENOUGH_HITS 20 /* of a window */
/* CPU time for finding the rare places: a share of the whole, and at least so many seconds. It may
 * take so many times as long. */
#define FINDING 0.15
#define FINDING_S 1.0
#define FINDING_PATIENCE 5

/* Counts in one window with probes at the wanted places. Returns its number, or a negative errno.
 */
static int count(struct counting *c, double cpu_s, bool look, struct error *e)
{
	uint64_t *hits = xcalloc(c->n + 1, sizeof(*hits));
	struct executions_window w = {.hits = hits};
	int r = windows_count(c->windows, c->places, c->n, cpu_s, look, hits, &w.cpu_s, e);

	if (r < 0) {
		free(hits);
		return r;
	}
	xarray_add(c->all, c->n_all, w);
	return (int)c->n_all - 1;
}

static void drop_window(struct counting *c)
{
	free((void *)(uintptr_t)c->all[--c->n_all].hits);
}

/* Hits at rare places in all windows. */
static double all_hits(const struct counting *c)
{
	double sum = 0;

	for (size_t k = 0; k < c->n_all; k++)
		for (size_t i = 0; i < c->n; i++)
			sum += c->rare[i] ? (double)c->all[k].hits[i] : 0;
	return sum;
}

/* A window with probes at rare places alone. If the hits are too many, it slowed the program down:
 * then it is dropped, and the places with the most hits are no longer rare. */
static int count_rare(struct counting *c, uint32_t level, struct error *e)
{
	double hits = 0, most = MOST_RARE;
	struct executions_window *w;
	int r;

	for (size_t i = 0; i < c->n; i++)
		c->places[i].wanted = c->rare[i] && !c->useless[i];
	r = count(c, RARE_S, false, e);
	if (r < 0)
		return r;
	w = &c->all[r];
	w->level = level;
	for (size_t i = 0; i < c->n; i++)
		hits += (double)w->hits[i];
	if (hits <= most * w->cpu_s || c->nothing_rarer)
		return 0;
	while (hits > most / 4 * w->cpu_s) {
		size_t first = SIZE_MAX;

		for (size_t i = 0; i < c->n; i++)
			if (c->rare[i] && (first == SIZE_MAX || w->hits[i] > w->hits[first]))
				first = i;
		if (first == SIZE_MAX)
			break;
		hits -= (double)w->hits[first];
		c->rarest = first;
		c->rare[first] = false;
		c->rates[first] = fmax(c->rates[first], (double)w->hits[first] / w->cpu_s);
		/* An anchor is worth nothing then. */
		c->useless[first] = first >= c->n_counted;
		c->levels[first] = level && !c->useless[first] ? level - 1 : 0;
		/* Something has to be left. */
		if (level && !(all_hits(c) > 0)) {
			c->rare[first] = c->nothing_rarer = true;
			c->useless[first] = false;
			c->levels[first] = level;
			return 0;
		}
	}
	drop_window(c);
	return 0;
}

/* Windows at rare places, for a while. *ret_cpu_s: their CPU time. */
static int look_for_rare(struct counting *c, double seconds, double *ret_cpu_s, struct error *e)
{
	double cpu_s = 0, wanted = fmax(FINDING_S, FINDING * seconds);
	uint64_t end =
		clock_monotonic_ns() + (uint64_t)(FINDING_PATIENCE * wanted * (double)NSEC_PER_SEC);
	int r = 0;

	while (r == 0 && cpu_s < wanted && clock_monotonic_ns() < end) {
		size_t before = c->n_all;

		r = count_rare(c, 0, e);
		cpu_s += r == 0 && c->n_all > before ? c->all[before].cpu_s : 0;
	}
	*ret_cpu_s = cpu_s;
	return r;
}

/* Finds the rare places. If none is rare, the rarest one has to serve. */
static int find_rare(struct counting *c, double seconds, struct error *e)
{
	double cpu_s;
	int r;

	c->rarest = SIZE_MAX;
	r = look_for_rare(c, seconds, &cpu_s, e);
	if (r == 0 && !(all_hits(c) > 0) && c->rarest != SIZE_MAX) {
		c->rare[c->rarest] = true;
		c->useless[c->rarest] = false;
		c->nothing_rarer = true;
		r = look_for_rare(c, seconds, &cpu_s, e);
	}
	for (size_t i = c->n_counted; i < c->n; i++) {
		uint64_t hits = 0;

		for (size_t k = 0; k < c->n_all; k++)
			hits += c->all[k].hits[i];
		c->useless[i] |= !hits;
	}
	return r < 0 || cpu_s > 0
		       ? r
		       : fail(e, ENODATA, "the process used no CPU while it was counted");
}

/* Rare places are the last level. */
static void set_levels(struct counting *c)
{
	_cleanup_free_ double *rates = xcalloc(c->n + 1, sizeof(*rates));
	_cleanup_free_ uint32_t *levels = xcalloc(c->n + 1, sizeof(*levels));
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (!c->rare[i] && !c->useless[i])
			rates[n++] = c->rates[i];
	c->n_levels =
		n ? executions_levels(rates, n, MOST_RARE * LEVEL_FACTOR, LEVEL_FACTOR, levels) : 0;
	n = 0;
	for (size_t i = 0; i < c->n; i++)
		c->levels[i] = c->useless[i] ? 0 : c->rare[i] ? c->n_levels : levels[n++];
	for (size_t i = 0; i < c->n_all; i++)
		c->all[i].level = c->n_levels;
	c->n_levels++;
}

static int count_level(struct counting *c, uint32_t level, struct error *e)
{
	int r;

	if (level + 1 == c->n_levels)
		return count_rare(c, level, e);
	for (size_t i = 0; i < c->n; i++)
		c->places[i].wanted = c->levels[i] >= level && !c->useless[i];
	r = count(c, WINDOW_S, true, e);
	if (r >= 0)
		c->all[r].level = level;
	return r < 0 ? r : 0;
}

static int estimate(struct counting *c, struct error *e)
{
	const struct executions_input in = {c->all, c->n_all, c->levels, c->n};
	int r = executions_estimate(&in, c->rates, c->errors);

	return r == -ERANGE ? fail(e, ENODATA,
				   "the process executed nothing of the function, or of this build "
				   "of its file, while it was counted: "
				   "check --pid, or count for longer")
			    : 0;
}

/* The level for which one more window lowers the variance the most. A level is tied to the next one
 * by hits at places of later levels. Beyond ENOUGH_HITS in a window, more hits do not help: the
 * moment of the window is one draw, however many there are. */
static uint32_t neediest(const struct counting *c)
{
	uint32_t best = 0;
	double most = -1;

	for (uint32_t level = 0; level < c->n_levels; level++) {
		double windows = 0, hits = 0, gain;

		for (size_t i = 0; i < c->n_all; i++) {
			if (c->all[i].level != level)
				continue;
			windows++;
			for (size_t s = 0; s < c->n; s++)
				if (c->levels[s] > level || level + 1 == c->n_levels)
					hits += (double)c->all[i].hits[s];
		}
		gain = 1 / (fmin(hits, ENOUGH_HITS * windows) + 1) / fmax(windows, 0.1);
		if (gain > most) {
			most = gain;
			best = level;
		}
	}
	return best;
}

int counting_rounds(struct counting *c, double seconds, struct error *e)
{
	uint64_t end = clock_monotonic_ns() + (uint64_t)(seconds * (double)NSEC_PER_SEC);
	int r = find_rare(c, seconds, e);

	if (r == 0)
		set_levels(c);
	for (int round = 0; r == 0 && round < LEAST_ROUNDS; round++)
		for (uint32_t level = 0; r == 0 && level < c->n_levels; level++)
			r = count_level(c, level, e);
	while (r == 0 && clock_monotonic_ns() < end)
		r = count_level(c, neediest(c), e);
	return r == 0 ? estimate(c, e) : r;
}
