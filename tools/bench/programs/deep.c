// SPDX-License-Identifier: BSD-2-Clause
/* Work for bench `unwinding`: the C library copies memory, DEPTH - 1 calls above it is the only
 * line in scope (deep_main.c). No frame pointers, so that each of these frames takes a look into
 * the tables. */
#include <string.h>

void deep(int levels, long times);

static char from[1 << 14], to[1 << 14];

void __attribute__((noinline)) deep(int levels, long times)
{
	if (levels > 0)
		deep(levels - 1, times);
	else
		for (long i = 0; i < times; i++)
			memcpy(to, from, sizeof(to) - (size_t)(i & 7));
	__asm__ volatile("" : : : "memory"); /* the call is not the last thing done */
}
