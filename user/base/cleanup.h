/* SPDX-License-Identifier: BSD-2-Clause */
/* Scope-bound ownership: a variable marked with one of these is released when it goes out of scope.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Hands ownership out of a marked variable: the variable is NULL afterwards. */
#define TAKE_PTR(p)                    \
	({                             \
		typeof(p) *_pp = &(p); \
		typeof(p) _p = *_pp;   \
		*_pp = NULL;           \
		_p;                    \
	})

/* The same for a file descriptor: -1 afterwards. */
#define TAKE_FD(fd)               \
	({                        \
		int *_pf = &(fd); \
		int _f = *_pf;    \
		*_pf = -1;        \
		_f;               \
	})

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)
