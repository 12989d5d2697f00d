// SPDX-License-Identifier: BSD-2-Clause
/* What the program `library` loads while it runs. */
#include "helper.h"

void plugin_work(uint64_t n);
KEEP void plugin_work(uint64_t n)
{
	BURN(n);
	__asm__ volatile("" : : : "memory");
}
