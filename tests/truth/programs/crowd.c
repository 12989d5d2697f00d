// SPDX-License-Identifier: BSD-2-Clause
/* One thread sleeps (b) and works (a) in turn. A thousand others are idle: they wake up every two seconds and sleep again. */
#include "program.h"

static uint64_t steps_a;
static struct program p = { .round_us = 5000, .share_a = 50, .threads = 1000 };

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static void *work(void *arg)
{
	for (;;) {
		work_a();
		sleep_seconds(p.round_us * (100 - p.share_a) / 1e8 * (1 - p.speedup_b / 100)); /* LINE:b */
		visit();
	}
	return arg;
}

static void *idle(void *arg)
{
	for (;;)
		sleep_seconds(2); /* LINE:c */
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	for (long i = 0; i < p.threads; i++)
		start_thread(idle, NULL);
	start_thread(work, NULL);
	program_finish(&p, NULL);
}
