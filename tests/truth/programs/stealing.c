// SPDX-License-Identifier: BSD-2-Clause
/* Two workers with a queue each. All tasks of a batch are put into the first worker's queue; the second has none and steals. When the
 * last task is done, the one that did it plans the next batch alone (b). With tasks much shorter than a batch, the two share them
 * evenly: a batch takes b + a / 2, where a is all of its tasks together. */
#include "program.h"

enum { TASKS = 32 };

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 10000, .share_a = 75 };
static struct {
	pthread_mutex_t mutex;
	int first, last; /* tasks not taken */
} queues[2] = { { PTHREAD_MUTEX_INITIALIZER, 0, 0 }, { PTHREAD_MUTEX_INITIALIZER, 0, 0 } };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t refilled = PTHREAD_COND_INITIALIZER;
static uint64_t batch;
static int left = 1; /* tasks of the batch that are not done */

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

/* From the own queue the newest, from the other's the oldest. */
static bool take(int queue, bool own)
{
	bool got;

	(void)pthread_mutex_lock(&queues[queue].mutex);
	got = queues[queue].first < queues[queue].last;
	if (got && own)
		queues[queue].last--;
	else if (got)
		queues[queue].first++;
	(void)pthread_mutex_unlock(&queues[queue].mutex);
	return got;
}

static void plan(void)
{
	work_b();
	visit();
	(void)pthread_mutex_lock(&queues[0].mutex);
	queues[0].first = 0;
	queues[0].last = TASKS;
	__atomic_store_n(&left, TASKS, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&queues[0].mutex);
	(void)pthread_mutex_lock(&mutex);
	batch++;
	(void)pthread_cond_broadcast(&refilled);
	(void)pthread_mutex_unlock(&mutex);
}

static void *body(void *arg)
{
	int me = (int)(intptr_t)arg;

	pin_to(&p, me);
	for (;;) {
		uint64_t seen = __atomic_load_n(&batch, __ATOMIC_ACQUIRE);

		while (take(me, true) || take(!me, false)) {
			work_a();
			if (__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL) == 0)
				plan();
		}
		(void)pthread_mutex_lock(&mutex);
		while (batch == seen)
			(void)pthread_cond_wait(&refilled, &mutex);
		(void)pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100 / TASKS, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	queues[0].last = 1;
	start_thread(body, (void *)0);
	start_thread(body, (void *)1);
	program_finish(&p, NULL);
}
