/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile's experiments as observations: what one experiment says of one progress point.
 * Internal to the package. */
#pragma once

#include "analysis/analysis.h"

/* Two ways to read a period per visit off an experiment; a line's cells and baseline all use the
 * same. Either is a quotient of sums, num / den, over experiments:
 *  - WHOLE (Coz): whole duration, after the experiment's first part, and all visits in it. Unbiased
 * whatever the visits do, but a visit more or less at the edges counts in full: with five visits
 * +-20 %. Latency uses it too: Little's law, W = L / lambda = sum(L * duration) / sum(departures),
 * or, where the intervals themselves were measured, their sum and their number (latency.h).
 *  - TIMED: from first to last visit, and one visit less. No edges; but gaps that fit into an
 * experiment are the shorter ones, so that the period reads low by about c*c/n of itself, for n
 * visits an experiment whose gaps have a coefficient of variation c (visits of a Poisson process, n
 * = 5: -20 %). That is nothing for the regular visits whose edges matter most. TIMED is used where
 * it pays: if the point's experiments scatter with less than half the variance of WHOLE, which they
 * can only do for c*c < 1/(6n). A line is read so if all visits that it needs, its own and its
 * baseline's, were timed and at least half of the experiments have three or more. An experiment
 * with one visit or none has no span; it counts with its whole duration and visits, so that nothing
 * is dropped for its outcome, and if more than one in ten are like that the line is read by WHOLE.
 */
enum reading { READ_WHOLE, READ_TIMED, N_READINGS };

struct observation {
	uint32_t point, line; /* indices into the collection's names */
	uint32_t experiment;
	uint32_t burst; /* the first experiment of its burst; itself where there are none */
	bool in_burst;
	uint64_t when; /* its place in time: those of another run are farther away than any of the
			  same one */
	uint16_t key;  /* speedup in thousandths; 0 only for exactly none */
	bool timed;    /* READ_TIMED has a span */
	bool few;      /* one visit or none: no span, READ_TIMED is READ_WHOLE */
	bool plenty;   /* three visits or more */
	double visits;
	double sampling_ns; /* between samples; 0: not known */
	double tick_ns;	    /* what a sample stops its thread for, as far as the profile says */
	double work;	    /* log of the CPU time per visit, in ns; NaN: not known */
	double stretch;	    /* log of how much longer the real time is than the effective one, by
			       pauses; NaN: not known */
	double foreign;	    /* share of the wait time behind other programs */
	double duration, elapsed; /* effective, and with the delays */
	double passed;		  /* visits, or departures, that nothing was done to */
	double selected_ns;	  /* execution that the line's samples stand for; 0: not known */
	double flight;		  /* under way on average; 1 for a throughput point */
	double weight; /* the experiment's: one over its variance, relative to an undisturbed one
			  (analysis/fidelity.h) */
	double num[N_READINGS], den[N_READINGS]; /* both times the weight */
	double scale;				 /* of times, to the mean pace (analysis/drift.h) */
	/* A latency point that measured. */
	const struct profile_latency *latency; /* the profile's; NULL: it did not */
	double length_scale; /* of the intervals' lengths, to the pace of their middle */
};

struct collected_point {
	const char *name;
	enum profile_point_kind kind;
	bool measured;	 /* all of its observations are, or none */
	size_t first, n; /* its observations */
};

struct collection {
	struct observation *obs; /* by point, line, key, experiment */
	size_t n_obs;
	struct collected_point *points;
	size_t n_points;
	const char **lines;
	size_t n_lines;
	uint32_t *line_of; /* each experiment's */
};

/* Of observations in the order of a collection, how many at the front are of the first one's line;
 * of its cell; at 0 %, which come first in a line. Cells are steps of @step thousandths. */
size_t line_length(const struct observation *obs, size_t n);
size_t line_cell_length(const struct observation *obs, size_t n, unsigned int step);
size_t line_zeros(const struct observation *obs, size_t n);
/* The key of an observation's cell: its last thousandth. */
unsigned int line_cell_key(uint16_t key, unsigned int step);

/* What an experiment says of one of its points, without what other experiments say of its weight.
 */
struct observation observation_read(const struct profile_experiment *x,
				    const struct profile_point *p);
/* The log of the mean time per visit, by @how; or, with @lengths, the mean of those of the middle
 * intervals' lengths. Not finite: unknown. */
double observation_pace(const struct observation *o, bool lengths, enum reading how);
/* Multiplies the times of the observations by what @find puts into @scales, and where intervals
 * were measured their @lengths, before, by what it finds for those. @find returns whether anything
 * is to be changed, and this whether anything was. */
typedef bool (*scales_finder)(const struct observation *obs, size_t n, bool lengths, double *scales,
			      void *arg);
bool observations_rescale(struct observation *obs, size_t n, scales_finder find, void *arg);

/* The caller's (collection_free); the strings stay @p's. */
struct collection collect(const struct profile *p);
void collection_free(struct collection *c);
