// SPDX-License-Identifier: BSD-2-Clause
/* Two threads in turn, works a and b, that only reach each other through another process, which is not profiled. The wait for it is as long as the other
 * thread takes: to make it count as shorter pauses that thread, and so makes it longer. */
#include "channel.h"

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 60 };
static struct channel from_a, to_b, from_b, to_a;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b);
}

static KEEP void wait_b(void)
{
	char byte;

	check(read(to_a.in, &byte, 1) == 1, "read"); /* LINE:b */
}

static void *first(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		work_a();
		visit();
		give_byte(&from_a);
		wait_b();
	}
	return arg;
}

static void *second(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		take_byte(&to_b);
		work_b();
		give_byte(&from_b);
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	open_pipe(&from_a);
	open_pipe(&to_b);
	open_pipe(&from_b);
	open_pipe(&to_a);
	if (in_child())
		for (;;) {
			take_byte(&from_a);
			give_byte(&to_b);
			take_byte(&from_b);
			give_byte(&to_a);
		}
	start_thread(first, NULL);
	start_thread(second, NULL);
	program_finish(&p, NULL);
}
