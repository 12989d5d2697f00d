/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary search. */
#pragma once

#include <stddef.h>

/* Of @n items that are sorted by it, how many at the front @condition holds for: an expression on
 * @i, the number of an item. */
#define search_front(n, i, condition)                         \
	({                                                    \
		size_t from_ = 0, to_ = (n);                  \
		while (from_ < to_) {                         \
			size_t i = from_ + (to_ - from_) / 2; \
			if (condition)                        \
				from_ = i + 1;                \
			else                                  \
				to_ = i;                      \
		}                                             \
		from_;                                        \
	})
