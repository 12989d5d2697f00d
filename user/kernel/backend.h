/* SPDX-License-Identifier: BSD-2-Clause */
/* What an experiment needs of the outside: calls on the ledger, and on the code map. The session
 * implements them on BPF, the tests on a fake. All times are CLOCK_MONOTONIC nanoseconds; all
 * counters are cumulative since the run's start. */
#pragma once

#include "base/waits.h"
#include "profile/profile.h"
#include "shared/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

struct backend_setup {
	const struct abi_interval *intervals; /* of the selected line */
	size_t n_intervals;		      /* at most ABI_MAX_INTERVALS */
	double speedup;			      /* 0..1 */
	double slow; /* above 0, at most 1: the line is really slowed by this share instead; speedup
			is 0 */
	uint64_t most_growth_ns; /* the global delay grows by no more, whatever happens; 0: without
				    bounds */
	uint64_t settling_ns;	 /* visits are timed from that long after the begin; 0: all are */
};

struct backend_point {
	uint64_t visits;     /* throughput: visits; latency: arrivals */
	uint64_t departures; /* latency only */
	/* Of the visits since begin(), by probes that stamp the time; 0 when there was none or the
	 * point is not timed. */
	uint64_t first_ns, last_ns;
	uint64_t timed_visits;		 /* from the one to the other; 0: all since begin() */
	uint64_t cost_ns;		 /* of counting a visit; 0: nothing, or not known */
	int64_t first_local, last_local; /* the visitor's local then: virtual time is ns - local */
};

struct backend_totals {
	uint64_t time_ns;
	uint64_t growth; /* of G */
#define SUM(kind, name, json) PROFILE_SUM_##kind name;
#include "shared/sums.def"
#undef SUM
	uint64_t outside_wait_ns; /* in-scope threads runnable, behind tasks out of scope */
	uint64_t stolen_ns;	  /* taken by a hypervisor, of all CPUs */
	uint64_t quota_periods; /* of control groups with a CPU quota, in which their threads ran */
	uint64_t quota_used_up; /* ... and that was used up */
	uint64_t busy_ns;	/* in-scope threads running or runnable */
	uint64_t executed_ns;	/* in-scope threads running, but for pauses */
	uint64_t period_ns;	/* between samples, mean */
	bool bounded;		/* the global delay would have grown by more than it may */
	uint64_t pause_latency_ns; /* median hit to pause since begin(); 0: none */
	size_t n_points;
	struct backend_point points[ABI_MAX_POINTS];
};

struct backend_sample {
	uint64_t addr; /* a place in the code, as the backend numbers it */
	uint64_t count;
	bool more;   /* the next one is another frame of the same samples' call chain, with the same
			count */
	uint64_t ns; /* execution, or waiting, that they stand for */
	bool wait;   /* of a thread that waited there (base/waits.h says for what, of the place's
			name) */
};

/* What visits of a point found in a window, summed over those that were added up; or what the
 * intervals of one class were made of. */
struct backend_slopes {
	uint64_t seen, visits; /* all, and those */
	uint64_t time_ns;      /* since the window's begin; of intervals: since their begins. Of
				  visits it is by how much each is later than the mean, times that
				  relative to the window's length; so is what follows */
	/* Of that, in the chains of events that led to the visits: */
	uint64_t own_ns;	     /* what the profiler took */
	int64_t wait_ns[WAIT_KINDS]; /* waits for what is out of scope, by their kind, and for
					CPUs */
	int64_t place_ns[ABI_MAX_FOLLOWED];
	/* Of intervals: */
	bool classed;	  /* it was known how long those of each class are; if not, all are of the
			     last one */
	uint64_t slow_ns; /* what 1 % of them exceed; 0: not known */
};

/* Every function returns 0 or a negative errno. */
struct backend_ops {
	/* Selects the line and the speedup and opens the books; intervals are copied. */
	int (*begin)(void *b, const struct backend_setup *s);
	/* Reads all counters. Cheap enough to call for a status line. */
	int (*snapshot)(void *b, struct backend_totals *ret);
	/* Closes the books: no hit and no payment after it. */
	int (*end)(void *b);
	/* Optional: between two experiments, stops sampling, or goes on with it. */
	int (*rest)(void *b, bool rests);
	/* Drains the samples counted since the last call. *ret is the caller's (free). */
	int (*samples)(void *b, struct backend_sample **ret, size_t *ret_n);
	/* Debts still open when end() was called, and the conservation check: sets owed, ahead,
	 * threads and imbalance of *ret. Call after end(). */
	int (*owed)(void *b, struct profile_experiment *ret);
	/* What point @index measured between begin() and end(), the caller's
	 * (profile_latency_free); *ret is left alone where it counts only. Call after end(). NULL:
	 * no point measures. */
	int (*latency)(void *b, size_t index, struct profile_latency **ret);

	/* Optional: opens a window in which slopes are measured (bpf/slopes.h), or closes it.
	 * @places, at most ABI_MAX_PLACES, are in the order of their intervals, which do not
	 * overlap; their entries are from ABI_ENTRY_FIRST on. @since_ns: when the window began; 0:
	 * now. */
	int (*slopes_begin)(void *b, const struct abi_place *places, size_t n, uint64_t since_ns);
	/* The window that is open has these places from now on; entries stay what they are. */
	int (*slopes_follow)(void *b, const struct abi_place *places, size_t n);
	int (*slopes_end)(void *b);
	/* Of point @index in the window that was closed last; of a latency point by @class, below
	 * PROFILE_CLASSES, which is 0 for any other. */
	int (*slopes)(void *b, size_t index, unsigned int class, struct backend_slopes *ret);

	/* The name of the line (or function) at @addr: interned, valid for the run, equal names are
	 * equal pointers. *ret_function may be NULL. -ENOENT: no line there; -ENODATA: the object
	 * has no debug information; 1: as 0, but the code there can change: ask again. */
	int (*name)(void *b, uint64_t addr, const char **ret_line, const char **ret_function);
	/* Optional, where a sample counts for all lines of its call chain: names of further lines
	 * that samples at @addr count for, since its code was inlined by calls there; at most @max,
	 * interned. Returns how many. */
	size_t (*callers)(void *b, uint64_t addr, const char **ret, size_t max);
	/* Optional: the lines on the way from @addr out of the inlined copies around it, its own
	 * first, separated by tabs. Interned as names are; NULL: it was not inlined. */
	const char *(*inlined)(void *b, uint64_t addr);
	/* Optional: the path of the executable or library that @addr is in, or what it is instead
	 * in brackets. Interned as names are; NULL: not known. */
	const char *(*object)(void *b, uint64_t addr);
	/* The intervals of a name that name() returned or the user wrote: at least one, at most
	 * ABI_MAX_INTERVALS. -ENOENT. */
	int (*intervals)(void *b, const char *line, struct abi_interval *ret, size_t *ret_n);
};
