/* SPDX-License-Identifier: BSD-2-Clause */
/* What code is called that a program makes as it runs, as JIT compilers do: "NAME [jit]". Code of
 * which no perf map says the name is "unnamed RUNTIME code [jit]". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define JIT_MARK " [jit]"
#define JIT_UNNAMED "unnamed "
#define JIT_UNNAMED_END " code" JIT_MARK

static inline bool jit_ends_with(const char *place, const char *end)
{
	size_t n = strlen(place), k = strlen(end);

	return n > k && strcmp(place + n - k, end) == 0;
}

/* Is it the name of such code? */
static inline bool jit_is_name(const char *place)
{
	return jit_ends_with(place, JIT_MARK);
}

/* The length of the runtime's name behind JIT_UNNAMED in the name of unnamed code; 0: it is another
 * name. */
static inline size_t jit_unnamed(const char *place)
{
	if (strncmp(place, JIT_UNNAMED, strlen(JIT_UNNAMED)) != 0 ||
	    !jit_ends_with(place + strlen(JIT_UNNAMED), JIT_UNNAMED_END))
		return 0;
	return strlen(place) - strlen(JIT_UNNAMED) - strlen(JIT_UNNAMED_END);
}
