// SPDX-License-Identifier: BSD-2-Clause
/* --sync pthread: the C library's calls that wake threads or wait for them. Each does what the program asked for, by the C library's own
 * function and with its result, errno and cancellation; what is added around it is in sync.h.
 *
 * Calls that can be had without waiting are tried so first, where the attempt is all that the call itself would do if it succeeds. What
 * neither wakes nor waits (trylock and its like) is not wrapped. The C library's own calls from one of these to another do not come here. */
#include "sync.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Every function wrapped or used by a wrapper: NEWEST(name), or VERSION(name, which). */
#define FUNCTIONS(NEWEST, VERSION)                  \
	VERSION(pthread_cond_wait, "GLIBC_2.3.2")   \
	VERSION(pthread_cond_timedwait, "GLIBC_2.3.2") \
	VERSION(pthread_cond_signal, "GLIBC_2.3.2") \
	VERSION(pthread_cond_broadcast, "GLIBC_2.3.2") \
	NEWEST(pthread_cond_clockwait)              \
	NEWEST(pthread_mutex_lock)                  \
	NEWEST(pthread_mutex_trylock)               \
	NEWEST(pthread_mutex_timedlock)             \
	NEWEST(pthread_mutex_clocklock)             \
	NEWEST(pthread_mutex_unlock)                \
	NEWEST(pthread_rwlock_rdlock)               \
	NEWEST(pthread_rwlock_tryrdlock)            \
	NEWEST(pthread_rwlock_timedrdlock)          \
	NEWEST(pthread_rwlock_clockrdlock)          \
	NEWEST(pthread_rwlock_wrlock)               \
	NEWEST(pthread_rwlock_trywrlock)            \
	NEWEST(pthread_rwlock_timedwrlock)          \
	NEWEST(pthread_rwlock_clockwrlock)          \
	NEWEST(pthread_rwlock_unlock)               \
	NEWEST(pthread_spin_lock)                   \
	NEWEST(pthread_spin_trylock)                \
	NEWEST(pthread_spin_unlock)                 \
	NEWEST(pthread_barrier_wait)                \
	NEWEST(pthread_create)                      \
	NEWEST(pthread_join)                        \
	NEWEST(pthread_timedjoin_np)                \
	NEWEST(pthread_clockjoin_np)                \
	NEWEST(pthread_cancel)                      \
	NEWEST(pthread_kill)                        \
	NEWEST(pthread_sigqueue)                    \
	NEWEST(kill)                                \
	NEWEST(tgkill)                              \
	NEWEST(sigqueue)                            \
	NEWEST(sigtimedwait)                        \
	NEWEST(sem_wait)                            \
	NEWEST(sem_trywait)                         \
	NEWEST(sem_timedwait)                       \
	NEWEST(sem_clockwait)                       \
	NEWEST(sem_post)                            \
	NEWEST(mtx_lock)                            \
	NEWEST(mtx_trylock)                         \
	NEWEST(mtx_timedlock)                       \
	NEWEST(mtx_unlock)                          \
	NEWEST(cnd_wait)                            \
	NEWEST(cnd_timedwait)                       \
	NEWEST(cnd_signal)                          \
	NEWEST(cnd_broadcast)                       \
	NEWEST(thrd_create)                         \
	NEWEST(thrd_join)

static struct {
#define NEWEST(name) __typeof__(&name) name;
#define VERSION(name, which) NEWEST(name)
	FUNCTIONS(NEWEST, VERSION)
#undef NEWEST
#undef VERSION
} real;

/* Before main, and earlier where another library's constructor calls one of these. Several threads may do it at once: all find the same.
 * RTLD_NEXT goes by who calls dlsym, so these must be calls, not jumps. */
__attribute__((constructor, noinline)) static void resolve(void)
{
	int saved = errno;
	void *f;

#define SET(name, found)                                                               \
	f = (found);                                                                   \
	__atomic_store_n(&real.name, (__typeof__(real.name))f, __ATOMIC_RELAXED);
#define NEWEST(name) SET(name, dlsym(RTLD_NEXT, #name))
#define VERSION(name, which) SET(name, dlvsym(RTLD_NEXT, #name, which))
	FUNCTIONS(NEWEST, VERSION)
#undef NEWEST
#undef VERSION
#undef SET
	errno = saved;
}

#define REAL(name)                                                                  \
	(*({                                                                        \
		if (__builtin_expect(!__atomic_load_n(&real.name, __ATOMIC_RELAXED), 0)) \
			resolve();                                                  \
		__atomic_load_n(&real.name, __ATOMIC_RELAXED);                      \
	}))

#define WAKES(name, parameters, arguments)          \
	EXPORT int name parameters                  \
	{                                           \
		shim_before_wake();                 \
		return REAL(name) arguments;        \
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

static bool taken(int result)
{
	return result == 0 || result == EOWNERDEAD;
}

/* Waits that are no cancellation points. */
#define WAITS(name, parameters, arguments, ended)       \
	EXPORT int name parameters                      \
	{                                               \
		bool told = shim_before_wait();         \
		int result = REAL(name) arguments;      \
                                                        \
		shim_after_wait(told, ended(result));   \
		return result;                          \
	}

/* What a try that did not succeed says does not matter: the call itself will say what is wrong. */
#define LOCKS(name, try, parameters, arguments)         \
	EXPORT int name parameters                      \
	{                                               \
		bool told;                              \
		int result;                             \
                                                        \
		if ((try) == 0)                         \
			return 0;                       \
		told = shim_before_wait();              \
		result = REAL(name) arguments;          \
		shim_after_wait(told, taken(result));   \
		return result;                          \
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
WAITS(pthread_mutex_timedlock, (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until), taken)
WAITS(pthread_mutex_clocklock, (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until), (mutex, clock, until), taken)
WAITS(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), taken)
WAITS(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), taken)
WAITS(pthread_rwlock_clockrdlock, (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until), taken)
WAITS(pthread_rwlock_clockwrlock, (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until), taken)
WAITS(mtx_timedlock, (mtx_t * restrict mutex, const struct timespec *restrict until), (mutex, until), taken)

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

/* A wait that can be cancelled: whoever is comes back as well, to its cleanup handlers, and was woken by the thread that cancelled it. */
struct wait {
	bool told, credit;
};

static void come_back(void *arg)
{
	const struct wait *w = arg;

	shim_after_wait(w->told, w->credit);
}

#define CANCELLABLE(result, call, ended)                              \
	do {                                                          \
		struct wait wait = {shim_before_wait(), true};        \
                                                                      \
		pthread_cleanup_push(come_back, &wait);               \
		(result) = (call);                                    \
		wait.credit = (ended);                                \
		pthread_cleanup_pop(1);                               \
	} while (0)

/* Gives the mutex away, and waits. */
#define CONDITION(name, parameters, arguments)                        \
	EXPORT int name parameters                                    \
	{                                                             \
		volatile int result;                                  \
                                                                      \
		shim_before_wake();                                   \
		CANCELLABLE(result, REAL(name) arguments, taken(result)); \
		return result;                                        \
	}

CONDITION(pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex))
CONDITION(pthread_cond_timedwait, (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until), (cond, mutex, until))
CONDITION(pthread_cond_clockwait, (pthread_cond_t * cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
	  (cond, mutex, clock, until))
CONDITION(cnd_wait, (cnd_t * cond, mtx_t *mutex), (cond, mutex))
CONDITION(cnd_timedwait, (cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until), (cond, mutex, until))

#define CANCELLABLE_WAIT(name, parameters, arguments, ended)          \
	EXPORT int name parameters                                    \
	{                                                             \
		volatile int result;                                  \
                                                                      \
		CANCELLABLE(result, REAL(name) arguments, ended);     \
		return result;                                        \
	}

CANCELLABLE_WAIT(pthread_join, (pthread_t thread, void **ret), (thread, ret), result == 0)
CANCELLABLE_WAIT(pthread_timedjoin_np, (pthread_t thread, void **ret, const struct timespec *until), (thread, ret, until), result == 0)
CANCELLABLE_WAIT(pthread_clockjoin_np, (pthread_t thread, void **ret, clockid_t clock, const struct timespec *until),
		 (thread, ret, clock, until), result == 0)
CANCELLABLE_WAIT(thrd_join, (thrd_t thread, int *ret), (thread, ret), result == thrd_success)
CANCELLABLE_WAIT(sem_timedwait, (sem_t *restrict sem, const struct timespec *restrict until), (sem, until), result == 0)
CANCELLABLE_WAIT(sem_clockwait, (sem_t *restrict sem, clockid_t clock, const struct timespec *restrict until), (sem, clock, until),
		 result == 0)

/* A cancellation point also where it need not wait; a failed try sets errno, the call itself may not. */
EXPORT int sem_wait(sem_t *sem)
{
	volatile int result;
	int saved = errno;

	pthread_testcancel();
	if (REAL(sem_trywait)(sem) == 0)
		return 0;
	errno = saved;
	CANCELLABLE(result, REAL(sem_wait)(sem), result == 0);
	return result;
}

/* Signals come from anywhere: credit for those that the process sent itself. */
static bool sent_from_inside(const siginfo_t *info)
{
	return (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL) && info->si_pid == getpid();
}

/* Apart, so that nothing is changed that cancellation could bring back. */
__attribute__((noinline)) static int await_signal(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	volatile int result;

	CANCELLABLE(result, REAL(sigtimedwait)(set, info, timeout), result > 0 && sent_from_inside(info));
	return result;
}

EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict timeout)
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

/* A thread begins level: its maker has paid. Its end lets those go that join it, however it ends. */
struct birth {
	void *(*function)(void *);
	int (*c11_function)(void *);
	void *arg;
};

static void at_end(void *arg)
{
	(void)arg;
	shim_before_wake();
}

static struct birth begin(void *arg)
{
	struct birth b = *(struct birth *)arg;

	free(arg);
	shim_after_wait(false, false);
	return b;
}

static void *live(void *arg)
{
	struct birth b = begin(arg);
	void *volatile result;

	pthread_cleanup_push(at_end, NULL);
	result = b.function(b.arg);
	pthread_cleanup_pop(1);
	return result;
}

static int live_c11(void *arg)
{
	struct birth b = begin(arg);
	volatile int result;

	pthread_cleanup_push(at_end, NULL);
	result = b.c11_function(b.arg);
	pthread_cleanup_pop(1);
	return result;
}

static struct birth *prepare(const struct birth *b)
{
	int saved = errno;
	struct birth *copy = malloc(sizeof(*copy));

	errno = saved;
	if (!copy)
		return NULL;
	*copy = *b;
	shim_before_wake();
	return copy;
}

EXPORT int pthread_create(pthread_t *restrict ret, const pthread_attr_t *restrict attributes, void *(*function)(void *),
			  void *restrict arg)
{
	struct birth *b = prepare(&(struct birth){.function = function, .arg = arg});
	int result = b ? REAL(pthread_create)(ret, attributes, live, b) : EAGAIN;

	if (result != 0)
		free(b);
	return result;
}

EXPORT int thrd_create(thrd_t *ret, thrd_start_t function, void *arg)
{
	struct birth *b = prepare(&(struct birth){.c11_function = function, .arg = arg});
	int result = b ? REAL(thrd_create)(ret, live_c11, b) : thrd_nomem;

	if (result != thrd_success)
		free(b);
	return result;
}
