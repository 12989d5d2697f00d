// SPDX-License-Identifier: BSD-2-Clause
/* The barrier program of the Coz paper: two threads with work 67 : 64 between barriers; a round is the longer one. Line
 * a helps until both are level, 3/67 = 4.48 %; line b never. */
#include "program.h"

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 20000 };
static pthread_barrier_t barrier;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void *body_a(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		work_a();
		(void)pthread_barrier_wait(&barrier);
		visit();
	}
	return arg;
}

static void *body_b(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		work_b();
		(void)pthread_barrier_wait(&barrier);
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * 64 / 67, p.speedup_b);
	(void)pthread_barrier_init(&barrier, NULL, 2);
	start_thread(body_a, NULL);
	start_thread(body_b, NULL);
	program_finish(&p, NULL);
}
