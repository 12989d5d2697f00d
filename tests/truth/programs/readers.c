// SPDX-License-Identifier: BSD-2-Clause
/* A readers-writer lock: in each round one thread writes (b) while the other waits to read, then both read (a) side by side. The writer
 * has the lock before the round begins, so that the reader always waits: a round is b + a. */
#include "program.h"

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 60 };
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t round_begins, round_ends;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void read_it(void)
{
	(void)pthread_rwlock_rdlock(&lock);
	work_a();
	(void)pthread_rwlock_unlock(&lock);
	(void)pthread_barrier_wait(&round_ends);
}

static void *writer(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		(void)pthread_rwlock_wrlock(&lock);
		(void)pthread_barrier_wait(&round_begins);
		work_b();
		(void)pthread_rwlock_unlock(&lock);
		read_it();
		visit();
	}
	return arg;
}

static void *reader(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		(void)pthread_barrier_wait(&round_begins);
		read_it();
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	(void)pthread_barrier_init(&round_begins, NULL, 2);
	(void)pthread_barrier_init(&round_ends, NULL, 2);
	start_thread(writer, NULL);
	start_thread(reader, NULL);
	program_finish(&p, NULL);
}
