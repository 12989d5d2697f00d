// SPDX-License-Identifier: BSD-2-Clause
/* A service with a bottleneck, whose load varies by a factor of three: two threads, each on a CPU
 * of its own, work on requests, of which a part has to be done under a lock; between two requests a
 * thread waits for the next one, no time at all or up to twice as long as a request takes, up and
 * down in CYCLE seconds. `requests=N elapsed_ns=N`. usage: service SECONDS PERCENT: how much less
 * work there is under the lock. Compiled with -DOTHER it is another build, with its bottleneck
 * elsewhere. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CYCLE 60
#define TRIES 200
#ifdef OTHER
#define ALONE 27000 /* units */
#define LOCKED 45000
#else
#define ALONE 36000
#define LOCKED 36000
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t requests, locked = LOCKED;
static double end, request_s;

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Sixteen multiplications in one line, so that what counts the loop is little beside them. They are
 * a chain in a register, which goes at one speed whatever else runs. */
#define UNIT(x) \
	__asm__ volatile(".rept 16\n\timul %1, %0\n\t.endr" : "+r"(x) : "r"(6364136223846793005U))

__attribute__((noinline)) static uint64_t alone(uint64_t units, uint64_t x)
{
	for (uint64_t i = 0; i < units; i++)
		UNIT(x);
	return x;
}

__attribute__((noinline)) static uint64_t bottleneck(uint64_t units, uint64_t x)
{
	for (; units; units--)
		UNIT(x); /* LINE:bottleneck */ /* Other code than above, or there would be one
						  function for both */
	return x;
}

__attribute__((noinline)) void served(void);
__attribute__((noinline)) void served(void)
{
	(void)__atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
}

/* How long a thread waits for the next request, in lengths of one: 0 to 2. */
static double idle(double at)
{
	double phase = at / CYCLE - (double)(long)(at / CYCLE);

	return 4 * (phase < 0.5 ? phase : 1 - phase);
}

/* What a request takes on its own. */
static double measure(void)
{
	double least = 1;
	uint64_t x = 1;

	for (int i = 0; i < TRIES; i++) {
		double begun = now();

		x = bottleneck(LOCKED, alone(ALONE, x));
		least = now() - begun < least ? now() - begun : least;
	}
	return x ? least : 1;
}

static void *work(void *arg)
{
	cpu_set_t set;
	uint64_t x = 1;

	CPU_ZERO(&set);
	CPU_SET((size_t)(intptr_t)arg, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	while (now() < end) {
		double begun = now();

		x = alone(ALONE, x);
		(void)pthread_mutex_lock(&lock);
		x = bottleneck(locked, x);
		(void)pthread_mutex_unlock(&lock);
		served();
		if (idle(begun) > 0.1)
			(void)usleep((useconds_t)(1e6 * request_s * idle(begun)));
	}
	return (void *)(uintptr_t)x;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	double begun;

	request_s = measure();
	begun = now();
	end = begun + (argc > 1 ? atof(argv[1]) : 10);
	locked = (uint64_t)(LOCKED * (1 - (argc > 2 ? atof(argv[2]) : 0) / 100));
	for (intptr_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	(void)printf("requests=%llu elapsed_ns=%.0f\n", (unsigned long long)requests,
		     1e9 * (now() - begun));
	return 0;
}
