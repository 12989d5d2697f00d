// SPDX-License-Identifier: BSD-2-Clause
/* Three stages with short queues between them: decode (20 units an item), filter (12), write (1). The decoder sets the
 * pace. Its line helps until the filter is the slower one, at 40 %; the other two lines do not help at all. usage:
 * pipeline [SECONDS] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP __attribute__((noinline)) /* a function of its own in the profile */
#define UNIT 200000                    /* steps; 20 units are some 5 ms */

enum { DEPTH = 4 };

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	uint64_t items[DEPTH];
	unsigned int put, taken;
};

static struct queue decoded = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, { 0 }, 0, 0
};
static struct queue filtered = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, { 0 }, 0, 0
};
static volatile uint64_t sink;

static KEEP uint64_t decode(uint64_t x, uint64_t n)
{
	for (uint64_t i = 0; i < n; x = x * 6364136223846793005ULL + 1, i++) /* 20 units */
		;
	return x;
}

static KEEP uint64_t filter(uint64_t x, uint64_t n)
{
	for (uint64_t i = 0; i < n; x = x * 6364136223846793005ULL + 3, i++) /* 12 units */
		;
	return x;
}

static KEEP uint64_t write_out(uint64_t x, uint64_t n)
{
	for (uint64_t i = 0; i < n; x = x * 6364136223846793005ULL + 5, i++) /* 1 unit */
		;
	return x;
}

/* The progress point: an item has come through. */
static KEEP void progress(void)
{
	__asm__ volatile("" : : : "memory");
}

static void put(struct queue *q, uint64_t item)
{
	(void)pthread_mutex_lock(&q->lock);
	while (q->put - q->taken == DEPTH)
		(void)pthread_cond_wait(&q->not_full, &q->lock);
	q->items[q->put++ % DEPTH] = item;
	(void)pthread_cond_signal(&q->not_empty);
	(void)pthread_mutex_unlock(&q->lock);
}

static uint64_t take(struct queue *q)
{
	uint64_t item;

	(void)pthread_mutex_lock(&q->lock);
	while (q->put == q->taken)
		(void)pthread_cond_wait(&q->not_empty, &q->lock);
	item = q->items[q->taken++ % DEPTH];
	(void)pthread_cond_signal(&q->not_full);
	(void)pthread_mutex_unlock(&q->lock);
	return item;
}

static void *decoder(void *arg)
{
	for (uint64_t frame = 0;; frame++)
		put(&decoded, decode(frame, 20 * UNIT));
	return arg;
}

static void *filterer(void *arg)
{
	for (;;)
		put(&filtered, filter(take(&decoded), 12 * UNIT));
	return arg;
}

static void *writer(void *arg)
{
	for (;;) {
		sink = write_out(take(&filtered), UNIT);
		progress();
	}
	return arg;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t t;

	if (pthread_create(&t, NULL, decoder, NULL) || pthread_create(&t, NULL, filterer, NULL) ||
	    pthread_create(&t, NULL, writer, NULL))
		return 1;
	if (seconds <= 0)
		for (;;)
			(void)pause();
	(void)sleep((unsigned int)seconds);
	return 0;
}
