/* SPDX-License-Identifier: BSD-2-Clause */
/* From two readings of the ledger to the records of one experiment. Pure. */
#pragma once

#include "kernel/backend.h"
#include "profile/profile.h"

/* @begin was read right after the backend's begin(), @end right after its end(); their clocks bound
 * the experiment. @end_ns is the program's end if that came before @end was read, else anything
 * later: the time after it is no part of the experiment. All numbers of *ret are set but what the
 * backend's owed() sets; its strings and its speedup are left as they are. */
void books_experiment(const struct backend_totals *begin, const struct backend_totals *end,
		      uint64_t end_ns, struct profile_experiment *ret);

/* The same for point number @index, of the kind and name that *ret already has. A point that one of
 * the readings does not know yet had no visits then. */
void books_point(const struct backend_totals *begin, const struct backend_totals *end, size_t index,
		 struct profile_point *ret);

/* What has passed of it since @settled was read, and how often the point was visited since. */
void books_settled(const struct backend_totals *settled, const struct backend_totals *end,
		   uint64_t end_ns, struct profile_experiment *ret);
void books_settled_point(const struct backend_totals *settled, const struct backend_totals *end,
			 size_t index, struct profile_point *ret);

/* What point number @index measured in the experiment whose end() was called, for @ret, which loses
 * what it had. Nothing (NULL) where the point only counts. A negative errno is the backend's. */
int books_latency(const struct backend_ops *ops, void *backend, size_t index,
		  struct profile_point *ret);

/* Visits in the sense of the shortest useful experiment: what can be divided by. */
uint64_t books_visits(const struct profile_point *p);
/* Visits between two readings of the one of @n points that is visited least; 0 if none was visited.
 * Of @points only the kinds count. */
uint64_t books_least_visits(const struct profile_point *points, size_t n,
			    const struct backend_totals *from, const struct backend_totals *to);
