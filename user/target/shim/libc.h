/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of other objects. Nothing is asked of libc by name: who comes first in the global scope
 * may be a library that interposes it, and returns something else (tests/e2e/interposed.test.sh).
 */
#pragma once

#include <errno.h>

#define SHIM_LIBC "libc.so.6" /* glibc's */
#define SHIM_VDSO "linux-vdso.so.1"

/* The function behind ours of the same name: of the object that is loaded next after this library,
 * in its newest version. For what the program itself has called. NULL: there is none. */
void *next_function(const char *name);
/* A function of the object with that name alone (NULL: musl). For what the program has not called.
 */
void *own_function(const char *soname, const char *name);

/* The program's errno of the calling thread. */
int *shim_errno(void);
#undef errno
#define errno (*shim_errno())

/* The result of a raw system call as libc's functions have it: -1, and errno, where it failed. */
long shim_result(long result);
