/* SPDX-License-Identifier: BSD-2-Clause */
/* Do two profiles speak of the same program and the same points, so that their numbers may be put
 * together? */
#pragma once

#include "profile/reader.h"

struct error;

/* Names are for messages. -EINVAL: their runs are of other builds, points, granularity or
 * attribution; @e says which. What a profile does not say is taken for the same. */
int profile_check_same(const struct profile *a, const char *a_name, const struct profile *b,
		       const char *b_name, struct error *e);
