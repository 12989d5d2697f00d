/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows in which slopes are measured: which lines have a place, and the windows' records. */
#pragma once

#include "experiment/backend.h"

#include <stddef.h>
#include <stdint.h>

struct profile_point;
struct profile_slopes;
struct slopes;
struct tally;

/* Called with every record; a negative return is an error. */
typedef int (*slopes_sink)(void *arg, const struct profile_slopes *s);

/* -ENOMEM, -EOPNOTSUPP: the backend has no slopes. */
int slopes_new(const struct backend_ops *ops, void *backend, slopes_sink sink, void *arg,
	       struct slopes **ret);
void slopes_free(struct slopes *s); /* NULL is allowed, as below */
/* Closes the window that is open, if one is, and opens the next one at @now, with places for the
 * lines of @t that have most samples so far. *ret_due: when to call again. */
int slopes_step(struct slopes *s, struct tally *t, const struct profile_point *points,
		size_t n_points, uint64_t now, uint64_t *ret_due);
/* Closes the window that is open, if one is: what the points have of it goes to the sink. */
int slopes_close(struct slopes *s, const struct profile_point *points, size_t n_points,
		 uint64_t now);
/* The same, but what was measured is not to be used. */
void slopes_drop(struct slopes *s);
