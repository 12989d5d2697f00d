/* SPDX-License-Identifier: BSD-2-Clause */
/* --sync pthread: the C library's calls that wake threads or wait for them. Each does what the program asked for, by the C library's own
 * function and with its result, errno and cancellation; what is added around it is in sync.h. wrap.c has those that are no cancellation
 * points, wrap_wait.c those that are. */
#pragma once

#include "sync.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <threads.h>
#include <time.h>

/* Every function wrapped or used by a wrapper: NEWEST(name), or VERSION(name, which). */
#define FUNCTIONS(NEWEST, VERSION)                     \
	VERSION(pthread_cond_wait, "GLIBC_2.3.2")      \
	VERSION(pthread_cond_timedwait, "GLIBC_2.3.2") \
	VERSION(pthread_cond_signal, "GLIBC_2.3.2")    \
	VERSION(pthread_cond_broadcast, "GLIBC_2.3.2") \
	NEWEST(pthread_cond_clockwait)                 \
	NEWEST(pthread_mutex_lock)                     \
	NEWEST(pthread_mutex_trylock)                  \
	NEWEST(pthread_mutex_timedlock)                \
	NEWEST(pthread_mutex_clocklock)                \
	NEWEST(pthread_mutex_unlock)                   \
	NEWEST(pthread_rwlock_rdlock)                  \
	NEWEST(pthread_rwlock_tryrdlock)               \
	NEWEST(pthread_rwlock_timedrdlock)             \
	NEWEST(pthread_rwlock_clockrdlock)             \
	NEWEST(pthread_rwlock_wrlock)                  \
	NEWEST(pthread_rwlock_trywrlock)               \
	NEWEST(pthread_rwlock_timedwrlock)             \
	NEWEST(pthread_rwlock_clockwrlock)             \
	NEWEST(pthread_rwlock_unlock)                  \
	NEWEST(pthread_spin_lock)                      \
	NEWEST(pthread_spin_trylock)                   \
	NEWEST(pthread_spin_unlock)                    \
	NEWEST(pthread_barrier_wait)                   \
	NEWEST(pthread_create)                         \
	NEWEST(pthread_join)                           \
	NEWEST(pthread_timedjoin_np)                   \
	NEWEST(pthread_clockjoin_np)                   \
	NEWEST(pthread_cancel)                         \
	NEWEST(pthread_kill)                           \
	NEWEST(pthread_sigqueue)                       \
	NEWEST(kill)                                   \
	NEWEST(tgkill)                                 \
	NEWEST(sigqueue)                               \
	NEWEST(sigtimedwait)                           \
	NEWEST(sem_wait)                               \
	NEWEST(sem_trywait)                            \
	NEWEST(sem_timedwait)                          \
	NEWEST(sem_clockwait)                          \
	NEWEST(sem_post)                               \
	NEWEST(mtx_lock)                               \
	NEWEST(mtx_trylock)                            \
	NEWEST(mtx_timedlock)                          \
	NEWEST(mtx_unlock)                             \
	NEWEST(cnd_wait)                               \
	NEWEST(cnd_timedwait)                          \
	NEWEST(cnd_signal)                             \
	NEWEST(cnd_broadcast)                          \
	NEWEST(thrd_create)                            \
	NEWEST(thrd_join)

/* The C library's own. */
struct shim_real {
#define NEWEST(name) __typeof__(&name) name;
#define VERSION(name, which) NEWEST(name)
	FUNCTIONS(NEWEST, VERSION)
#undef NEWEST
#undef VERSION
};
extern struct shim_real shim_real __attribute__((visibility("hidden")));
void shim_resolve(void) __attribute__((visibility("hidden")));

#define REAL(name)                                                                            \
	(*({                                                                                  \
		if (__builtin_expect(!__atomic_load_n(&shim_real.name, __ATOMIC_RELAXED), 0)) \
			shim_resolve();                                                       \
		__atomic_load_n(&shim_real.name, __ATOMIC_RELAXED);                           \
	}))

static inline bool shim_taken(int result)
{
	return result == 0 || result == EOWNERDEAD;
}
