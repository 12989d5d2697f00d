// SPDX-License-Identifier: BSD-2-Clause
/* Of the program `calls`: locks, condition variables, and being cancelled while waiting for them. */
#include "calls.h"

#include <signal.h>

static const struct timespec past, wrong = {.tv_nsec = 1000000000};

static void mutex_of_kind(int kind, const char *name)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;

	(void)pthread_mutexattr_init(&a);
	(void)pthread_mutexattr_settype(&a, kind);
	(void)pthread_mutex_init(&m, &a);
	SAY("%s:", name);
	CALL(pthread_mutex_lock(&m));
	CALL(pthread_mutex_trylock(&m));
	if (kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK)
		CALL(pthread_mutex_lock(&m));
	CALL(pthread_mutex_timedlock(&m, &past));
	CALL(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &past));
	CALL(pthread_mutex_timedlock(&m, &wrong));
	CALL(pthread_mutex_clocklock(&m, CLOCK_PROCESS_CPUTIME_ID, &past));
	while (kind == PTHREAD_MUTEX_RECURSIVE && pthread_mutex_unlock(&m) == 0)
		SAY("unlocked once");
	if (kind != PTHREAD_MUTEX_RECURSIVE)
		CALL(pthread_mutex_unlock(&m));
	if (kind == PTHREAD_MUTEX_ERRORCHECK)
		CALL(pthread_mutex_unlock(&m));
	CALL(pthread_mutex_timedlock(&m, &past));
	CALL(pthread_mutex_unlock(&m));
	CALL(pthread_mutex_destroy(&m));
}

static void *dies_with(void *m)
{
	CALL(pthread_mutex_lock(m));
	return NULL;
}

static void owner_dies(pthread_mutex_t *m)
{
	pthread_t t;

	start_thread(&t, dies_with, m);
	(void)pthread_join(t, NULL);
}

static void robust(int protocol)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;

	(void)pthread_mutexattr_init(&a);
	(void)pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	(void)pthread_mutexattr_setprotocol(&a, protocol);
	(void)pthread_mutex_init(&m, &a);
	owner_dies(&m);
	CALL(pthread_mutex_lock(&m));
	CALL(pthread_mutex_consistent(&m));
	CALL(pthread_mutex_unlock(&m));
	owner_dies(&m);
	CALL(pthread_mutex_timedlock(&m, &past));
	CALL(pthread_mutex_unlock(&m));
	CALL(pthread_mutex_lock(&m));
	CALL(pthread_mutex_trylock(&m));
	CALL(pthread_mutex_timedlock(&m, &past));
	(void)pthread_mutex_destroy(&m);
}

static void reading_and_writing(void)
{
	pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;

	CALL(pthread_rwlock_rdlock(&l));
	CALL(pthread_rwlock_rdlock(&l));
	CALL(pthread_rwlock_tryrdlock(&l));
	CALL(pthread_rwlock_trywrlock(&l));
	CALL(pthread_rwlock_timedwrlock(&l, &past));
	CALL(pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &past));
	CALL(pthread_rwlock_timedwrlock(&l, &wrong));
	for (int i = 0; i < 3; i++)
		CALL(pthread_rwlock_unlock(&l));
	CALL(pthread_rwlock_wrlock(&l));
	CALL(pthread_rwlock_wrlock(&l));
	CALL(pthread_rwlock_rdlock(&l));
	CALL(pthread_rwlock_tryrdlock(&l));
	CALL(pthread_rwlock_timedrdlock(&l, &past));
	CALL(pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &past));
	CALL(pthread_rwlock_unlock(&l));
}

struct meeting {
	pthread_barrier_t barrier;
	pthread_spinlock_t spin;
	int last, met;
};

static void *meet(void *arg)
{
	struct meeting *m = arg;
	int r = pthread_barrier_wait(&m->barrier);

	(void)pthread_spin_lock(&m->spin);
	m->met++;
	m->last += r == PTHREAD_BARRIER_SERIAL_THREAD;
	(void)pthread_spin_unlock(&m->spin);
	return NULL;
}

static void meetings(void)
{
	struct meeting m = {.met = 0};
	pthread_t t[3];

	(void)pthread_barrier_init(&m.barrier, NULL, 4);
	(void)pthread_spin_init(&m.spin, PTHREAD_PROCESS_PRIVATE);
	CALL(pthread_spin_lock(&m.spin));
	CALL(pthread_spin_trylock(&m.spin));
	CALL(pthread_spin_unlock(&m.spin));
	for (int i = 0; i < 3; i++)
		start_thread(&t[i], meet, &m);
	(void)meet(&m);
	for (int i = 0; i < 3; i++)
		(void)pthread_join(t[i], NULL);
	SAY("barrier: %d met, %d last", m.met, m.last);
}

void locks_of_all_kinds(void)
{
	mutex_of_kind(PTHREAD_MUTEX_NORMAL, "normal");
	mutex_of_kind(PTHREAD_MUTEX_RECURSIVE, "recursive");
	mutex_of_kind(PTHREAD_MUTEX_ERRORCHECK, "errorcheck");
	mutex_of_kind(PTHREAD_MUTEX_ADAPTIVE_NP, "adaptive");
	robust(PTHREAD_PRIO_NONE);
	robust(PTHREAD_PRIO_INHERIT);
	reading_and_writing();
	meetings();
}

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	sem_t sem, there;
	int turn;
} shared;

static void *answers(void *arg)
{
	(void)pthread_mutex_lock(&shared.mutex);
	for (int i = 1; i < 20; i += 2) {
		while (shared.turn != i)
			(void)pthread_cond_wait(&shared.cond, &shared.mutex);
		shared.turn++;
		(void)(i % 4 == 1 ? pthread_cond_signal(&shared.cond) : pthread_cond_broadcast(&shared.cond));
	}
	(void)pthread_mutex_unlock(&shared.mutex);
	return arg;
}

static void reset(int kind)
{
	pthread_mutexattr_t a;

	(void)pthread_mutexattr_init(&a);
	(void)pthread_mutexattr_settype(&a, kind);
	(void)pthread_mutex_init(&shared.mutex, &a);
	(void)pthread_cond_init(&shared.cond, NULL);
	(void)sem_init(&shared.sem, 0, 0);
	(void)sem_init(&shared.there, 0, 0);
	shared.turn = 0;
}

void conditions(void)
{
	struct timespec soon;
	pthread_t t;
	int r = 0;

	reset(PTHREAD_MUTEX_ERRORCHECK);
	CALL(pthread_cond_timedwait(&shared.cond, &shared.mutex, &past));
	CALL(pthread_mutex_lock(&shared.mutex));
	CALL(pthread_cond_timedwait(&shared.cond, &shared.mutex, &past));
	CALL(pthread_cond_clockwait(&shared.cond, &shared.mutex, CLOCK_MONOTONIC, &past));
	CALL(pthread_cond_timedwait(&shared.cond, &shared.mutex, &wrong));
	CALL(pthread_cond_clockwait(&shared.cond, &shared.mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
	(void)clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec += 60;
	start_thread(&t, answers, NULL);
	for (int i = 0; i < 20 && r == 0; i += 2) {
		shared.turn++;
		(void)pthread_cond_signal(&shared.cond);
		while (shared.turn != i + 2 && r == 0)
			r = pthread_cond_timedwait(&shared.cond, &shared.mutex, &soon);
	}
	SAY("cond: last %d, turn %d", r, shared.turn);
	CALL(pthread_mutex_unlock(&shared.mutex));
	(void)pthread_join(t, NULL);
}

/* Handlers run from the inside out, on the way out of a cancelled wait; the mutex is held again by then. */
static void unlocks(void *arg)
{
	SAY("%s: handler, unlock %d", (const char *)arg, pthread_mutex_unlock(&shared.mutex));
}

static void tells(void *arg)
{
	SAY("%s: outer handler", (const char *)arg);
}

static void *in_cond_wait(void *name)
{
	pthread_cleanup_push(tells, name);
	(void)pthread_mutex_lock(&shared.mutex);
	pthread_cleanup_push(unlocks, name);
	(void)sem_post(&shared.there);
	for (;;)
		(void)pthread_cond_wait(&shared.cond, &shared.mutex);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_sem_wait(void *name)
{
	pthread_cleanup_push(tells, name);
	(void)sem_post(&shared.there);
	(void)sem_wait(&shared.sem);
	pthread_cleanup_pop(0);
	return NULL;
}

static pthread_t never_ends;

static void *in_join(void *name)
{
	pthread_cleanup_push(tells, name);
	(void)sem_post(&shared.there);
	(void)pthread_join(never_ends, NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_sigwait(void *name)
{
	sigset_t set;
	int signo;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR2);
	pthread_cleanup_push(tells, name);
	(void)sem_post(&shared.there);
	(void)sigwait(&set, &signo);
	pthread_cleanup_pop(0);
	return NULL;
}

/* A semaphore that is free is a cancellation point all the same; a mutex is none. */
static void *at_free_semaphore(void *name)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	int old;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	(void)sem_post(&shared.there);
	(void)sem_wait(&shared.sem);
	(void)pthread_setcancelstate(old, &old);
	pthread_cleanup_push(tells, name);
	CALL(pthread_mutex_lock(&m));
	CALL(pthread_mutex_unlock(&m));
	(void)sem_wait(&shared.sem);
	SAY("%s: not reached", (const char *)name);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel_in(void *(*body)(void *), const char *name, int posts)
{
	void *result = NULL;
	pthread_t t;
	int r;

	reset(PTHREAD_MUTEX_ERRORCHECK);
	start_thread(&t, body, (void *)name);
	(void)sem_wait(&shared.there);
	r = pthread_cancel(t);
	for (int i = 0; i < posts; i++)
		(void)sem_post(&shared.sem);
	CALL(pthread_join(t, &result));
	SAY("%s: cancel %d, cancelled %d", name, r, result == PTHREAD_CANCELED);
}

static void *until_posted(void *arg)
{
	(void)sem_wait(arg);
	return NULL;
}

void cancellation(void)
{
	sem_t end;

	(void)sem_init(&end, 0, 0);
	start_thread(&never_ends, until_posted, &end);
	cancel_in(in_cond_wait, "pthread_cond_wait", 0);
	cancel_in(in_sem_wait, "sem_wait", 0);
	cancel_in(in_sigwait, "sigwait", 0);
	cancel_in(in_join, "pthread_join", 0);
	cancel_in(at_free_semaphore, "free semaphore", 2);
	(void)sem_post(&end);
	CALL(pthread_join(never_ends, NULL));
}
