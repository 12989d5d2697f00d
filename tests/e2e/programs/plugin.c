// SPDX-License-Identifier: BSD-2-Clause
/* What the program `library` loads while it runs. */
#include "helper.h"

void plugin_work(uint64_t n);
KEEP void plugin_work(uint64_t n)
{
	BURN(n);
	__asm__ volatile("" : : : "memory");
}

/* The same, below @depth calls of itself. */
void plugin_deep(uint64_t depth, uint64_t n);
KEEP void plugin_deep(uint64_t depth, uint64_t n)
{
	if (depth)
		plugin_deep(depth - 1, n);
	else
		BURN(n);
	__asm__ volatile("" : : : "memory");
}
