/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of a profile file (the grammar is Coz's, with more keys), shared by what writes and what reads one. Times are
 * nanoseconds. Strings belong to the record's owner. A missing number is 0, a missing string NULL, unless said otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One run's start. Everything but `time` is ours and absent in files by Coz. */
struct profile_startup {
	uint64_t time; /* since the epoch */
	char *version, *command, *kernel, *host;
	char *sync;     /* "sched", "pthread" */
	char *pay;      /* the payer used: "sleep", "hold", "spin" */
	char *fallback; /* what had to be replaced on this kernel, in words; NULL: nothing */
	char *granularity; /* "line", "function" */
	uint64_t seed, period_ns;
	uint64_t pay_overhead_ns, hit_overhead_ns; /* as calibrated: what a payment and a hit stop their threads for, beside what is measured */
};

/* One experiment. The JSON key of each field is its name; in the text form only the first four exist. */
struct profile_experiment {
	char *selected;            /* "<file>:<line>" or, with function granularity, the function's name */
	double speedup;            /* 0..1 */
	uint64_t duration;         /* effective: elapsed - growth of G */
	uint64_t selected_samples; /* samples in the selected line */
	/* ours */
	char *function;     /* the function around the line, or NULL */
	uint64_t began;     /* CLOCK_MONOTONIC */
	uint64_t elapsed;   /* wall clock */
	uint64_t growth;    /* of G */
	uint64_t hits;      /* samples that were hits */
	uint64_t hit_ns;    /* virtual time they earned (sum of s*P) */
	uint64_t selected_ns; /* execution that the samples in the line stand for */
	uint64_t held;      /* ticks that found their thread stopped: no samples */
	uint64_t owed;      /* debts still open at the end, summed over threads */
	uint64_t owed_at_exit; /* debts that ended with their threads */
	uint64_t paid;      /* time really stopped, summed over threads */
	uint64_t payments;  /* how many */
	int64_t credited;   /* R3, net */
	int64_t rq_credited; /* R4, net */
	uint64_t forgiven;  /* R7 */
	uint64_t period_ns; /* between samples, mean */
	uint64_t late;      /* hit to pause, median ns; 0: no payment by another thread */
	int64_t oversleep;  /* stopped beyond what was owed, net */
	uint64_t samples;   /* samples in scope */
	uint64_t threads;   /* threads that were seen */
	int64_t imbalance;  /* largest per-thread conservation error, ns: |change of local - (hits+paid+credited+forgiven)| */
	double foreign;     /* share of runnable-or-running time that in-scope threads waited behind foreign tasks, 0..1 */
};

enum profile_point_kind { PROFILE_THROUGHPUT, PROFILE_LATENCY };

struct profile_point {
	enum profile_point_kind kind;
	char *name;
	/* throughput */
	uint64_t delta;        /* visits in the experiment */
	uint64_t first_ns, last_ns; /* monotonic time of first and last visit since the experiment's begin; both 0: not timed */
	uint64_t effective_ns; /* last - first in virtual time (growth of the visitor's local subtracted); spans delta - 1 visits */
	bool timed;            /* the three above are valid (delta >= 2) */
	uint64_t cost_ns;      /* what counting a visit takes of the program's time, as measured before the run; 0: nothing, or not known */
	/* latency */
	uint64_t arrivals, departures;
	int64_t difference; /* in flight: mean over the experiment, rounded, as Coz records the difference of its counters */
};

/* Log records, at a run's end: the time it took, and samples of one location. */
struct profile_runtime {
	uint64_t time;
	uint64_t unattributed; /* ours: samples of the program that belong to no location */
};

struct profile_samples {
	char *location;
	uint64_t count;
};
