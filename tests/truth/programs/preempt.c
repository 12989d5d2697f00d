// SPDX-License-Identifier: BSD-2-Clause
/* One CPU. One thread sleeps (b) and works (a), and preempts another one that always works (c). Visits are of the first one, or with --kind other of
 * the second: the shorter the sleep, the fewer of these. The first one has a real-time priority: it preempts at once, where the fair scheduler
 * would give the other one what is left of its slice, of which it has more the shorter the sleep is. */
#include "program.h"

#include <sched.h>

static uint64_t steps_a, steps_c;
static struct program p = { .round_us = 10000, .share_a = 20, .kind = "own" };
static bool of_other;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_c(void)
{
	SPIN(steps_c); /* LINE:c */
}

static void *wait_outside(void *arg)
{
	const struct sched_param first = { .sched_priority = 1 };

	put_on(0, 0);
	if (sched_setscheduler(0, SCHED_FIFO, &first)) {
		perror("preempt: a real-time priority");
		exit(1);
	}
	for (;;) {
		sleep_seconds(p.round_us * (100 - p.share_a) / 1e8 * (1 - p.speedup_b / 100)); /* LINE:b */
		work_a();
		if (!of_other)
			visit();
	}
	return arg;
}

static void *compute(void *arg)
{
	put_on(0, 0);
	for (;;) {
		work_c();
		if (of_other)
			visit();
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	of_other = strcmp(p.kind, "other") == 0;
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_c = program_steps(&p, p.round_us / 10, 0);
	start_thread(compute, NULL);
	start_thread(wait_outside, NULL);
	program_finish(&p, NULL);
}
