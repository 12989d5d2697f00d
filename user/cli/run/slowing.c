// SPDX-License-Identifier: BSD-2-Clause
/* With the probe in place an experiment at 0 % shows how often the line is visited and how long a
 * visit takes. Its figures are no part of the comparison: the probe may turn out to be too
 * expensive, and go. */

#include "cli/run/run.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "points/point_find.h"
#include "program/code/map.h"
#include "experiment/slowing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (20 * NSEC_PER_MSEC)

static void add_sites(struct point_sites *all, const struct point_sites *more)
{
	all->all = xreallocarray(all->all, all->n + more->n, sizeof(*all->all));
	memcpy(all->all + all->n, more->all, more->n * sizeof(*all->all));
	all->n += more->n;
}

/* Where visits of the line begin, in all objects that have it. -ENOENT and the like: nowhere, @e is
 * about the last that was looked at. */
static int find_sites(struct run *r, const struct point_spec *p, struct point_sites *ret,
		      struct error *e)
{
	int err = -ENOENT;

	for (size_t i = 0; i < code_map_count(r->code); i++) {
		struct point_sites one = {0};

		if (!point_may_be_in(r->code, p, i))
			continue;
		err = point_find(r->code, i, p, "-l", &one, e);
		if (err == 0)
			add_sites(ret, &one);
		point_sites_free(&one);
		if (err < 0)
			code_map_let_go(r->code, i);
		if (err == -ENOMEM || err == -ENOTSUP)
			return err;
	}
	return ret->n ? 0 : err;
}

static int attach(struct run *r, struct error *e)
{
	_cleanup_(point_spec_free) struct point_spec p = {0};
	_cleanup_(point_sites_free) struct point_sites sites = {0};
	int err = point_spec_parse(r->options.fixed_line, &p, e);

	if (err < 0)
		return err;
	err = find_sites(r, &p, &sites, e);
	return err < 0 ? err : session_slow_at(r->session, sites.all, sites.n, e);
}

static double largest_slow(const struct run_options *o)
{
	double most = 0;

	for (size_t i = o->n_grid - o->n_slow; i < o->n_grid; i++)
		most = fmax(most, o->grid[i]);
	return most;
}

/* @elapsed_ns: of the experiments so far. */
static int look_at(const struct run *r, uint64_t elapsed_ns, struct slowing_seen *ret)
{
	int err = session_slowed(r->session, ret);

	ret->elapsed_ns = elapsed_ns;
	ret->most = largest_slow(&r->options);
	return err;
}

static void by_samples(struct run *r)
{
	r->slowing.state = SLOWING_DECIDED;
	r->slowing.by_probe = false;
	session_slow_by_samples(r->session);
}

/* Begins to measure as soon as something that has the line is there. */
static void look(struct run *r, uint64_t now)
{
	struct abi_interval intervals[ABI_MAX_INTERVALS];
	struct backend_setup setup = {.intervals = intervals};
	struct run_slowing *s = &r->slowing;
	struct error e = {.text = ""};

	s->due_ns = now + LOOK_NS;
	if (session_backend.intervals(r->session, r->options.fixed_line, intervals,
				      &setup.n_intervals) < 0)
		return;
	if (attach(r, &e) == 0 && session_backend.begin(r->session, &setup) == 0) {
		s->state = SLOWING_MEASURES;
		s->begun_ns = clock_monotonic_ns();
		return;
	}
	(void)snprintf(s->why, sizeof(s->why), "%s",
		       e.text[0] ? e.text : "the probe could not be tried");
	utf8_make_printable(s->why, utf8_locale()); /* it names an object */
	by_samples(r);
}

static void measure(struct run *r, uint64_t now)
{
	struct run_slowing *s = &r->slowing;
	struct slowing_seen seen;
	enum slowing_way way = SLOWING_BY_SAMPLES;

	s->due_ns = now + LOOK_NS;
	s->took_ns = now - s->begun_ns;
	if (look_at(r, s->took_ns, &seen) < 0)
		(void)snprintf(s->why, sizeof(s->why), "the visits could not be read");
	else
		way = slowing_judge(&seen, s->why, sizeof(s->why));
	if (way == SLOWING_OPEN)
		return;
	(void)session_backend.end(r->session);
	s->state = SLOWING_DECIDED;
	s->by_probe = way == SLOWING_BY_PROBE;
	if (!s->by_probe)
		by_samples(r);
}

bool run_slowing_step(struct run *r, uint64_t now, uint64_t *ret_next)
{
	struct run_slowing *s = &r->slowing;

	if (!r->purpose->slows || r->options.slow_by == RUN_SLOW_BY_SAMPLES ||
	    s->state == SLOWING_DECIDED)
		return true;
	if (now >= s->due_ns && s->state == SLOWING_LOOKS)
		look(r, now);
	else if (now >= s->due_ns)
		measure(r, now);
	if (s->state == SLOWING_DECIDED)
		return true;
	clock_sooner(ret_next, s->due_ns);
	return false;
}

char *run_slowing_text(const struct run *r)
{
	uint64_t elapsed_ns = r->slowing.took_ns;
	struct slowing_seen x;

	for (size_t i = 0; i < r->profile.n_experiments; i++)
		elapsed_ns += r->profile.experiments[i].x.elapsed;
	if (r->slowing.by_probe && look_at(r, elapsed_ns, &x) == 0 && x.visits)
		return xasprintf("slowed at each visit, %.3g ms on average, by a probe that took "
				 "%s%.2g %% of the run",
				 (double)x.line_ns / (double)x.visits / (double)NSEC_PER_MSEC,
				 slowing_cost(&x) > SLOWING_COST_BOUND ? "too much: up to "
								       : "up to ",
				 100 * slowing_cost(&x));
	return xasprintf("slowed at each sample%s%s", r->slowing.why[0] ? ": " : "",
			 r->slowing.why);
}
