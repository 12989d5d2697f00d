// SPDX-License-Identifier: BSD-2-Clause
/* Two workers share one lock: 14 units of work inside it (update) and 6 outside (prepare) for each request. While one
 * prepares, the other is inside or waits to get in, so the lock is always taken and the workers go in lockstep: a
 * request each 14 units. The line inside has 70 % of the samples, yet s % faster makes requests s % faster up to a
 * knee; the line outside has 30 % of the samples and no effect. usage: lockstep [SECONDS] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP __attribute__((noinline)) /* a function of its own in the profile */
#define UNIT 200000                    /* steps; 20 units are some 5 ms */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t table; /* what the lock protects */

static KEEP void update(uint64_t request, uint64_t n)
{
	uint64_t x = table + request;

	for (uint64_t i = 0; i < n; x = x * 6364136223846793005ULL + 1, i++) /* 14 units, inside the lock */
		;
	table = x;
}

static KEEP uint64_t prepare(uint64_t request, uint64_t n)
{
	for (uint64_t i = 0; i < n; request = request * 6364136223846793005ULL + 3, i++) /* 6 units, outside */
		;
	return request;
}

/* The progress point: a request is done. */
static KEEP void progress(void)
{
	__asm__ volatile("" : : : "memory");
}

static void *worker(void *arg)
{
	for (uint64_t request = 0;; request++) {
		uint64_t prepared = prepare(request, 6 * UNIT);

		(void)pthread_mutex_lock(&lock);
		update(prepared, 14 * UNIT);
		(void)pthread_mutex_unlock(&lock);
		progress();
	}
	return arg;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t t;

	if (pthread_create(&t, NULL, worker, NULL) || pthread_create(&t, NULL, worker, NULL))
		return 1;
	if (seconds <= 0)
		for (;;)
			(void)pause();
	(void)sleep((unsigned int)seconds);
	return 0;
}
