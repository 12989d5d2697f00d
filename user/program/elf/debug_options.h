/* SPDX-License-Identifier: BSD-2-Clause */
/* How debug information is found and how its files are named. */
#pragma once

#include <stdlib.h>

/* The arrays and strings must outlive what is opened with them. */
struct debug_options {
	const char **debug_dirs; /* searched like /usr/lib/debug, and before it */
	size_t n_debug_dirs;
	const char **prefixes; /* "OLD=NEW": names of source files in OLD are given as in NEW; the
				  first that fits counts */
	size_t n_prefixes;
};

/* Frees the arrays, not their strings and not @o. */
static inline void debug_options_free(struct debug_options *o)
{
	free(o->debug_dirs);
	free(o->prefixes);
	*o = (struct debug_options){0};
}
