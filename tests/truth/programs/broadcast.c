// SPDX-License-Identifier: BSD-2-Clause
/* A leader does work a, then wakes two workers at once by a broadcast; both do work b side by side, and the last one wakes the leader.
 * Nobody runs while the leader does, and the leader waits for both: a round is a + b. */
#include "program.h"

enum { WORKERS = 2 };

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 40 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER, ended = PTHREAD_COND_INITIALIZER;
static uint64_t generation;
static int working;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void *lead(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		work_a();
		(void)pthread_mutex_lock(&mutex);
		generation++;
		working = WORKERS;
		(void)pthread_cond_broadcast(&begun);
		while (working)
			(void)pthread_cond_wait(&ended, &mutex);
		(void)pthread_mutex_unlock(&mutex);
		visit();
	}
	return arg;
}

static void *work(void *arg)
{
	uint64_t seen = 0;

	pin_to(&p, (long)(intptr_t)arg);
	for (;;) {
		(void)pthread_mutex_lock(&mutex);
		while (generation == seen)
			(void)pthread_cond_wait(&begun, &mutex);
		seen = generation;
		(void)pthread_mutex_unlock(&mutex);
		work_b();
		(void)pthread_mutex_lock(&mutex);
		if (--working == 0)
			(void)pthread_cond_signal(&ended);
		(void)pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	for (intptr_t i = 0; i < WORKERS; i++)
		start_thread(work, (void *)i);
	start_thread(lead, NULL);
	program_finish(&p, NULL);
}
