// SPDX-License-Identifier: BSD-2-Clause
/* What the C library's calls for threads answer, in all the ways in which they can: results, errno, cancellation, signals, fork. Two runs
 * that print the same behaved alike. Nothing printed depends on time. Meanwhile a thread computes and another counts. usage: calls [ROUNDS] */
#include "calls.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <threads.h>

static volatile bool stop;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static void *compute(void *arg)
{
	while (!stop) {
		burn(200000);
		progress();
	}
	return arg;
}

static void *count(void *arg)
{
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	while (!stop) {
		(void)pthread_mutex_lock(&own);
		BURN(100000);
		(void)pthread_mutex_unlock(&own);
	}
	return arg;
}

static void *handed(void *arg)
{
	sem_t *go = arg;

	SAY("handed: sem_wait %d", sem_wait(go));
	return (void *)7;
}

static void *leaves(void *arg)
{
	pthread_exit(arg);
}

static void threads_and_joins(void)
{
	struct timespec past = {0};
	void *result = NULL;
	pthread_t t;
	sem_t go;

	(void)sem_init(&go, 0, 0);
	start_thread(&t, handed, &go);
	CALL(pthread_tryjoin_np(t, &result));
	CALL(pthread_timedjoin_np(t, &result, &past));
	CALL(pthread_clockjoin_np(t, &result, CLOCK_MONOTONIC, &past));
	CALL(pthread_clockjoin_np(t, &result, CLOCK_PROCESS_CPUTIME_ID, &past));
	(void)sem_post(&go);
	CALL(pthread_join(t, &result));
	SAY("result %ld", (long)result);
	start_thread(&t, leaves, (void *)9);
	CALL(pthread_join(t, &result));
	SAY("result %ld", (long)result);
	CALL(pthread_join(pthread_self(), NULL));
}

static void handler(int signo)
{
	(void)signo;
}

static void *interrupts(void *arg)
{
	pthread_t *whom = arg;

	(void)usleep(20000);
	/* Until it was seen: the first one may come before the wait. */
	for (int i = 0; i < 200 && !stop && *whom; i++) {
		(void)pthread_kill(*whom, SIGUSR1);
		(void)usleep(5000);
	}
	return NULL;
}

static void semaphores(void)
{
	struct timespec past = {0}, wrong = {.tv_nsec = 1000000000};
	struct sigaction sa = {.sa_handler = handler};
	pthread_t me = pthread_self(), t;
	sem_t s, full;
	int r;

	(void)sigaction(SIGUSR1, &sa, NULL);
	(void)sem_init(&s, 0, 2);
	errno = 77;
	r = sem_wait(&s);
	SAY("sem_wait %d, errno %d", r, errno);
	r = sem_timedwait(&s, &wrong);
	SAY("sem_timedwait, no such time: %d, errno %d", r, errno);
	errno = 77;
	r = sem_timedwait(&s, &past);
	SAY("sem_timedwait at once: %d, errno %d", r, errno);
	r = sem_timedwait(&s, &past);
	SAY("sem_timedwait %d, errno %d", r, errno);
	r = sem_clockwait(&s, CLOCK_MONOTONIC, &past);
	SAY("sem_clockwait %d, errno %d", r, errno);
	r = sem_clockwait(&s, CLOCK_PROCESS_CPUTIME_ID, &past);
	SAY("sem_clockwait, no such clock: %d, errno %d", r, errno);
	r = sem_trywait(&s);
	SAY("sem_trywait %d, errno %d", r, errno);
	start_thread(&t, interrupts, &me);
	r = sem_wait(&s);
	SAY("sem_wait interrupted: %d, errno %d", r, errno);
	me = 0;
	(void)pthread_join(t, NULL);
	(void)sem_init(&full, 0, INT_MAX);
	r = sem_post(&full);
	SAY("sem_post of a full one: %d, errno %d", r, errno);
}

static sem_t posted;

static void post(int signo)
{
	(void)signo;
	(void)sem_post(&posted);
}

static void *awaits_signal(void *arg)
{
	sigset_t set;
	int signo = 0, r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR2);
	errno = 77;
	r = sigwait(&set, &signo);
	SAY("sigwait %d, %d, errno %d", r, signo == SIGUSR2, errno);
	return arg;
}

static void signals(void)
{
	struct timespec none = {0}, wrong = {.tv_nsec = -1};
	struct sigaction sa = {.sa_handler = post, .sa_flags = SA_RESTART};
	union sigval value = {.sival_int = 5};
	siginfo_t info = {0};
	sigset_t set;
	pthread_t t;
	int r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR2);
	r = sigtimedwait(&set, NULL, &none);
	SAY("sigtimedwait %d, errno %d", r, errno);
	r = sigtimedwait(&set, NULL, &wrong);
	SAY("sigtimedwait, no such time: %d, errno %d", r, errno);
	r = sigqueue(getpid(), SIGUSR2, value);
	SAY("sigqueue %d", r);
	r = sigwaitinfo(&set, &info);
	SAY("sigwaitinfo %d, code %d, value %d, own %d", r == SIGUSR2, info.si_code, info.si_value.sival_int, info.si_pid == getpid());
	start_thread(&t, awaits_signal, NULL);
	(void)usleep(10000);
	r = pthread_kill(t, SIGUSR2);
	(void)pthread_join(t, NULL);
	SAY("pthread_kill %d", r);
	start_thread(&t, awaits_signal, NULL);
	r = pthread_sigqueue(t, SIGUSR2, value);
	(void)pthread_join(t, NULL);
	SAY("pthread_sigqueue %d", r);
	SAY("pthread_kill, no such signal: %d", pthread_kill(pthread_self(), 1000));
	r = kill(getpid(), 1000);
	SAY("kill, no such signal: %d, errno %d", r, errno);
	SAY("kill %d", kill(getpid(), 0));
	SAY("tgkill %d", tgkill(getpid(), gettid(), 0));
	(void)sem_init(&posted, 0, 0);
	(void)sigaction(SIGALRM, &sa, NULL);
	(void)ualarm(20000, 0);
	while (sem_wait(&posted) < 0 && errno == EINTR)
		;
	SAY("posted by a handler");
}

static int counts(void *arg)
{
	return *(int *)arg + 1;
}

static void c11(void)
{
	struct timespec past = {0};
	thrd_t t;
	mtx_t m;
	cnd_t c;
	int n = 41;

	CALL(mtx_init(&m, mtx_timed));
	CALL(cnd_init(&c));
	CALL(mtx_lock(&m));
	CALL(mtx_trylock(&m));
	CALL(mtx_timedlock(&m, &past));
	CALL(cnd_timedwait(&c, &m, &past));
	CALL(cnd_signal(&c));
	CALL(cnd_broadcast(&c));
	CALL(mtx_unlock(&m));
	CALL(thrd_create(&t, counts, &n));
	CALL(thrd_join(t, &n));
	SAY("result %d", n);
}

/* The child has one thread, and the C library of a program with several. */
static void forks(void)
{
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		pthread_t t;
		void *result = NULL;

		locks_of_all_kinds();
		start_thread(&t, leaves, (void *)3);
		CALL(pthread_join(t, &result));
		SAY("result in the child %ld", (long)result);
		(void)fflush(stdout);
		_exit(4);
	}
	SAY("child ended %d", waitpid(pid, &status, 0) == pid);
	SAY("status %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void names(void)
{
	void *wait = dlsym(RTLD_DEFAULT, "pthread_cond_wait");

	SAY("same condition variables %d", wait && wait == dlvsym(RTLD_DEFAULT, "pthread_cond_wait", "GLIBC_2.3.2"));
	SAY("old ones are others %d", wait != dlvsym(RTLD_DEFAULT, "pthread_cond_wait", "GLIBC_2.2.5"));
	SAY("same as called %d", dlsym(RTLD_DEFAULT, "pthread_mutex_lock") == (void *)pthread_mutex_lock);
}

int main(int argc, char **argv)
{
	pthread_t busy[2];
	sigset_t waited_for;

	(void)sigemptyset(&waited_for);
	(void)sigaddset(&waited_for, SIGUSR2);
	(void)pthread_sigmask(SIG_BLOCK, &waited_for, NULL);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	SAY("before main: %d", early_calls());
	start_thread(&busy[0], compute, NULL);
	start_thread(&busy[1], count, NULL);
	for (int i = argc > 1 ? atoi(argv[1]) : 5; i; i--) {
		locks_of_all_kinds();
		conditions();
		threads_and_joins();
		semaphores();
		signals();
		cancellation();
		c11();
		forks();
		names();
	}
	stop = true;
	(void)pthread_join(busy[0], NULL);
	(void)pthread_join(busy[1], NULL);
	return 0;
}
