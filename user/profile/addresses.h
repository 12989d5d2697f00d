/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples by instruction: what `cozbpf annotate` reads of a profile. */
#pragma once

#include "profile/reader.h"

struct profile_place {
	uint64_t offset; /* in the file */
	uint64_t count;
};

/* Adds records of one file, whose counts are those at @places; @of has the rest, and is copied. */
void profile_addresses_add(struct profile *p, const struct profile_addresses *of,
			   const struct profile_place *places, size_t n);
/* Calls @cb for each place of a record, in which it is written as "OFFSET:COUNT", the offset in
 * hexadecimal, with a space between two of them; up to the first one that is written otherwise.
 * Stops at non-zero and returns it. */
int profile_addresses_each(const struct profile_addresses *a,
			   int (*cb)(const struct profile_place *at, void *arg), void *arg);
