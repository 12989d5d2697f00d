// SPDX-License-Identifier: BSD-2-Clause
/* A program as users of Coz have it: built with coz.h and nothing of ours. Two threads; each item is a throughput visit
 * ("items" counted at two sites, which are one counter) and a transaction (begin and end of "work"). usage: coz_macros
 * SECONDS [SETTLE_SECONDS]: it computes for the latter before the first visit, and prints `items=N`, to compare with the
 * visits in the profile. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* coz.h wants RTLD_DEFAULT */
#endif
#include <coz.h>

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* One copy of each, and not one for both: the lines must stay two. */
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

static uint64_t items;
static int stop;

static KEEP void hot(uint64_t n)
{
	for (volatile uint64_t i = n; i > 0; i--) /* LINE:hot */
		;
}

static KEEP void cold(uint64_t n)
{
	for (volatile uint64_t i = n; i > 0; i--) /* LINE:cold */
		;
}

static void *body(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		COZ_BEGIN("work");
		hot(300000);
		COZ_END("work");
		cold(100000);
		(void)__atomic_add_fetch(&items, 1, __ATOMIC_RELAXED);
		if (arg) {
			COZ_PROGRESS_NAMED("items");
		} else {
			COZ_PROGRESS_NAMED("items");
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc >= 2 ? atof(argv[1]) : 0;
	struct timespec rest, begin, now;
	pthread_t t[2];

	if (!(seconds > 0 && seconds < 1e6)) {
		fprintf(stderr, "usage: %s SECONDS [SETTLE_SECONDS]\n", argv[0]);
		return 2;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		hot(300000);
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	} while (argc > 2 &&
		 (double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < atof(argv[2]));
	for (intptr_t i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, body, (void *)i))
			return 2;
	rest.tv_sec = (time_t)seconds;
	rest.tv_nsec = (long)((seconds - (double)rest.tv_sec) * 1e9);
	while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
		continue;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(t[i], NULL);
	printf("items=%llu\n", (unsigned long long)items);
	return 0;
}
