/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the profiler's own. Where there is none left it can do nothing that is worth doing: it
 * ends with one line and the status EXIT_OURS, and what it profiles runs on undelayed, as after a
 * SIGKILL. What others have made (files of a target, answers of a decoder) can ask for any size:
 * who reads that uses malloc, and returns -ENOMEM; so does what must not end halfway, such as an
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

/* As the functions without the x. They never return NULL; free() frees what they return. A size of
 * 0 is allowed. */
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
