/* SPDX-License-Identifier: BSD-2-Clause */
/* Slopes, from the windows of a profile. */
#pragma once

#include "analysis/analysis.h"

/* Gives the lines of @a their slopes, and adds points and lines that only have those. */
void slopes_add(const struct profile *p, struct analysis *a);

/* By how much a slope may be off where chance is not: a half-width that no more windows make less.
 */
double slopes_method_error(double slope);
/* The first point that has slopes, as profile_slopes.point of @p; NULL: none has. */
const char *slopes_point(const struct profile *p);
/* What a little of all places of each of @n rows together is worth at @point, each place by the
 * same share. @row_of says which row a place is of; SIZE_MAX: of none. The effect is NAN where none
 * has a slope. */
void slopes_of_rows(const struct profile *p, const char *point, size_t n,
		    size_t (*row_of)(const char *location, void *arg), void *arg,
		    struct analysis_change *ret);
