/* SPDX-License-Identifier: BSD-2-Clause */
/* A moment of computing before what a test looks at, in which a profiler gets its first experiment under way, and a shorter one after it.
 * The program has a function burn, whose line is marked LINE:burn, and says settle_ns=N at its end: see whole_run in tests/e2e/helpers.sh. */
#pragma once

#include "helper.h"

static void burn(uint64_t n);

/* The second argument, in seconds: nanoseconds. */
static inline uint64_t settle_length(int argc, char **argv)
{
	return (uint64_t)((argc > 2 ? atof(argv[2]) : 0.5) * 1e9);
}

static void settle(uint64_t length)
{
	uint64_t end = now_ns() + length;

	while (now_ns() < end)
		burn(100000);
}

/* @n threads at once, each with its element of @args, which are @size bytes long; to their end. */
static inline void run_threads(int n, void *(*body)(void *), void *args, size_t size)
{
	pthread_t *t = calloc((size_t)n, sizeof(*t));

	if (!t) {
		perror("calloc");
		exit(2);
	}
	for (int i = 0; i < n; i++)
		start_thread(&t[i], body, (char *)args + (size_t)i * size);
	for (int i = 0; i < n; i++)
		(void)pthread_join(t[i], NULL);
	free(t);
}
