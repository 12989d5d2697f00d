// SPDX-License-Identifier: BSD-2-Clause
/* A producer (work a) and a consumer (work b) with a bounded queue of --window items, a mutex and two condition
 * variables. The slower stage takes a round for an item; --share-a is a / (a + b). Line of the slower stage: helps
 * until the other one is the slower. Line of the faster: nothing. */
#include "program.h"

enum { QUEUE_MAX = 64 };

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 62.5, .window = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static uint64_t queue[QUEUE_MAX], put, taken;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void *producer(void *arg)
{
	pin_to(&p, 0);
	for (uint64_t item = 0;; item++) {
		work_a();
		(void)pthread_mutex_lock(&lock);
		while (put - taken == (uint64_t)p.window)
			(void)pthread_cond_wait(&not_full, &lock);
		queue[put++ % QUEUE_MAX] = item;
		(void)pthread_cond_signal(&not_empty);
		(void)pthread_mutex_unlock(&lock);
	}
	return arg;
}

static void *consumer(void *arg)
{
	pin_to(&p, 1);
	for (uint64_t expected = 0;; expected++) {
		uint64_t item;

		(void)pthread_mutex_lock(&lock);
		while (put == taken)
			(void)pthread_cond_wait(&not_empty, &lock);
		item = queue[taken++ % QUEUE_MAX];
		(void)pthread_cond_signal(&not_full);
		(void)pthread_mutex_unlock(&lock);
		if (item != expected)
			abort();
		work_b();
		visit();
	}
	return arg;
}

int main(int argc, char **argv)
{
	double slower;

	program_start(&p, argc, argv);
	slower = p.share_a > 50 ? p.share_a : 100 - p.share_a;
	steps_a = program_steps(&p, p.round_us * p.share_a / slower, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / slower, p.speedup_b);
	start_thread(producer, NULL);
	start_thread(consumer, NULL);
	program_finish(&p, NULL);
}
