// SPDX-License-Identifier: BSD-2-Clause
/* One thread, two phases in turn: --window visits (20) of work a, then as many of work b. Each line runs in one of them only. With a = 2 b, line b runs
 * in a third of the time. The mean time between visits is (a + b) / 2. The program ends with a whole number of turns, so that this holds however long
 * a phase is. */
#include "program.h"

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 3000, .share_a = 200.0 / 3, .window = 20 };

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void turn(void)
{
	for (long i = 0; i < p.window; i++) {
		work_a();
		visit();
	}
	for (long i = 0; i < p.window; i++) {
		work_b();
		visit();
	}
}

int main(int argc, char **argv)
{
	uint64_t begin, end;

	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	pin_to(&p, 0);
	begin = clock_ns(CLOCK_MONOTONIC);
	do {
		turn();
		end = clock_ns(CLOCK_MONOTONIC);
	} while (p.seconds == 0 || (double)(end - begin) < p.seconds * 1e9);
	program_print(own_counts.visits, end - begin);
}
