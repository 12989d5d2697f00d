/* SPDX-License-Identifier: BSD-2-Clause */
/* Slopes, from the windows of a profile. */
#pragma once

#include "analysis/analysis.h"

/* Gives the lines of @a their slopes, and adds points and lines that only have those. -ENOMEM. */
int slopes_add(const struct profile *p, struct analysis *a);

/* The first point that has slopes, as profile_slopes.point of @p; NULL: none has. */
const char *slopes_point(const struct profile *p);
/* What a little of all places of @point together is worth for which @is says so, each by the same
 * share. The effect is NAN where none has a slope. -ENOMEM. */
int slopes_of_places(const struct profile *p, const char *point,
		     bool (*is)(const char *location, void *arg), void *arg,
		     struct analysis_change *ret);
