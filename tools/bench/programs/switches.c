// SPDX-License-Identifier: BSD-2-Clause
/* Two threads, each on a CPU of its own, that compute for a moment, ask a partner on the same CPU
 * by a pipe, and wait for its answer: two switches a round. The partner is another process, or
 * another thread with a word more. `rounds_per_s=N`. usage: switches SECONDS [thread] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CPUS 2
#define STEPS 80000 /* some 30 us */

static struct side {
	pthread_t thread, partner;
	int question[2], answer[2], cpu;
	long rounds;
} sides[CPUS];

static double end;

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static void *answer(void *arg)
{
	struct side *s = arg;
	char c;

	pin(s->cpu);
	while (read(s->question[0], &c, 1) == 1 && write(s->answer[1], &c, 1) == 1)
		;
	return NULL;
}

__attribute__((noinline)) static void progress(void)
{
	__asm__ volatile("" : : : "memory");
}

static void *ask(void *arg)
{
	struct side *s = arg;
	char c = 'x';

	pin(s->cpu);
	while (now() < end) {
		for (long i = 0; i < STEPS; i++)
			__asm__ volatile("" : "+r"(i));
		if (write(s->question[1], &c, 1) != 1 || read(s->answer[0], &c, 1) != 1)
			exit(1);
		s->rounds++;
		progress();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	long rounds = 0;

	for (int i = 0; i < CPUS; i++) {
		struct side *s = &sides[i];

		s->cpu = i;
		if (pipe(s->question) || pipe(s->answer))
			return 1;
		if (argc > 2) {
			if (pthread_create(&s->partner, NULL, answer, s))
				return 1;
		} else if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)answer(s);
			_exit(0);
		}
	}
	end = now() + seconds;
	for (int i = 0; i < CPUS; i++)
		if (pthread_create(&sides[i].thread, NULL, ask, &sides[i]))
			return 1;
	for (int i = 0; i < CPUS; i++) {
		(void)pthread_join(sides[i].thread, NULL);
		rounds += sides[i].rounds;
	}
	printf("rounds_per_s=%.0f\n", (double)rounds / seconds);
	fflush(stdout);
	_exit(0);
}
