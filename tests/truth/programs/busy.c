// SPDX-License-Identifier: BSD-2-Clause
/* Load from outside: one thread that keeps its CPU busy. */
#include "program.h"

static struct program p = { .round_us = 1000, .threads = 1, .stays = true };

static void *body(void *arg)
{
	uint64_t steps = program_steps(&p, p.round_us, 0);

	pin_to(&p, (long)(intptr_t)arg);
	for (;;) {
		SPIN(steps);
		visit();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	for (long i = 0; i < p.threads; i++)
		start_thread(body, (void *)(intptr_t)i);
	program_finish(&p, NULL);
}
