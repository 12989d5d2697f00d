/* SPDX-License-Identifier: BSD-2-Clause */
/* Records as lines of a file. Internal to the package. */
#pragma once

#include "profile/record.h"

#include <stdio.h>

struct profile;

/* A record that is the fields of @t and no more. */
void render(FILE *out, const char *type, const struct field_table *t, const void *record);
void render_startup(FILE *out, const struct profile_startup *s);
/* With one record for each point. */
void render_experiment(FILE *out, const struct profile_experiment *x,
		       const struct profile_point *points, size_t n_points);
/* A run's time, and the samples and addresses of @p. */
void render_log(FILE *out, const struct profile_runtime *t, const struct profile *p);
