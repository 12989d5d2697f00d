// SPDX-License-Identifier: BSD-2-Clause
/* Waits that are cancellation points, for conditions, threads, semaphores and signals. */
#include "wrap.h"

#include <sys/syscall.h>

/* A wait that can be cancelled: whoever is comes back as well, to its cleanup handlers, and was
 * woken by the thread that cancelled it. */
struct wait {
	bool told, credit;
};

static void come_back(void *arg)
{
	const struct wait *w = arg;

	shim_after_wait(w->told, w->credit);
}

#define CANCELLABLE(result, call, ended)                       \
	do {                                                   \
		struct wait wait = {shim_before_wait(), true}; \
                                                               \
		if (!shim_has_cleanup()) {                     \
			(result) = (call);                     \
			wait.credit = (ended);                 \
			come_back(&wait);                      \
			break;                                 \
		}                                              \
		pthread_cleanup_push(come_back, &wait);        \
		(result) = (call);                             \
		wait.credit = (ended);                         \
		pthread_cleanup_pop(1);                        \
	} while (0)

/* Gives the mutex away, and waits. */
#define CONDITION(name, parameters, arguments)                                 \
	EXPORT int name parameters                                             \
	{                                                                      \
		volatile int result;                                           \
                                                                               \
		shim_before_wake();                                            \
		CANCELLABLE(result, REAL(name) arguments, shim_taken(result)); \
		return result;                                                 \
	}

CONDITION(pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex))
CONDITION(pthread_cond_timedwait,
	  (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
	  (cond, mutex, until))
CONDITION(pthread_cond_clockwait,
	  (pthread_cond_t * cond, pthread_mutex_t *mutex, clockid_t clock,
	   const struct timespec *until),
	  (cond, mutex, clock, until))
CONDITION(cnd_wait, (cnd_t * cond, mtx_t *mutex), (cond, mutex))
CONDITION(cnd_timedwait,
	  (cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until),
	  (cond, mutex, until))

#define CANCELLABLE_WAIT(name, parameters, arguments, ended)      \
	EXPORT int name parameters                                \
	{                                                         \
		volatile int result;                              \
                                                                  \
		CANCELLABLE(result, REAL(name) arguments, ended); \
		return result;                                    \
	}

CANCELLABLE_WAIT(pthread_join, (pthread_t thread, void **ret), (thread, ret), result == 0)
CANCELLABLE_WAIT(pthread_timedjoin_np, (pthread_t thread, void **ret, const struct timespec *until),
		 (thread, ret, until), result == 0)
CANCELLABLE_WAIT(pthread_clockjoin_np,
		 (pthread_t thread, void **ret, clockid_t clock, const struct timespec *until),
		 (thread, ret, clock, until), result == 0)
CANCELLABLE_WAIT(thrd_join, (thrd_t thread, int *ret), (thread, ret), result == thrd_success)
CANCELLABLE_WAIT(sem_timedwait, (sem_t *restrict sem, const struct timespec *restrict until),
		 (sem, until), result == 0)
CANCELLABLE_WAIT(sem_clockwait,
		 (sem_t *restrict sem, clockid_t clock, const struct timespec *restrict until),
		 (sem, clock, until), result == 0)

/* A cancellation point also where it need not wait; a failed try sets errno, the call itself may
 * not. */
EXPORT int sem_wait(sem_t *sem)
{
	volatile int result;
	int saved = errno;

	REAL(pthread_testcancel)();
	if (REAL(sem_trywait)(sem) == 0)
		return 0;
	errno = saved;
	CANCELLABLE(result, REAL(sem_wait)(sem), result == 0);
	return result;
}

/* Signals come from anywhere: credit for those that the process sent itself. */
static bool sent_from_inside(const siginfo_t *info)
{
	return !shim_filtered &&
	       (info->si_code == SI_USER || info->si_code == SI_QUEUE ||
		info->si_code == SI_TKILL) &&
	       info->si_pid == raw_call(SYS_getpid);
}

/* Apart, so that nothing is changed that cancellation could bring back. */
__attribute__((noinline)) static int await_signal(const sigset_t *set, siginfo_t *info,
						  const struct timespec *timeout)
{
	volatile int result;

	CANCELLABLE(result, REAL(sigtimedwait)(set, info, timeout),
		    result > 0 && sent_from_inside(info));
	return result;
}

EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			const struct timespec *restrict timeout)
{
	siginfo_t own = {0};

	return await_signal(set, info ? info : &own, timeout);
}

EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	return sigtimedwait(set, info, NULL);
}

/* The same, but never interrupted, and with the error as its result. */
EXPORT int sigwait(const sigset_t *restrict set, int *restrict ret)
{
	int saved = errno, result, error;

	do {
		result = sigwaitinfo(set, NULL);
		error = errno;
	} while (result < 0 && error == EINTR);
	errno = saved;
	if (result < 0)
		return error;
	*ret = result;
	return 0;
}
