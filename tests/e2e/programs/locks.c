// SPDX-License-Identifier: BSD-2-Clause
/* What an uncontended pthread lock+unlock costs: the median over batches, in nanoseconds of wall clock. A second, idle
 * thread keeps the C library from taking single-thread short cuts. usage: locks [SECONDS]; prints `pairs=N
 * last=X ns_per_pair=X`: of the last batch, which a probe that came late has slowed down, and the median. */
#include "helper.h"

enum { PAIRS = 100000, BATCHES_MAX = 20000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double batches[BATCHES_MAX];

static KEEP void batch(void)
{
	for (int i = 0; i < PAIRS; i++) {
		(void)pthread_mutex_lock(&lock);
		(void)pthread_mutex_unlock(&lock); /* LINE:unlock */
	}
}

static void *idle(void *arg)
{
	for (;;)
		(void)pause();
	return arg;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
	pthread_t t;
	double last;
	size_t n = 0;

	start_thread(&t, idle, NULL);
	do {
		uint64_t t0 = now_ns();

		batch();
		batches[n++] = (double)(now_ns() - t0) / PAIRS;
		progress();
	} while (n < BATCHES_MAX && now_ns() < end);
	last = batches[n - 1];
	qsort(batches, n, sizeof(batches[0]), compare);
	printf("pairs=%zu last=%.3f ns_per_pair=%.3f\n", n * PAIRS, last, batches[n / 2]);
	return 0;
}
