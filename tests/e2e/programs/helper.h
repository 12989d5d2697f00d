/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs for behaviour tests share. */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A function that stays one symbol with one copy, so that a name or a line of it means what it says. */
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

/* Counts down from @n. A macro: all of it belongs to the line of its use. */
#define BURN(n)                                                   \
	do {                                                      \
		for (uint64_t burn_i = (n); burn_i > 0; burn_i--) \
			__asm__ volatile("" : "+r"(burn_i));      \
	} while (0)

/* The progress point. */
static KEEP void progress(void)
{
	__asm__ volatile("" : : : "memory");
}

/* One more visit of it, for programs that say how many there were. */
static inline void visit(uint64_t *count)
{
	(void)__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	progress();
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static inline void start_thread(pthread_t *ret, void *(*body)(void *), void *arg)
{
	int r = pthread_create(ret, NULL, body, arg);

	if (r) {
		fprintf(stderr, "cannot create a thread: %s\n", strerror(r));
		exit(2);
	}
}

/* The only argument: a number of seconds. */
static inline double seconds_of(int argc, char **argv)
{
	double seconds = argc == 2 ? atof(argv[1]) : 0;

	if (!(seconds > 0 && seconds < 1e6)) {
		fprintf(stderr, "usage: %s SECONDS\n", argv[0]);
		exit(2);
	}
	return seconds;
}

/* Sleeps; returns how often the sleep was interrupted. */
static inline unsigned int sleep_seconds(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds };
	unsigned int interrupted = 0;

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		interrupted++;
	return interrupted;
}
