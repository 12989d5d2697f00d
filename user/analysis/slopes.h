/* SPDX-License-Identifier: BSD-2-Clause */
/* Slopes, from the windows of a profile. */
#pragma once

#include "analysis/analysis.h"

/* Gives the lines of @a their slopes, and adds points and lines that only have those. -ENOMEM. */
int slopes_add(const struct profile *p, struct analysis *a);
