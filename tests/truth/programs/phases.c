// SPDX-License-Identifier: BSD-2-Clause
/* One thread, two phases in turn: 20 visits of work a, then 20 of work b. Line b runs in a third of the time with a = 2 b.
 * The mean time between visits is (a + b) / 2. */
#include "program.h"

enum { VISITS = 20 };

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 3000, .share_a = 200.0 / 3 };

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void *body(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		for (int i = 0; i < VISITS; i++) {
			work_a();
			visit();
		}
		for (int i = 0; i < VISITS; i++) {
			work_b();
			visit();
		}
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	start_thread(body, NULL);
	program_finish(&p, NULL);
}
