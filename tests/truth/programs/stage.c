// SPDX-License-Identifier: BSD-2-Clause
/* Three programs of one source (STAGE 0, 1, 2), which a shell joins: a producer (work b), a filter (work a) and a consumer, 0.3 of a round.
 * The filter has a CPU for itself, the others share one. Items are bytes; a pipe holds only a few, since each is written as a page. */
#include "program.h"

#include <fcntl.h>

enum { PAGE = 4096 };

static struct program p = { .round_us = 5000, .share_a = 100.0 / 1.5, .stays = true };
static uint64_t steps;
static char page[PAGE];

static KEEP void work_filter(void)
{
	SPIN(steps); /* LINE:a */
}

static KEEP void work_producer(void)
{
	SPIN(steps); /* LINE:b */
}

static KEEP void work_consumer(void)
{
	SPIN(steps);
}

static bool take(void)
{
	size_t have = 0;

	while (have < PAGE) {
		ssize_t n = read(STDIN_FILENO, page + have, PAGE - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

static bool give(void)
{
	return write(STDOUT_FILENO, page, PAGE) == PAGE;
}

static void *consume(void *arg)
{
	while (take()) {
		work_consumer();
		visit();
	}
	return arg;
}

int main(int argc, char **argv)
{
	double a, b;

	program_start(&p, argc, argv);
	/* share_a is a's of a + b; a is a round. */
	a = p.round_us;
	b = a * (100 - p.share_a) / p.share_a;
	pin_to(&p, STAGE == 1);
	(void)fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 2 * PAGE);
	if (STAGE == 2) {
		steps = program_steps(&p, 0.3 * a, 0);
		start_thread(consume, NULL);
		program_finish(&p, NULL);
	}
	steps = STAGE == 1 ? program_steps(&p, a, p.speedup_a) : program_steps(&p, b, p.speedup_b);
	do {
		if (STAGE == 1 && !take())
			return 0;
		if (STAGE == 1)
			work_filter();
		else
			work_producer();
	} while (give());
	return 0;
}
