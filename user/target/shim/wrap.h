/* SPDX-License-Identifier: BSD-2-Clause */
/* --sync pthread: the C library's calls that wake threads or wait for them. Each does what the
 * program asked for, by the C library's own function and with its result, errno and cancellation;
 * what is added around it is in sync.h. wrap.c has those that are no cancellation points,
 * wrap_wait.c those that are. */
#pragma once

#include "libc.h"
#include "sync.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <threads.h>
#include <time.h>

/* One of the C library's own functions that a wrapper calls. */
struct shim_real {
	const char *name;
	void *function;
};
void shim_resolve(void) __attribute__((visibility("hidden")));

/* Each use has an entry in a section of its own, where shim_resolve finds them all. */
#define REAL(name)                                                                            \
	({                                                                                    \
		static struct shim_real real_                                                 \
			__attribute__((section("shim_reals"), used)) = {#name, NULL};         \
		if (__builtin_expect(!__atomic_load_n(&real_.function, __ATOMIC_RELAXED), 0)) \
			shim_resolve();                                                       \
		(__typeof__(&name))__atomic_load_n(&real_.function, __ATOMIC_RELAXED);        \
	})

/* pthread_cleanup_push is made of these. musl's programs, which lack them, would not start: there
 * a thread that is cancelled, or calls pthread_exit, passes over what is ours. */
#pragma weak __pthread_register_cancel
#pragma weak __pthread_unregister_cancel

static inline bool shim_has_cleanup(void)
{
	return __pthread_register_cancel != NULL;
}

static inline bool shim_taken(int result)
{
	return result == 0 || result == EOWNERDEAD;
}
