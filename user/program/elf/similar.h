/* SPDX-License-Identifier: BSD-2-Clause */
/* "Did you mean": a small ranked list of names near to one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SIMILAR_MAX 16

struct similar {
	const char *wanted;
	size_t max; /* at most SIMILAR_MAX */
	size_t n;
	struct {
		const void *item; /* what the caller offered: nearest first */
		unsigned int distance;
	} best[SIMILAR_MAX];
};

/* How far @name is from what was wanted: edits, or fewer if one contains the other; above any
 * limit: UINT_MAX. */
unsigned int similar_distance(const char *wanted, const char *name);
/* Keeps @item if @name is near enough. True if it was kept (another may have been dropped for it).
 */
bool similar_offer(struct similar *s, const char *name, const void *item);
