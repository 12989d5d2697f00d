/* SPDX-License-Identifier: BSD-2-Clause */
/* From experiments to effects. Pure functions over a profile. */
#pragma once

#include "profile/reader.h"

#define ANALYSIS_MAX_SPEEDUPS 64

/* What a reader is told about a line. */
enum verdict { VERDICT_UNDECIDED, VERDICT_HELPS, VERDICT_NO_EFFECT, VERDICT_HURTS };
extern const char *const verdict_names[]; /* "undecided", "helps", "no effect", "hurts" */

/* Why nothing is decided about a line, whatever its intervals are. */
enum undecided {
	UNDECIDED_OPEN,	     /* nothing of the kind */
	UNDECIDED_DISTURBED, /* most experiments were flagged: other programs or a hypervisor had
				the CPUs */
	UNDECIDED_BURSTS,    /* visits come in bursts: averages hang on few experiments */
	UNDECIDED_LENT,	 /* paused threads left their CPUs to others (delay mode sleep), of which
			    there were more than CPUs */
	UNDECIDED_QUOTA, /* a CPU quota was used up, which pauses are charged to as well. Effects
			    are not known then: all are NaN */
	/* Threads that should have slept were held on CPUs that others wanted (analysis_held).
	   Effects are not known then: all are NaN */
	UNDECIDED_INJECT,  /* ... since no handler was put into processes that ran already */
	UNDECIDED_HELD,	   /* ... though handlers were, or the program was started: it is one that
			      cannot have any */
	UNDECIDED_ABSENT,  /* a wait that never was in its experiments: none of this kind, or one
			      that threads of the program end */
	UNDECIDED_DEPENDS, /* a wait that gets longer when the program is paused: what ends it waits
			      for the program in turn. Not known then either */
	N_UNDECIDED,
};
/* What the table says, the reason and what to do, and what that means. All NULL for UNDECIDED_OPEN.
 */
struct undecided_words {
	const char *verdict, *why, *more;
};
extern const struct undecided_words undecided_words[N_UNDECIDED];

/* For which share of the time in experiments above 0 % threads that had slept were held on a CPU,
 * since nothing could make them sleep longer (R6 in bpf/README.md). 0: for none, or for so little,
 * or with so many CPUs to spare, that it does no harm. */
double analysis_held(const struct profile *p);
/* Effects are off by about as many points as threads are held per cent of the time (bpf/README.md,
 * section 6): less than this is within the method's own error. In the truth suite's programs (--pay
 * attach) it is less than 0.05 % or more than 18. */
#define ANALYSIS_HELD_LEAST 0.01

/* In which share of its periods a CPU quota was used up during experiments. 0: never, or there is
 * none. */
double analysis_throttled(const struct profile *p);
/* From here on no effects are told: of a quota that is always used up they can have the wrong sign,
 * and a quota that is used up in a part of its periods is a limit in that part. */
#define ANALYSIS_THROTTLED_LEAST 0.02

/* An effect and its 95 % interval; NaN where it cannot be told. */
struct analysis_change {
	double effect, low, high;
};
static inline struct analysis_change analysis_around(double effect, double half)
{
	return (struct analysis_change){effect, effect - half, effect + half};
}

/* The effect of one virtual speedup: change of the period per visit (throughput) or of the mean
 * latency, relative to 0 %. 0.25 means 25 % less time per visit. NaN where it cannot be told. */
struct analysis_cell {
	double speedup; /* 0..1 */
	size_t experiments;
	double visits;
	double period_ns; /* pooled effective time per visit, or mean latency (measured, else
			     Little's law: L / throughput) */
	struct analysis_change change; /* 95 % bootstrap interval over experiments */
};

#define ANALYSIS_CURVE_POINTS 4
extern const double analysis_curve_speedups[ANALYSIS_CURVE_POINTS]; /* 0.25, 0.5, 0.75, 1 */

#define ANALYSIS_UNKNOWN ((struct analysis_change){NAN, NAN, NAN})

/* A curve through all of a line's effects: 0 at 0 %, straight, or straight with one knee. */
struct analysis_curve {
	/* 95 %; NaN: not known. Where the experiments at just this speedup say otherwise than the
	 * curve, or as surely, it is they that speak: a curve can have more than one knee. */
	struct analysis_change at[ANALYSIS_CURVE_POINTS];
	struct analysis_change slope; /* effect per speedup in the line's experiments, from 0 on up
					 to the knee; NaN: not known */
	double least_speedup, most_speedup; /* that were measured, of this line */
	double run_least, run_most; /* ... of any line of the point: beyond, the curve is a guess */
	double knee, knee_low, knee_high; /* speedup from which on a faster line gains at another
					     rate; NaN: none that is sure */
	double knee_effect;		  /* at the knee */
	double slope_after;		  /* effect per speedup, beyond it */
};

/* What is said of a latency point whose intervals were measured. */
enum latency_statistic {
	LATENCY_MEAN, /* of the intervals themselves */
	LATENCY_P50,
	LATENCY_P90,
	LATENCY_P99,
	LATENCY_P999,
	LATENCY_LITTLE, /* the mean by Little's law, from what is under way and what leaves: a check
			   of the first */
	N_LATENCY_STATISTICS,
};
const char *latency_statistic_name(
	enum latency_statistic s); /* "mean", "p50", "p90", "p99", "p99.9", "little" */

struct analysis_latency_cell {
	double speedup; /* above 0 */
	size_t experiments;
	double intervals;
	double ns[N_LATENCY_STATISTICS];
	struct analysis_change change[N_LATENCY_STATISTICS]; /* against 0 % */
};

/* Of a line: what it does to the statistics of a latency point. */
struct analysis_latency {
	struct analysis_latency_cell cells[ANALYSIS_MAX_SPEEDUPS]; /* ascending by speedup */
	size_t n_cells;
	struct analysis_change at[N_LATENCY_STATISTICS][ANALYSIS_CURVE_POINTS];
	bool little; /* at each speedup the mean by Little's law agrees with the timed one; else its
			effects are not known */
};

/* Of a latency point. */
struct analysis_intervals {
	double ns[N_LATENCY_STATISTICS]; /* at 0 % */
	bool little; /* there the mean by Little's law agrees with the timed one */
	double intervals;
	double in_flight;			  /* mean */
	double unmatched, unended, crossed, lost; /* as in struct profile_latency */
	double distance_ns; /* between samples: what a single interval may be off by, times the
			       speedup */
};

/* Phase correction (analysis/presence.h): a line that runs in some phases of the program only is
 * tried in those, and its effect there is not that on the whole run. */
struct analysis_presence {
	double share;  /* of the run's time in which the line runs as it did in its experiments; 1:
			  all, or not known; above 1: it ran less there */
	double factor; /* that effects were multiplied by: @share, and for latencies how many
			  intervals are under way there, relative to the mean */
	double error;  /* 95 % half-width of the factor, relative to it */
};

/* What the method's own error depends on (analysis/fidelity.h). */
struct analysis_allowance {
	double share; /* of an effect, that it may be off by; NaN: nothing known, nothing allowed */
	double sampling; /* share of a thread's time that samples take */
	double scatter;	 /* by how much of that two threads may differ in one visit */
	double waits;	 /* allowed in addition if the line is a wait, whatever the effect; 1 is 100
			    points */
	struct analysis_presence presence;
};

struct analysis_line {
	const char *selected; /* owned by the profile */
	const char *function; /* or NULL */
	double share;	      /* of the run's samples; of a wait: of the run's time */
	unsigned int wait;    /* its kind (base/waits.h); 0: it is execution */
	size_t experiments;
	struct analysis_cell cells[ANALYSIS_MAX_SPEEDUPS]; /* ascending by speedup, 0 first */
	size_t n_cells;
	struct analysis_curve curve;
	struct analysis_allowance
		allow; /* what the intervals allow for the method's own error, beside noise */
	enum verdict verdict;
	double best_effect,
		best_speedup; /* what the verdict speaks of: a point of the curve, or a cell */
	double most;	      /* what one unit of speedup can gain by arithmetic; NaN: not known */
	double foreign;	      /* mean share of the wait time behind other programs in the line's
				 experiments */
	double missing_s; /* undecided: about how many more seconds of run would decide; NaN unknown
			   */
	enum undecided undecided; /* why the verdict is VERDICT_UNDECIDED, beside its interval */
	double held;		  /* as analysis_held, of the line's experiments */
	/* What small speedups are worth, by the chains of events that led to visits: the effect per
	 * speedup at 0 %, with its 95 % interval. NaN: not known. */
	struct analysis_change slope;
	/* The line's share of a latency point's intervals, by how long they are, in
	 * profile_class_names's order. NaN: not known. */
	struct analysis_change in_class[PROFILE_CLASSES];
	struct analysis_latency *latency; /* owned; NULL: not measured, or one of too many lines */
};

/* What was taken out of a throughput point's times because the machine was not equally fast in all
 * experiments (analysis/speed.h). */
struct analysis_speed {
	double slope; /* of the log of the time per visit, by the log of the CPU time per visit; 0:
			 nothing was changed */
	double before, after; /* how much experiments of one kind differ: standard deviation,
				 relative to their mean; NaN: nothing was changed */
	double share; /* of an effect: what the CPU time per visit changed with it, which may be the
			 program's doing, times the slope */
	bool spins;   /* the CPU time per visit follows the pauses: threads execute while they wait,
			 which no event tells */
};

struct analysis_point {
	const char *name;
	enum profile_point_kind kind;
	uint64_t visits;
	struct analysis_line *lines; /* the surest gain first (verdicts_sort) */
	size_t n_lines;
	double self_share; /* of the time, in those chains, that the profiler itself took; slopes
			      are without it. NaN: not known */
	/* Of a latency point's intervals that were followed, by how long they are. */
	struct {
		uint64_t n;
		double mean_ns;
	} classes[PROFILE_CLASSES];
	double placebo; /* 95 % half-width of 0 % against 0 %: the run's own noise floor; NaN if too
			   few */
	struct analysis_speed speed;
	struct analysis_intervals *intervals; /* owned; NULL: not a latency point, or its intervals
						 were not measured */
};

/* How long runs that ended by themselves took, without the pauses of experiments. */
struct analysis_run_times {
	size_t n;					 /* 0: the rest is not known */
	double mean_ns, deviation_ns, least_ns, most_ns; /* the deviation is NaN of one run */
	double user_ns, system_ns;			 /* CPU time on average, pauses included */
	size_t outliers;
	bool first_is_slow; /* the first run is one of them, and took longer than the others */
};

struct analysis {
	struct analysis_point *points;
	size_t n_points;
	/* fidelity over all experiments */
	struct {
#define SUM(kind, name, json) double name;
#include "shared/sums.def"
#undef SUM
	} sums;
	double owed_ns, growth_ns, elapsed_ns;
	double late_ns;		/* median of medians */
	double foreign;		/* time-weighted mean */
	size_t foreign_flagged; /* experiments with foreign > ANALYSIS_FOREIGN_FLAG */
	double stolen;		/* time-weighted mean */
	size_t stolen_flagged;	/* experiments with stolen > ANALYSIS_STOLEN_FLAG */
	size_t disturbed;	/* experiments that are flagged, for either reason */
	size_t marked; /* experiments outside the bounds of analysis/fidelity.h, for any reason:
			  they count for less */
	int64_t imbalance_max;
	struct analysis_run_times run_times;
	char **texts; /* owned: where lines that only have a slope have their names */
	size_t n_texts;
};

/* Experiments in which in-scope threads waited this share of their time behind other programs are
 * flagged; so are lines. */
#define ANALYSIS_FOREIGN_FLAG 0.02
/* The same of experiments during which a hypervisor took this share; it is told in ticks of 10 ms.
 */
#define ANALYSIS_STOLEN_FLAG 0.03

/* All samples of execution, those that belong to no line among them. */
double analysis_sampled(const struct profile *p);
/* Were more than half of the experiments disturbed? No verdict rests on such a profile. */
bool analysis_disturbed(const struct profile *p, const struct analysis *a);

/* @seed makes the bootstrap repeatable. The contents of *ret are the caller's (analysis_free) and
 * point into @p. */
void analyse(const struct profile *p, uint64_t seed, struct analysis *ret);
void analysis_free(struct analysis *a);
/* The first point with visits, or NULL. */
const struct analysis_point *analysis_visited(const struct analysis *a);
/* The experiment's observation of a point. NULL: it has none. */
const struct profile_point *analysis_point_in(const struct profile_run_experiment *x,
					      const struct analysis_point *point);
/* The line of that name among the first @n; NULL: there is none. */
struct analysis_line *analysis_line_named(const struct analysis_point *p, size_t n,
					  const char *selected);
/* Has a line of the point a slope? */
bool analysis_has_slopes(const struct analysis_point *p);
/* Is it known what its intervals are made of, by how long they are? */
bool analysis_has_classes(const struct analysis_point *p);
/* Has an experiment tried a line, for this point? */
bool analysis_was_tried(const struct analysis_point *p);
/* Has the point slopes alone, and no experiment? */
bool analysis_slopes_only(const struct analysis_point *p);
/* What a report shows at analysis_curve_speedups[@i]: the curve, if one of the speedups that were
 * measured is as large or larger and one as small or smaller, else the nearest cell. NaN: nothing.
 */
struct analysis_change analysis_shown(const struct analysis_line *line, size_t i);
/* The effect that a sentence speaks of, and at how many per cent. Of those that a report shows,
 * from analysis_curve_speedups[@first] on and then from the begin, and then, where it shows none (a
 * run at one small speedup), of those of the experiments, the first that @fits, which gets @v. */
bool analysis_told(const struct analysis_line *line, size_t first,
		   bool (*fits)(struct analysis_change c, enum verdict v), enum verdict v,
		   double *ret_percent, struct analysis_change *ret);
