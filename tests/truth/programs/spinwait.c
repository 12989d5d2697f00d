// SPDX-License-Identifier: BSD-2-Clause
/* Two threads in turn, a and b, that wait for each other by looking again and again: no system call tells anybody that they wait. A
 * round is a + b. */
#include "program.h"

#include <stdalign.h>

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 20000, .share_a = 60 };
static alignas(64) uint64_t turn;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static KEEP void wait_for(uint64_t mine)
{
	while ((__atomic_load_n(&turn, __ATOMIC_ACQUIRE) & 1) != mine)
		continue;
}

static void *body_a(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		wait_for(0);
		work_a();
		(void)__atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
	}
	return arg;
}

static void *body_b(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		wait_for(1);
		work_b();
		(void)__atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
		visit();
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	start_thread(body_a, NULL);
	start_thread(body_b, NULL);
	program_finish(&p, NULL);
}
