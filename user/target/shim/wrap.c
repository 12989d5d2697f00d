// SPDX-License-Identifier: BSD-2-Clause
/* Calls that are no cancellation points, and what begins a thread.
 *
 * Those that can be had without waiting are tried so first, where the attempt is all that the call
 * itself would do if it succeeds. What neither wakes nor waits (trylock and its like) is not
 * wrapped. The C library's own calls from one of these to another do not come here. */
#include "wrap.h"

/* From the linker. */
extern struct shim_real __start_shim_reals[] __attribute__((visibility("hidden"))),
	__stop_shim_reals[] __attribute__((visibility("hidden")));

/* Before main, and earlier where another library's constructor calls one of these. Several threads
 * may do it at once: all find the same. */
__attribute__((constructor)) void shim_resolve(void)
{
	for (struct shim_real *r = __start_shim_reals; r < __stop_shim_reals; r++)
		__atomic_store_n(&r->function, next_function(r->name), __ATOMIC_RELAXED);
}

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
WAKES(pthread_sigqueue, (pthread_t thread, int signo, const union sigval value),
      (thread, signo, value))
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

/* Only a plain mutex is tried. With others an attempt is not as good as the call: glibc's leaves a
 * robust mutex that is lost locked. */
static int try_plain(pthread_mutex_t *mutex)
{
	return (unsigned int)mutex->__data.__kind <= PTHREAD_MUTEX_ADAPTIVE_NP
		       ? REAL(pthread_mutex_trylock)(mutex)
		       : EBUSY;
}

LOCKS(pthread_mutex_lock, try_plain(mutex), (pthread_mutex_t * mutex), (mutex))
LOCKS(pthread_rwlock_rdlock, REAL(pthread_rwlock_tryrdlock)(lock), (pthread_rwlock_t * lock),
      (lock))
LOCKS(pthread_rwlock_wrlock, REAL(pthread_rwlock_trywrlock)(lock), (pthread_rwlock_t * lock),
      (lock))
LOCKS(pthread_spin_lock, REAL(pthread_spin_trylock)(lock), (pthread_spinlock_t * lock), (lock))
LOCKS(mtx_lock, REAL(mtx_trylock)(mutex), (mtx_t * mutex), (mutex))
WAITS(pthread_mutex_timedlock, (pthread_mutex_t * mutex, const struct timespec *until),
      (mutex, until), shim_taken)
WAITS(pthread_mutex_clocklock,
      (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until),
      (mutex, clock, until), shim_taken)
WAITS(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const struct timespec *until),
      (lock, until), shim_taken)
WAITS(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const struct timespec *until),
      (lock, until), shim_taken)
WAITS(pthread_rwlock_clockrdlock,
      (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),
      (lock, clock, until), shim_taken)
WAITS(pthread_rwlock_clockwrlock,
      (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),
      (lock, clock, until), shim_taken)
WAITS(mtx_timedlock, (mtx_t *restrict mutex, const struct timespec *restrict until), (mutex, until),
      shim_taken)

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

/* A thread begins level: its maker has paid. Its end lets those go that join it, however it ends.
 */
struct birth {
	void *(*function)(void *);
	int (*c11_function)(void *);
	void *arg;
	bool used;
};

static void at_end(void *arg)
{
	(void)arg;
	shim_before_wake();
}

/* Of threads that were made and have not begun yet. Where all are in use, the next thread begins as
 * if there was no wrapper: its maker's and its own pauses come a little later. Memory of the
 * program's allocator would be asked for at a place where the program did not. */
static struct birth births[256];

static void forget(struct birth *b)
{
	__atomic_store_n(&b->used, false, __ATOMIC_RELEASE);
}

static struct birth *prepare(void *(*function)(void *), int (*c11_function)(void *), void *arg)
{
	shim_before_wake();
	for (size_t i = 0; i < sizeof(births) / sizeof(births[0]); i++) {
		struct birth *b = &births[i];

		if (__atomic_load_n(&b->used, __ATOMIC_RELAXED) ||
		    __atomic_exchange_n(&b->used, true, __ATOMIC_ACQUIRE))
			continue;
		b->function = function;
		b->c11_function = c11_function;
		b->arg = arg;
		return b;
	}
	return NULL;
}

static struct birth begin(void *arg)
{
	struct birth b = *(struct birth *)arg;

	forget(arg);
	shim_after_wait(false, false);
	return b;
}

#define LIVE(name, type, function)                  \
	static type name(void *arg)                 \
	{                                           \
		struct birth b = begin(arg);        \
		type volatile result;               \
                                                    \
		if (!shim_has_cleanup()) {          \
			result = b.function(b.arg); \
			at_end(NULL);               \
			return result;              \
		}                                   \
		pthread_cleanup_push(at_end, NULL); \
		result = b.function(b.arg);         \
		pthread_cleanup_pop(1);             \
		return result;                      \
	}

LIVE(live, void *, function)
LIVE(live_c11, int, c11_function)

EXPORT int pthread_create(pthread_t *restrict ret, const pthread_attr_t *restrict attributes,
			  void *(*function)(void *), void *restrict arg)
{
	struct birth *b = prepare(function, NULL, arg);
	int result = REAL(pthread_create)(ret, attributes, b ? live : function, b ? b : arg);

	if (b && result != 0)
		forget(b);
	return result;
}

EXPORT int thrd_create(thrd_t *ret, thrd_start_t function, void *arg)
{
	struct birth *b = prepare(NULL, function, arg);
	int result = REAL(thrd_create)(ret, b ? live_c11 : function, b ? b : arg);

	if (b && result != thrd_success)
		forget(b);
	return result;
}
