/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles made in memory, for the tests of analysis and report. */
#pragma once

#include "analysis/analysis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds an experiment without points. The strings are copied. */
static inline struct profile_run_experiment *sample_experiment(struct profile *p, const char *line,
							       double speedup, uint64_t duration)
{
	struct profile_run_experiment *x;

	if (p->n_runs == 0) {
		p->runs = calloc(1, sizeof(*p->runs));
		p->n_runs = 1;
	}
	p->experiments =
		reallocarray(p->experiments, p->n_experiments + 1, sizeof(*p->experiments));
	if (!p->experiments || !p->runs)
		abort();
	x = &p->experiments[p->n_experiments++];
	*x = (struct profile_run_experiment){
		.x = {.selected = strdup(line), .speedup = speedup, .duration = duration}};
	return x;
}

static inline struct profile_point *sample_point(struct profile_run_experiment *x,
						 enum profile_point_kind kind, const char *name)
{
	x->points = reallocarray(x->points, x->n_points + 1, sizeof(*x->points));
	if (!x->points)
		abort();
	x->points[x->n_points] = (struct profile_point){.kind = kind, .name = strdup(name)};
	return &x->points[x->n_points++];
}

/* One experiment with one throughput point "p", untimed. */
static inline struct profile_run_experiment *sample_visits(struct profile *p, const char *line,
							   double speedup, uint64_t duration,
							   uint64_t visits)
{
	struct profile_run_experiment *x = sample_experiment(p, line, speedup, duration);

	sample_point(x, PROFILE_THROUGHPUT, "p")->delta = visits;
	return x;
}

/* The same with visits timed; they span @effective_ns. */
static inline void sample_timed(struct profile *p, const char *line, double speedup,
				uint64_t duration, uint64_t visits, uint64_t effective_ns)
{
	struct profile_run_experiment *x = sample_visits(p, line, speedup, duration, visits);

	x->points[0].timed = visits >= 2;
	x->points[0].timed_visits = visits;
	x->points[0].last_ns = x->points[0].effective_ns = visits >= 2 ? effective_ns : 0;
}

/* The line of that name, of the first point. There is one, or the test ends. */
static inline const struct analysis_line *sample_line(const struct analysis *a, const char *line)
{
	for (size_t i = 0; i < a->points[0].n_lines; i++)
		if (strcmp(a->points[0].lines[i].selected, line) == 0)
			return &a->points[0].lines[i];
	(void)fprintf(stderr, "no line %s\n", line);
	abort();
}
