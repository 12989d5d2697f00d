// SPDX-License-Identifier: BSD-2-Clause
/* All the work is in functions that other functions of this file call: their lines have a share of it only with the callers counted in.
 * usage: callers SECONDS */
#include "helper.h"

/* Behind the last call of a function: it is no jump, so that the caller's frame is there. */
#define NO_TAIL_CALL() __asm__ volatile("")

static KEEP void leaf(void)
{
	BURN(1200000); /* LINE:leaf */
}

static KEEP void other(void)
{
	BURN(400000); /* LINE:other */
}

/* Twice on one line, and one below the other: a sample can have this line several times, and counts once. */
static KEEP void recursive(int depth)
{
	if (depth)
		recursive(depth - 1), recursive(depth - 1); /* LINE:recursion */
	else
		BURN(50000); /* LINE:bottom */
	NO_TAIL_CALL();
}

static KEEP void middle(void)
{
	leaf(); /* LINE:leaf-call */
	other(); /* LINE:other-call */
	recursive(3); /* LINE:recursion-call */
	NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
	uint64_t until = now_ns() + (uint64_t)(seconds_of(argc, argv) * 1e9);

	while (now_ns() < until) {
		middle(); /* LINE:all */
		progress();
	}
	return 0;
}
