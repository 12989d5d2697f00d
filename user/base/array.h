/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that grow by one item at a time. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* @all, or where it is after it has got room for more than @n items: twice as many, whenever @n is a power of two. NULL: out of memory, and
 * @all is as it was. */
static inline void *array_grown(void *all, size_t n, size_t size)
{
	return n & (n - 1) ? all : reallocarray(all, n ? 2 * n : 1, size);
}

/* Room for item @n of the array @all, a pointer that free() frees, NULL at first. 0 or -ENOMEM, and nothing has changed. Only for arrays that
 * grow by this alone, from no items on: it has no other way to know how much room there is. */
#define array_room(all, n) \
	({ \
		__typeof__(all) grown_ = array_grown(all, n, sizeof(*(all))); \
		if (grown_) \
			(all) = grown_; \
		grown_ ? 0 : -ENOMEM; \
	})
