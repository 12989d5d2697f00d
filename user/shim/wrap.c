// SPDX-License-Identifier: BSD-2-Clause
/* Calls that are no cancellation points.
 *
 * Those that can be had without waiting are tried so first, where the attempt is all that the call itself would do if it succeeds. What
 * neither wakes nor waits (trylock and its like) is not wrapped. The C library's own calls from one of these to another do not come here. */
#include "wrap.h"

#define WAKES(name, parameters, arguments)   \
	EXPORT int name parameters           \
	{                                    \
		shim_before_wake();          \
		return REAL(name) arguments; \
	}

WAKES(pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
WAKES(pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
WAKES(pthread_spin_unlock, (pthread_spinlock_t * lock), (lock))
WAKES(pthread_cond_signal, (pthread_cond_t * cond), (cond))
WAKES(pthread_cond_broadcast, (pthread_cond_t * cond), (cond))
WAKES(sem_post, (sem_t * sem), (sem))
WAKES(pthread_cancel, (pthread_t thread), (thread))
WAKES(pthread_kill, (pthread_t thread, int signo), (thread, signo))
WAKES(pthread_sigqueue, (pthread_t thread, int signo, const union sigval value), (thread, signo, value))
WAKES(kill, (pid_t pid, int signo), (pid, signo))
WAKES(tgkill, (pid_t pid, pid_t tid, int signo), (pid, tid, signo))
WAKES(sigqueue, (pid_t pid, int signo, const union sigval value), (pid, signo, value))
WAKES(mtx_unlock, (mtx_t * mutex), (mutex))
WAKES(cnd_signal, (cnd_t * cond), (cond))
WAKES(cnd_broadcast, (cnd_t * cond), (cond))

/* Waits that are no cancellation points. */
#define WAITS(name, parameters, arguments, ended)     \
	EXPORT int name parameters                    \
	{                                             \
		bool told = shim_before_wait();       \
		int result = REAL(name) arguments;    \
                                                      \
		shim_after_wait(told, ended(result)); \
		return result;                        \
	}

/* What a try that did not succeed says does not matter: the call itself will say what is wrong. */
#define LOCKS(name, try, parameters, arguments)            \
	EXPORT int name parameters                         \
	{                                                  \
		bool told;                                 \
		int result;                                \
                                                           \
		if ((try) == 0)                            \
			return 0;                          \
		told = shim_before_wait();                 \
		result = REAL(name) arguments;             \
		shim_after_wait(told, shim_taken(result)); \
		return result;                             \
	}

/* Only a plain mutex is tried. With others an attempt is not as good as the call: glibc's leaves a robust mutex that is lost locked. */
static int try_plain(pthread_mutex_t *mutex)
{
	return (unsigned int)mutex->__data.__kind <= PTHREAD_MUTEX_ADAPTIVE_NP ? REAL(pthread_mutex_trylock)(mutex) : EBUSY;
}

LOCKS(pthread_mutex_lock, try_plain(mutex), (pthread_mutex_t * mutex), (mutex))
LOCKS(pthread_rwlock_rdlock, REAL(pthread_rwlock_tryrdlock)(lock), (pthread_rwlock_t * lock), (lock))
LOCKS(pthread_rwlock_wrlock, REAL(pthread_rwlock_trywrlock)(lock), (pthread_rwlock_t * lock), (lock))
LOCKS(pthread_spin_lock, REAL(pthread_spin_trylock)(lock), (pthread_spinlock_t * lock), (lock))
LOCKS(mtx_lock, REAL(mtx_trylock)(mutex), (mtx_t * mutex), (mutex))
WAITS(pthread_mutex_timedlock, (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until), shim_taken)
WAITS(pthread_mutex_clocklock, (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until), (mutex, clock, until), shim_taken)
WAITS(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), shim_taken)
WAITS(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), shim_taken)
WAITS(pthread_rwlock_clockrdlock, (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until), shim_taken)
WAITS(pthread_rwlock_clockwrlock, (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until), shim_taken)
WAITS(mtx_timedlock, (mtx_t *restrict mutex, const struct timespec *restrict until), (mutex, until), shim_taken)

/* Who comes last lets the others go; nobody knows before. */
EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	bool told;
	int result;

	shim_before_wake();
	told = shim_before_wait();
	result = REAL(pthread_barrier_wait)(barrier);
	shim_after_wait(told, result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
	return result;
}
