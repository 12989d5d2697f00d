// SPDX-License-Identifier: BSD-2-Clause
/* One thread computes, work a and then work b. Another one only wakes up now and then, as those that servers have for their housekeeping, and has to
 * have the same CPU for a moment: it is 1 % of the time, and no reason to wait for anything. */
#include "program.h"

enum { ASLEEP_US = 2000, AWAKE_US = 20 };

static uint64_t steps_a, steps_b, steps_awake;
static struct program p = { .round_us = 5000, .share_a = 60 };

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void *compute(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		work_a();
		work_b();
		visit();
	}
	return arg;
}

static void *keep_house(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		sleep_seconds(ASLEEP_US / 1e6);
		SPIN(steps_awake);
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	steps_awake = program_steps(&p, AWAKE_US, 0);
	start_thread(compute, NULL);
	start_thread(keep_house, NULL);
	program_finish(&p, NULL);
}
