/* SPDX-License-Identifier: BSD-2-Clause */
/* Several profiles as one. */
#pragma once

#include "profile/reader.h"

/* Moves everything of @from behind what @into has; samples of one location are added up. @from is
 * empty then. */
void profile_merge(struct profile *into, struct profile *from);
/* The same, but samples are not added up: for many, with profile_add_up_samples after the last. */
void profile_append(struct profile *into, struct profile *from);

/* Samples of one location become one, and they come into their order. */
void profile_add_up_samples(struct profile *p);

/* Replaces the samples of @p by copies of those at @s, no two of which have one location. */
void profile_set_samples(struct profile *p, const struct profile_samples *s, size_t n);
void profile_clear_samples(struct profile *p);
void profile_clear_addresses(struct profile *p);
/* Likewise. */
void profile_set_elsewhere(struct profile *p, const struct profile_elsewhere *all, size_t n);
void profile_clear_elsewhere(struct profile *p);

/* The rest is internal to the package. A file says what it likes: sums end at UINT64_MAX. */
void profile_add_count(uint64_t *to, uint64_t more);
