/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows in which slopes are measured: which lines have a place, and the windows' records. */
#pragma once

#include "kernel/backend.h"

#include <stddef.h>
#include <stdint.h>

struct profile_point;
struct profile_slopes;
struct slopes;
struct tally;

/* Called with every record; a negative return is an error. */
typedef int (*slopes_sink)(void *arg, const struct profile_slopes *s);

/* How much of the time windows take: this share, from the first call of slopes_step on, and before
 * all others @first_ns. A share of 1 leaves nothing for experiments. Each window is twice as long
 * as the one before, until they are @long_ns long or, by default, a quarter of a second. Beside
 * lines they tell of the kinds of waits in @waits, a bit each (base/waits.h). */
struct slopes_time {
	double share;
	uint64_t first_ns, long_ns;
	unsigned int waits;
	/* Not NULL: one window is all of the run, which began at *whole_since_ns. It follows
	 * @lines, at most ABI_MAX_FOLLOWED; those of libraries as soon as they are mapped. All are
	 * the caller's. */
	const uint64_t *whole_since_ns;
	const char *const *lines;
	size_t n_lines;
};

/* -EOPNOTSUPP: the backend has no slopes. @t is the caller's: the lines with samples come from it,
 * and it keeps their windows for the draw. */
int slopes_new(const struct backend_ops *ops, void *backend, slopes_sink sink, void *arg,
	       struct tally *t, const struct slopes_time *time, struct slopes **ret);
void slopes_free(struct slopes *s); /* NULL is allowed, as below */
/* Closes the window that is open, if one is. 1: it is the turn of another, with places for the
 * lines that have most samples so far, which is open until *ret_due, or as long waits for samples;
 * 0: it is the turn of experiments. */
int slopes_step(struct slopes *s, const struct profile_point *points, size_t n_points, uint64_t now,
		uint64_t *ret_due);
/* Closes the window that is open, if one is: what the points have of it goes to the sink. */
int slopes_close(struct slopes *s, const struct profile_point *points, size_t n_points,
		 uint64_t now);
/* The same, but what was measured is not to be used. */
void slopes_drop(struct slopes *s);
