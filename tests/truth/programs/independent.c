// SPDX-License-Identifier: BSD-2-Clause
/* T threads that never wait for each other. An iteration is a round long: work a for its share, then work b. Line a
 * faster by s: every iteration shorter by s * share, however many threads there are. */
#include "program.h"

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 600, .share_a = 50, .threads = 2 };

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
	pin_to(&p, (long)(intptr_t)arg);
	for (;;) {
		work_a();
		work_b();
		visit();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	for (long i = 0; i < p.threads; i++)
		start_thread(body, (void *)(intptr_t)i);
	program_finish(&p, NULL);
}
