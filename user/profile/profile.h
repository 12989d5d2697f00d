/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of a profile file (the grammar is Coz's, with more keys), shared by what writes and
 * what reads one. Times are nanoseconds. Strings belong to the record's owner. A missing number is
 * 0, a missing string NULL, unless said otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One run's start. Everything but `time` is ours and absent in files by Coz. */
struct profile_startup {
	uint64_t time; /* since the epoch */
	char *version, *command, *kernel, *host;
	char *program;	/* of attach: the command line of the first process; else NULL, as `command`
			   has it */
	char *build;	/* build id of the program's executable, hexadecimal; NULL: it has none, or
			   there are several programs */
	char *sync;	/* "sched", "pthread" */
	char *pay;	/* the payer used: "sleep", "hold", "spin" */
	char *fallback; /* what had to be replaced on this kernel, in words; NULL: nothing */
	char *shared;	/* points that count visits of several functions, as these have one code, in
			   words; NULL: none */
	char *chosen;	/* the point that was found, since none was given; NULL: it was, or there
			   is none */
	char *choice;	/* it, and what else was found, in words */
	char *inject;	/* of processes that ran already: whether a handler of a signal was put into
			   them: "never", "auto", "always"; else NULL */
	char *granularity; /* "line", "function" */
	char *attribution; /* what a sample belongs to: "first" line in scope of its call chain,
			      "inclusive": all of them; NULL: the first */
	uint64_t cpus;	   /* of the machine, that can be used */
	uint64_t seed, period_ns;
	/* As calibrated: what a payment and a hit stop their threads for, beside what is measured;
	 * and what any other sample does. */
	uint64_t pay_overhead_ns, hit_overhead_ns, tick_overhead_ns;
	/* Of its log: how long the program ran, from its start to the end that it came to by
	 * itself, with the CPU time of its processes. 0: it was ended, failed, or did not end in
	 * time. */
	uint64_t run_ns, user_ns, system_ns;
};

/* One experiment. The JSON key of each field is its name. */
struct profile_experiment {
	char *selected;	   /* "<file>:<line>" or, with function granularity, the function's name */
	double speedup;	   /* 0..1 */
	bool slowed;	   /* the line was slowed by it instead, for real. Stands in no file */
	uint64_t duration; /* effective: elapsed - growth of G */
	/* ours */
	char *function; /* the function around the line, or NULL */
	uint64_t began; /* CLOCK_MONOTONIC */
	uint64_t burst; /* of experiments with rests between them: which one in its run, from 1 on;
			   0: the run has no rests */
	uint64_t elapsed; /* wall clock */
	uint64_t growth;  /* of G */
#define PROFILE_SUM_U64 uint64_t
#define PROFILE_SUM_I64 int64_t
#define SUM(kind, name, json) PROFILE_SUM_##kind name;
#include "shared/sums.def"
#undef SUM
	uint64_t executed_ns; /* CPU time of what is in scope, without pauses; 0: not known */
	uint64_t settled_elapsed, settled_duration,
		settled_executed_ns; /* of elapsed, duration and executed_ns, what comes after the
				      * experiment's first part; 0: not known */
	uint64_t owed;		     /* debts still open at the end, summed over threads */
	uint64_t ahead;		     /* what threads were stopped for beyond G at the end, summed */
	uint64_t period_ns;	     /* between samples, mean */
	uint64_t late;		     /* hit to pause, median ns; 0: no payment by another thread */
	uint64_t threads;	     /* threads that were seen */
	int64_t imbalance; /* largest per-thread conservation error, ns: |change of local - (earned
			      + paid + credited + rq_credited)| */
	double stolen;	   /* CPU time that a hypervisor took from the machine, relative to in-scope
			      threads' running or runnable, at most 1 */
	double throttled;  /* share of a CPU quota's periods in which it was used up; 0: never, or
			      there is none */
	double foreign;	   /* share of runnable-or-running time that in-scope threads waited behind
			      foreign tasks, 0..1 */
};

struct profile_bucket {
	uint32_t bucket; /* as in shared/histogram.h */
	uint64_t count;
};

/* What a latency point measured beside counting: intervals from begin to end that lie in the
 * experiment, in virtual time. The JSON keys are the names; the buckets are the members of an
 * object, HISTOGRAM_KEY:{"<bucket>":<count>,...}. */
struct profile_latency {
	int64_t sum_ns;	    /* of the intervals */
	uint64_t unmatched; /* ends whose begin was never seen */
	uint64_t unended;   /* begins that another begin or the thread's end followed, instead of an
			       end */
	uint64_t crossed;   /* ends whose begin was before the experiment */
	uint64_t lost;	    /* begins that found no room */
	int64_t in_flight_begin,
		in_flight_end; /* intervals under way when the experiment began and ended */
	struct profile_bucket *buckets; /* ascending, none twice; owned */
	size_t n_buckets;
};

void profile_latency_free(struct profile_latency *l); /* NULL is allowed */
/* NULL: @l is NULL. */
struct profile_latency *profile_latency_copy(const struct profile_latency *l);

/* The point that stands for the end of the program. */
#define PROFILE_WHOLE_RUN "end-to-end"

enum profile_point_kind { PROFILE_THROUGHPUT, PROFILE_LATENCY };

struct profile_point {
	enum profile_point_kind kind;
	char *name;
	/* throughput */
	uint64_t delta;		    /* visits in the experiment */
	uint64_t settled_delta;	    /* of those, after its first part; only where the experiment's
				       settled_duration is known */
	uint64_t first_ns, last_ns; /* monotonic time of first and last timed visit since the
				       experiment's begin; both 0: not timed */
	uint64_t effective_ns;	    /* last - first in virtual time (growth of the visitor's local
				       subtracted); spans timed_visits - 1 visits */
	uint64_t timed_visits; /* those two and what was between: at least 2, at most delta. The
				  first part of an experiment may be left out */
	bool timed;	       /* the four above are valid (delta >= 2) */
	uint64_t cost_ns; /* what counting a visit takes of the program's time, as measured before
			     the run; 0: nothing, or not known */
	/* latency */
	uint64_t arrivals, departures;
	int64_t difference; /* in flight: mean over the experiment, rounded, as Coz records the
			       difference of its counters */
	struct profile_latency *latency; /* owned; NULL: begins and ends were counted only */
};

/* Log records, at a run's end: the time it took with the samples that have a location, and how many
 * of them each location has. Where a sample has several (inclusive attribution), the locations' sum
 * is larger. */
struct profile_runtime {
	uint64_t time;	       /* without that in which the program was stopped */
	uint64_t samples;      /* ours; 0: as many as the locations have */
	uint64_t unattributed; /* ours: samples of the program that belong to no location */
	/* ours, of these: with call chains of more frames than are looked at, and with those that
	 * could not be followed to their end */
	uint64_t too_deep, cut_short;
	/* ours, CPU time: what the machine had (all CPUs), and what it gave to the profiler's
	 * process, to its programs in the kernel (estimated), to what was profiled with the pauses
	 * that keep a CPU, and to all else. 0: not known */
	uint64_t machine_ns, own_cpu_ns, kernel_cpu_ns, scope_cpu_ns, foreign_cpu_ns;
	uint64_t run_ns, user_ns, system_ns; /* ours, as of struct profile_startup */
};

struct profile_samples {
	char *location;
	uint64_t count;
	/* ours: which inlined copies of it were sampled, most samples first; NULL: none. Each is a
	 * text line: how many samples, and the source lines from the innermost out, separated by
	 * tabs. What the innermost was inlined into need not be in scope, and the location is one
	 * of them. */
	char *inlined;
	uint64_t ns; /* ours: execution that they stand for; 0: not known */
	/* ours, where it was asked for: the source around the line (profile/source_text.h), each
	 * line as its number, a tab and its text */
	char *source;
	char *function; /* ours: the function around the line; NULL: not known, or the location is
			   one */
	char *object;	/* ours: the executable or library that it is in, or "[kernel]", "[jit]" and
			   the   like; NULL: not known */
};
/* Ours: what samples of a location executed instead of its own code: what it called. */
struct profile_elsewhere {
	char *location; /* NULL: samples that belong to no location */
	char *object;	/* as in struct profile_samples; "[anonymous]": memory of no file */
	uint64_t count;
};
/* Ours: which instructions of an executable or library the samples found. A file has as many of
 * these records as it needs. */
struct profile_addresses {
	char *path;
	char *build; /* build id, hexadecimal; NULL: it has none, and only its inode and time of
			change say which file it was */
	uint64_t inode, changed_ns;
	char *counts; /* see profile_addresses_each */
};

/* Ours: what the visits of a point found in a window in which nobody was paused. Where the places
 * are too many for one, a window has several records of a point. */
struct profile_slopes {
	char *point;
	char *class;	  /* of a latency point: which intervals, one of profile_class_names or
			     PROFILE_ALL_CLASSES; NULL: it is none */
	uint64_t began;	  /* CLOCK_MONOTONIC */
	uint64_t length;  /* of the window */
	uint64_t seen;	  /* visits */
	uint64_t visits;  /* those that were added up */
	uint64_t time_ns; /* since the window's begin, of intervals since theirs; summed over those
			   */
	uint64_t own_ns;  /* of it, what the profiler took in the chains of events that led there */
	char *places; /* of it, each place: a text line for each, a number in ns, a tab, a location
		       */
};
/* Classes of intervals by how long they are: up to the median, to the 90th, to the 99th percentile,
 * and above. */
#define PROFILE_CLASSES 4
extern const char *const profile_class_names[PROFILE_CLASSES];
#define PROFILE_ALL_CLASSES "all" /* the percentiles were not known yet */
#define PROFILE_MAX_SLOPES 4000	  /* bytes of its places */
#define PROFILE_MAX_INLINED 4000  /* bytes of it */
#define PROFILE_MAX_SOURCE 4000
