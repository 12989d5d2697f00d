// SPDX-License-Identifier: BSD-2-Clause
/* The barrier program of the Coz paper. Two threads meet at a barrier after every round; one has 67 units of work in a
 * round, the other 64. The line of the longer part helps by 3/67 = 4.48 % at most; the line of the shorter part not at
 * all, although each takes about half of all CPU time. usage: barrier [SECONDS] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP __attribute__((noinline)) /* a function of its own in the profile */
#define UNIT 220000                    /* steps; 67 units are some 20 ms */

static pthread_barrier_t barrier;
static volatile uint64_t sink;

static KEEP void longer(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; x = x * 6364136223846793005ULL + 1, i++) /* 67 units */
		;
	sink = x;
}

static KEEP void shorter(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; x = x * 6364136223846793005ULL + 1, i++) /* 64 units */
		;
	sink = x;
}

/* The progress point: a round is done. */
static KEEP void progress(void)
{
	__asm__ volatile("" : : : "memory");
}

static void *one(void *arg)
{
	for (;;) {
		longer(67 * UNIT);
		(void)pthread_barrier_wait(&barrier);
		progress();
	}
	return arg;
}

static void *other(void *arg)
{
	for (;;) {
		shorter(64 * UNIT);
		(void)pthread_barrier_wait(&barrier);
	}
	return arg;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t t;

	if (pthread_barrier_init(&barrier, NULL, 2) || pthread_create(&t, NULL, one, NULL) ||
	    pthread_create(&t, NULL, other, NULL))
		return 1;
	if (seconds <= 0)
		for (;;)
			(void)pause();
	(void)sleep((unsigned int)seconds);
	return 0;
}
