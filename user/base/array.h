/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that grow by one item at a time. */
#pragma once

#include "base/memory.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* Returns the array with room for more than @n items: where @n is 0 or a power of two it is moved
 * to twice the room. NULL: out of memory, and @all is unchanged. */
static inline void *array_grown(void *all, size_t n, size_t size)
{
	return n & (n - 1) ? all : reallocarray(all, n ? 2 * n : 1, size);
}

/* Makes room for item @n of the array @all, which has @n items. @all is NULL at first, and free()
 * frees it. No capacity is stored: it follows from @n. So nothing else may allocate such an array.
 */
#define xarray_room(all, n) ((all) = or_out_of_memory(array_grown(all, n, sizeof(*(all)))))

/* Makes room in an array whose length others choose: returns 0, or -ENOMEM and changes nothing. */
#define array_room(all, n)                                                    \
	({                                                                    \
		__typeof__(all) grown_ = array_grown(all, n, sizeof(*(all))); \
		if (grown_)                                                   \
			(all) = grown_;                                       \
		grown_ ? 0 : -ENOMEM;                                         \
	})

/* Adds the item, an expression, at the end of the array and counts it; the array grows as by
 * array_room and xarray_room. */
#define xarray_add(all, n, ...) ((void)xarray_room(all, n), (void)((all)[(n)++] = __VA_ARGS__))
#define array_add(all, n, ...)                      \
	({                                          \
		int added_ = array_room(all, n);    \
		if (added_ == 0)                    \
			(all)[(n)++] = __VA_ARGS__; \
		added_;                             \
	})
