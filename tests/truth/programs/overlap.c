// SPDX-License-Identifier: BSD-2-Clause
/* Computing while something outside of the program is waited for: one thread works (a), the other sleeps (b), then both meet. A round is
 * max(a, b), and nothing can be done about b. */
#include "program.h"

static uint64_t steps_a, sleeps, slept_ns;
static struct program p = { .round_us = 12000, .share_a = 58 };
static pthread_barrier_t barrier;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static void *compute(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		work_a();
		(void)pthread_barrier_wait(&barrier);
		visit();
	}
	return arg;
}

static void *wait_outside(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		uint64_t from = clock_ns(CLOCK_MONOTONIC);

		sleep_seconds(p.round_us * (100 - p.share_a) / 1e8); /* LINE:b */
		slept_ns += clock_ns(CLOCK_MONOTONIC) - from;
		sleeps++;
		(void)pthread_barrier_wait(&barrier);
	}
	return arg;
}

/* A sleep takes longer than was asked for. */
static void print_asleep(void)
{
	printf("asleep_us=%.2f\n", sleeps ? (double)slept_ns / 1e3 / (double)sleeps : 0.0);
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	(void)pthread_barrier_init(&barrier, NULL, 2);
	start_thread(compute, NULL);
	start_thread(wait_outside, NULL);
	program_finish(&p, print_asleep);
}
