// SPDX-License-Identifier: BSD-2-Clause
/* Many at a time. usage: crowd KIND N SECONDS. KIND: threads (N of them, each computing for some 50 us and sleeping for N / 25 ms, so that
 * two CPUs are just busy), processes (the same), short (N threads, each making and joining others as fast as it can). Prints how much
 * was done: `visits=N elapsed_ns=N`. */
#include "helper.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static uint64_t *visits;
static long n;

static KEEP void burn(uint64_t steps)
{
	BURN(steps); /* LINE:burn */
}

static void *member(void *arg)
{
	for (;;) {
		burn(100000);
		visit(visits);
		(void)usleep((useconds_t)(n * 40));
	}
	return arg;
}

static void *short_lived(void *arg)
{
	burn(1000);
	return arg;
}

static void *maker(void *arg)
{
	for (;;) {
		pthread_t t;

		if (pthread_create(&t, NULL, short_lived, NULL) == 0)
			(void)pthread_join(t, NULL);
		visit(visits);
	}
	return arg;
}

static void start_process(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		exit(2);
	if (pid)
		return;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(2);
	(void)member(NULL);
	_exit(2);
}

int main(int argc, char **argv)
{
	double seconds = argc == 4 ? atof(argv[3]) : 0;
	uint64_t begin, before;
	pthread_attr_t attr;

	n = argc == 4 ? atol(argv[2]) : 0;
	if (!(seconds > 0) || n < 1 || n > 10000) {
		fprintf(stderr, "usage: %s threads|processes|short N SECONDS\n", argv[0]);
		return 2;
	}
	visits = mmap(NULL, sizeof(*visits), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (visits == MAP_FAILED)
		return 2;
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 64 * 1024);
	for (long i = 0; i < n; i++) {
		pthread_t t;

		if (strcmp(argv[1], "processes") == 0)
			start_process();
		else if (pthread_create(&t, &attr, strcmp(argv[1], "short") == 0 ? maker : member, NULL))
			return 2;
	}
	(void)usleep(300000);
	begin = now_ns();
	before = __atomic_load_n(visits, __ATOMIC_RELAXED);
	for (double i = 0; i < seconds; i += 0.05)
		(void)usleep(50000);
	printf("visits=%llu elapsed_ns=%llu\n", (unsigned long long)(__atomic_load_n(visits, __ATOMIC_RELAXED) - before),
	       (unsigned long long)(now_ns() - begin));
	return 0;
}
