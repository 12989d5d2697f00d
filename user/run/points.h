/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress points of a run: checked before the program starts, attached before it executes, and again whenever it loads a library. */
#pragma once

#include <stddef.h>

struct error;
struct run;

/* Is each point there, or can still come with a library? Before the program is started. */
int run_check_points(struct run *r, struct error *e);
/* What the session must have for them: enum points_needs. */
unsigned int run_points_needs(const struct run *r);
/* Makes the points, and attaches all that can be found; the process must exist and be attached to. */
int run_add_points(struct run *r, struct error *e);
/* Of processes that run: fails if a point has no place in any of their executables. */
int run_require_points(struct run *r, struct error *e);
/* Attaches what has been mapped since. What is wrong with it is said on stderr, once. */
void run_refresh_points(struct run *r);
/* At the end: says on stderr which points' libraries were never loaded. */
void run_missing_points(const struct run *r);
