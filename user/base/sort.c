// SPDX-License-Identifier: BSD-2-Clause
#include "base/sort.h"

#include <stdint.h>
#include <string.h>

int compare_u64(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return sort_order(*a, *b);
}

size_t sort_unique(void *all, size_t n, size_t size, int (*compare)(const void *pa, const void *pb))
{
	char *items = all;
	size_t used = 0;

	if (n)
		qsort(all, n, size, compare);
	for (size_t i = 0; i < n; i++)
		if (!used || compare(items + (used - 1) * size, items + i * size) != 0)
			memmove(items + used++ * size, items + i * size, size);
	return used;
}
