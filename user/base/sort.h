/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorting. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/* The result of a qsort comparison of two numbers: -1, 0 or 1. Several are joined by `?:`. */
#define sort_order(a, b) (((a) > (b)) - ((a) < (b)))

/* Sorts @n items. @all may be NULL where @n is 0, which qsort does not allow. */
#define sort_array(all, n, compare)                             \
	do {                                                    \
		if (n)                                          \
			qsort(all, n, sizeof(*(all)), compare); \
	} while (0)

/* Sorts the items, which have @size bytes, and keeps one of each. Returns how many are left. */
size_t sort_unique(void *all, size_t n, size_t size,
		   int (*compare)(const void *pa, const void *pb));
/* By the uint64_t that each item is, or begins with. */
int compare_u64(const void *pa, const void *pb);
