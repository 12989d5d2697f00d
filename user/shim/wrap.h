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

/* Every function wrapped or used by a wrapper. */
#define FUNCTIONS(NEXT)                  \
	NEXT(pthread_cond_wait)          \
	NEXT(pthread_cond_timedwait)     \
	NEXT(pthread_cond_signal)        \
	NEXT(pthread_cond_broadcast)     \
	NEXT(pthread_cond_clockwait)     \
	NEXT(pthread_mutex_lock)         \
	NEXT(pthread_mutex_trylock)      \
	NEXT(pthread_mutex_timedlock)    \
	NEXT(pthread_mutex_clocklock)    \
	NEXT(pthread_mutex_unlock)       \
	NEXT(pthread_rwlock_rdlock)      \
	NEXT(pthread_rwlock_tryrdlock)   \
	NEXT(pthread_rwlock_timedrdlock) \
	NEXT(pthread_rwlock_clockrdlock) \
	NEXT(pthread_rwlock_wrlock)      \
	NEXT(pthread_rwlock_trywrlock)   \
	NEXT(pthread_rwlock_timedwrlock) \
	NEXT(pthread_rwlock_clockwrlock) \
	NEXT(pthread_rwlock_unlock)      \
	NEXT(pthread_spin_lock)          \
	NEXT(pthread_spin_trylock)       \
	NEXT(pthread_spin_unlock)        \
	NEXT(pthread_barrier_wait)       \
	NEXT(pthread_create)             \
	NEXT(pthread_join)               \
	NEXT(pthread_timedjoin_np)       \
	NEXT(pthread_clockjoin_np)       \
	NEXT(pthread_testcancel)         \
	NEXT(pthread_cancel)             \
	NEXT(pthread_kill)               \
	NEXT(pthread_sigqueue)           \
	NEXT(kill)                       \
	NEXT(tgkill)                     \
	NEXT(sigqueue)                   \
	NEXT(sigtimedwait)               \
	NEXT(sem_wait)                   \
	NEXT(sem_trywait)                \
	NEXT(sem_timedwait)              \
	NEXT(sem_clockwait)              \
	NEXT(sem_post)                   \
	NEXT(mtx_lock)                   \
	NEXT(mtx_trylock)                \
	NEXT(mtx_timedlock)              \
	NEXT(mtx_unlock)                 \
	NEXT(cnd_wait)                   \
	NEXT(cnd_timedwait)              \
	NEXT(cnd_signal)                 \
	NEXT(cnd_broadcast)              \
	NEXT(thrd_create)                \
	NEXT(thrd_join)

/* The C library's own. */
struct shim_real {
#define NEXT(name) __typeof__(&name) name;
	FUNCTIONS(NEXT)
#undef NEXT
};
extern struct shim_real shim_real __attribute__((visibility("hidden")));
void shim_resolve(void) __attribute__((visibility("hidden")));

#define REAL(name)                                                                            \
	(*({                                                                                  \
		if (__builtin_expect(!__atomic_load_n(&shim_real.name, __ATOMIC_RELAXED), 0)) \
			shim_resolve();                                                       \
		__atomic_load_n(&shim_real.name, __ATOMIC_RELAXED);                           \
	}))

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
