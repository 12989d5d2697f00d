// SPDX-License-Identifier: BSD-2-Clause
/* Which places are rare, the levels of all others, and window after window. */
#include "counting/private.h"

#include "annotate/executions.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* CPU time of a window, and of one at rare places, which has to see more of the program. */
#define WINDOW_S 0.02
#define RARE_S 0.05
/* Rare places are hit no more often than this in a second of CPU time, in no window. A hit takes some 2 us: they slow the program down by a tenth. */
#define MOST_RARE 50000
#define LEVEL_FACTOR 50.0 /* between levels */
#define LEAST_ROUNDS 2
#define ENOUGH_HITS 20 /* of a window */
/* Part of the time for finding out what is rare, and at least so many seconds of CPU time. */
#define FINDING 0.15
#define FINDING_S 1.0
#define FINDING_PATIENCE 5

/* One window with probes at what is wanted; its number, or a negative errno. */
static int count(struct counting *c, double cpu_s, bool look, struct error *e)
{
	uint64_t *hits = calloc(c->n + 1, sizeof(*hits));
	struct executions_window *w;
	int r;

	if (!hits || array_room(c->all, c->n_all) < 0) {
		free(hits);
		return fail(e, ENOMEM, "out of memory");
	}
	w = &c->all[c->n_all];
	*w = (struct executions_window){.hits = hits};
	r = windows_count(c->windows, c->places, c->wanted, c->n, cpu_s, look, hits, &w->cpu_s, e);
	if (r < 0) {
		free(hits);
		return r;
	}
	return (int)c->n_all++;
}

static void drop_window(struct counting *c)
{
	free((void *)(uintptr_t)c->all[--c->n_all].hits);
}

/* At rare places, in all windows. */
static double all_hits(const struct counting *c)
{
	double sum = 0;

	for (size_t k = 0; k < c->n_all; k++)
		for (size_t i = 0; i < c->n; i++)
			sum += c->rare[i] ? (double)c->all[k].hits[i] : 0;
	return sum;
}

/* A window with probes at rare places alone. What turns out to be frequent in it is rare no more, and the window is dropped, since the program was
 * slowed down. */
static int count_rare(struct counting *c, uint32_t level, struct error *e)
{
	double hits = 0, most = MOST_RARE;
	struct executions_window *w;
	int r;

	for (size_t i = 0; i < c->n; i++)
		c->wanted[i] = c->rare[i] && !c->useless[i];
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
	uint64_t end = clock_monotonic_ns() + (uint64_t)(FINDING_PATIENCE * wanted * (double)NSEC_PER_SEC);
	int r = 0;

	while (r == 0 && cpu_s < wanted && clock_monotonic_ns() < end) {
		size_t before = c->n_all;

		r = count_rare(c, 0, e);
		cpu_s += r == 0 && c->n_all > before ? c->all[before].cpu_s : 0;
	}
	*ret_cpu_s = cpu_s;
	return r;
}

/* What is rare, while the program goes on as always. If nothing is, the rarest. */
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
	return r < 0 || cpu_s > 0 ? r : fail(e, ENODATA, "the process used no CPU while it was counted");
}

/* Rare places are the last level. */
static int set_levels(struct counting *c, struct error *e)
{
	_cleanup_free_ double *rates = calloc(c->n + 1, sizeof(*rates));
	_cleanup_free_ uint32_t *levels = calloc(c->n + 1, sizeof(*levels));
	size_t n = 0;

	if (!rates || !levels)
		return fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < c->n; i++)
		if (!c->rare[i] && !c->useless[i])
			rates[n++] = c->rates[i];
	c->n_levels = n ? executions_levels(rates, n, MOST_RARE * LEVEL_FACTOR, LEVEL_FACTOR, levels) : 0;
	if (n && !c->n_levels)
		return fail(e, ENOMEM, "out of memory");
	n = 0;
	for (size_t i = 0; i < c->n; i++)
		c->levels[i] = c->useless[i] ? 0 : c->rare[i] ? c->n_levels : levels[n++];
	for (size_t i = 0; i < c->n_all; i++)
		c->all[i].level = c->n_levels;
	c->n_levels++;
	return 0;
}

static int count_level(struct counting *c, uint32_t level, struct error *e)
{
	int r;

	if (level + 1 == c->n_levels)
		return count_rare(c, level, e);
	for (size_t i = 0; i < c->n; i++)
		c->wanted[i] = c->levels[i] >= level && !c->useless[i];
	r = count(c, WINDOW_S, true, e);
	if (r >= 0)
		c->all[r].level = level;
	return r < 0 ? r : 0;
}

static int estimate(struct counting *c, struct error *e)
{
	const struct executions_input in = {c->all, c->n_all, c->levels, c->n};
	int r = executions_estimate(&in, c->rates, c->errors);

	return r == -ERANGE ? fail(e, ENODATA, "the process executed nothing of the function, or of this build of its file, while it was counted")
	       : r < 0	    ? fail(e, -r, "out of memory")
			    : 0;
}

/* Which level's windows to have more of: one more lowers the variance of what is estimated from them by this much. What ties a level to the next is
 * the hits at places of later levels, of which few are worth much, and many no more than the window, since its time is drawn as a whole. */
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
		r = set_levels(c, e);
	for (int round = 0; r == 0 && round < LEAST_ROUNDS; round++)
		for (uint32_t level = 0; r == 0 && level < c->n_levels; level++)
			r = count_level(c, level, e);
	while (r == 0 && clock_monotonic_ns() < end)
		r = count_level(c, neediest(c), e);
	return r == 0 ? estimate(c, e) : r;
}
