/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs experiments one after another, as a state machine driven by the caller's clock: it never
 * sleeps. */
#pragma once

#include "kernel/backend.h"
#include "experiment/slopes.h"
#include "experiment/tally.h"
#include "profile/profile.h"

struct runner;
struct rng;

struct runner_options {
	uint64_t seed;
	uint64_t experiment_ns; /* length; an experiment with few visits lengthens the next ones */
	/* Where visits and samples in the line are plentiful, experiments are shorter
	 * (plan_length), but no shorter than this, and so are the pauses between them. It is
	 * decided by the first experiment, which has the full length, and in bursts by what comes
	 * right before each. 0: all have. Latency points have the full length as well, since
	 * intervals must lie in one experiment. */
	uint64_t shortest_ns;
	/* One in so many parts of an experiment, its first, is not read by the analysis: its visits
	 * are also what the one before has left. A queue that was full, and that a faster consumer
	 * empties, has items for it that nobody had to produce. 0: all is. */
	unsigned int settling_part;
	double visits_per_s;  /* of the point that is visited least, as an earlier run has found it;
				 0: not known */
	uint64_t cool_off_ns; /* pause between two experiments, without payments */
	double duty; /* the share of the time that experiments take, in bursts of some blocks of the
		      * plan each, at random distances; between two bursts nothing is sampled. 0:
		      * all of it */
	uint64_t max_experiment_ns;
	uint64_t min_visits;	/* fewer visits of every point than this: the next experiments are
				   twice as long */
	const char *fixed_line; /* or NULL */
	unsigned int
		what; /* a bit for each kind of wait that may be drawn (base/waits.h), bit 0 for
		       * execution; 0: execution, and the kinds that take a good part of the run */
	double most_slowdown;  /* the global delay grows by no more than this share of the time of
				* bursts and rests, and in one experiment of a minute; 0: without
				* bounds */
	double fixed_speedup;  /* negative: random */
	const double *grid;    /* speedups to draw from, each in (0,1] */
	size_t n_grid, n_slow; /* by the last n_slow of them the line is slowed for real instead */
	double zero_share;     /* probability of 0 % */
	const char *const *point_names;
	const enum profile_point_kind *point_kinds;
	size_t n_points;    /* may grow: runner_add_point */
	slopes_sink slopes; /* not NULL: between experiments there are windows of slopes; gets what
			     * they find, with the sink's argument */
	struct slopes_time slopes_time;
	bool whole_run; /* one experiment, until the program's end; its only point is that end,
			       visited once */
};

/* Called with every finished experiment (points: one per known point). A negative return stops the
 * run. */
typedef int (*runner_sink)(void *arg, const struct profile_experiment *x,
			   const struct profile_point *points, size_t n_points);

/* The line and the grid of @o must outlive the runner. */
int runner_new(const struct runner_options *o, const struct backend_ops *ops, void *backend,
	       runner_sink sink, void *sink_arg, struct runner **ret);
void runner_free(
	struct runner *r); /* NULL is allowed; ends a running experiment without recording it */
/* A point that became known during the run (a coz.h counter). @name is copied. */
int runner_add_point(struct runner *r, const char *name, enum profile_point_kind kind);
/* Does what is due at @now and says when to call again (*ret_next, absolute). Negative errno from
 * the sink or the backend. */
int runner_step(struct runner *r, uint64_t now, uint64_t *ret_next);
/* Names the samples so far, which runner_step does only between experiments: what is out of scope
 * is found out by that. */
int runner_look(struct runner *r);
/* The program ended at @end_ns (or the run is over at it): the experiment under way is closed at
 * that time and recorded if it lasted at least a tenth of its length. */
int runner_finish(struct runner *r, uint64_t end_ns);

/* Ends a running experiment without recording it, and the run. */
void runner_abandon(struct runner *r);
/* Ends a running experiment without recording it; the next one follows, unless it was a whole run.
 * Returns whether there was one. */
bool runner_drop(struct runner *r, uint64_t now);

/* For status lines and the log at the end. */
struct runner_status {
	size_t experiments;
	struct tally_sums sums;
	uint64_t rested_ns; /* between bursts, when nothing was sampled */
	size_t bounded; /* experiments that ended since the global delay had grown as far as it may;
			   they are not recorded */
	double visits_per_s;  /* of the point that is visited least; 0: not known, or lengths do not
				 hang on it */
	const char *selected; /* of the experiment under way, or NULL */
	double speedup;
	bool slows; /* ... by which the line is slowed instead */
};
void runner_get_status(const struct runner *r, struct runner_status *ret);
/* The samples so far. */
struct tally *runner_tally(const struct runner *r);
