/* SPDX-License-Identifier: BSD-2-Clause */
/* Latency points: what BPF and the controller share of them. A latency point is two points with a
 * role each (shared/abi.h's rules hold). */
#pragma once

#include "shared/abi.h"
#include "shared/histogram.h"

#define ABI_MAX_LATENCIES 16
#define ABI_MAX_BEGINS 65536 /* intervals under way at one time, of all latency points */
#define ABI_MAX_ARGUMENT 6   /* registers that hold a function's arguments */

/* What a point is besides: an end of an interval. Written by the controller before the point's
 * probes are there. */
struct abi_latency_role {
	abi_u32 latency; /* which one, and 1; 0: no end of any */
	abi_u32 is_end;
	abi_u32 argument; /* of the function: what begin and end have in
			     common, 1..ABI_MAX_ARGUMENT; 0: the thread */
	abi_u32 pad;
};
_Static_assert(sizeof(struct abi_latency_role) == 16, "abi_latency_role");

/* Of one latency point on one CPU, cumulative since load. `sum` and the buckets are of intervals
 * that began and ended in the same experiment, in virtual time; the rest is counted at all times.
 */
struct abi_latency {
	abi_s64 sum; /* of the intervals, ns; the parts that payments and hits are taken from can be
			shorter than these: signed */
	abi_u64 opened;	   /* begins that were remembered */
	abi_u64 closed;	   /* ... and of those, what is no longer under way */
	abi_u64 unmatched; /* ends whose begin was never seen */
	abi_u64 unended;   /* begins that another begin or the thread's exit followed instead of an
			      end */
	abi_u64 crossed;   /* ends in an experiment that began after the interval: not timed */
	abi_u64 lost;	   /* begins that found no room */
	abi_u64 pad;
	/* Each goes round: differences are right as long as an experiment has less than 2^32
	 * intervals. */
	abi_u32 buckets[HISTOGRAM_BUCKETS];
};
_Static_assert(sizeof(struct abi_latency) == 64 + 4 * HISTOGRAM_BUCKETS, "abi_latency");
/* The kernel's per-CPU allocator has no larger pieces than 32 KiB. */
_Static_assert(sizeof(struct abi_latency) <= 32768, "abi_latency is one per-CPU value");

/* Classes of intervals by length: up to the median, from there to the 90th and to the 99th
 * percentile, and above. */
#define ABI_CLASSES 4

/* How long the intervals of each class but the last one are at most, ns. Written by the controller
 * while no window is open; 0: not known, all intervals are of the last class. */
struct abi_latency_bounds {
	abi_u64 ns[ABI_CLASSES - 1];
	abi_u64 pad;
};
_Static_assert(sizeof(struct abi_latency_bounds) == 32, "abi_latency_bounds");
