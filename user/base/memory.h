/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the profiler's own. An allocation that fails ends the profiler with one line and the
 * status EXIT_OURS; the profiled program runs on undelayed, as after a SIGKILL. Two kinds of code
 * use malloc and return -ENOMEM instead: code that reads what others have made (files of a target,
 * answers of a decoder), which can ask for any size, and code that must not end halfway, such as an
 * injection. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void out_of_memory(void);

static inline void *or_out_of_memory(void *p)
{
	if (!p)
		out_of_memory();
	return p;
}

/* These never return NULL, and are otherwise like the functions without the x. A size of 0 is
 * allowed. */
static inline void *xcalloc(size_t n, size_t size)
{
	return or_out_of_memory(calloc(n ? n : 1, size ? size : 1));
}

static inline void *xreallocarray(void *p, size_t n, size_t size)
{
	return or_out_of_memory(reallocarray(p, n ? n : 1, size ? size : 1));
}

static inline char *xstrdup(const char *s)
{
	return or_out_of_memory(strdup(s));
}

static inline char *xstrndup(const char *s, size_t n)
{
	return or_out_of_memory(strndup(s, n));
}

/* A copy of @n items of @size bytes. */
static inline void *xmemdup(const void *p, size_t n, size_t size)
{
	void *copy = xcalloc(n, size);

	if (n)
		memcpy(copy, p, n * size);
	return copy;
}

char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A stream that becomes a string; *ret and *ret_size as of open_memstream. */
static inline FILE *xopen_memstream(char **ret, size_t *ret_size)
{
	return or_out_of_memory(open_memstream(ret, ret_size));
}

/* Its string is whole then, and the caller's (free). */
static inline void xclose_memstream(FILE *f)
{
	if (fclose(f) != 0)
		out_of_memory();
}
