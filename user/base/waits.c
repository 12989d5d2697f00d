// SPDX-License-Identifier: BSD-2-Clause
#include "base/waits.h"

#include <string.h>

static const char *const names[] = {
	NULL,
#define WAIT(name, text) text,
#include "shared/waits.def"
#undef WAIT
};

const char *wait_name(unsigned int kind)
{
	return names[kind];
}

unsigned int wait_named(const char *name, size_t n)
{
	for (unsigned int kind = 1; kind < WAIT_KINDS; kind++)
		if (strlen(names[kind]) == n && strncmp(names[kind], name, n) == 0)
			return kind;
	return 0;
}

unsigned int wait_of(const char *target, size_t *ret_place)
{
	const char *open = strrchr(target, '[');
	size_t n = open ? strlen(open) : 0;
	unsigned int kind = n > 2 && open[n - 1] == ']' ? wait_named(open + 1, n - 2) : 0;

	/* A function's name can end with brackets, but not behind a space. */
	if (!kind || (open != target && (open == target + 1 || open[-1] != ' ')))
		return 0;
	if (ret_place)
		*ret_place = open == target ? 0 : (size_t)(open - 1 - target);
	return kind;
}
