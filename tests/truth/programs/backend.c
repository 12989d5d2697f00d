// SPDX-License-Identifier: BSD-2-Clause
/* A thread that waits for a timer (b) and works (a), as a backend of a database waits for its disk, and what else such a server has.
 *
 * --kind moves: it works on another CPU than it waited on, behind a process out of scope that began to run there just before the wait was over. --kind
 * keeper: it waits with a lock, which a housekeeper wants for a moment that has slept for a long time. */
#include "channel.h"

enum { AHEAD_US = 200, OUTSIDE_US = 400, KEEPER_ASLEEP_US = 100000, KEEPER_US = 20 };

static uint64_t steps_a, steps_moment;
static struct program p = { .round_us = 7500, .share_a = 100 / 3.0, .kind = "moves" };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double wait_us;
static int to_outside[2];

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void wait_b(void)
{
	sleep_seconds(wait_us / 1e6); /* LINE:b */
}

static void *moves(void *arg)
{
	for (;;) {
		put_on(0, 0);
		check(write(to_outside[1], "x", 1) == 1, "write");
		wait_b();
		put_on(0, 1);
		work_a();
		visit();
	}
	return arg;
}

/* Until the program ends. */
static void run_outside(void)
{
	char byte;

	put_on(0, 1);
	while (read(to_outside[0], &byte, 1) == 1) {
		sleep_seconds((wait_us - AHEAD_US) / 1e6);
		SPIN(steps_moment);
	}
	_exit(2);
}

static void *waits_with_lock(void *arg)
{
	put_on(0, 0);
	for (;;) {
		(void)pthread_mutex_lock(&lock);
		wait_b();
		(void)pthread_mutex_unlock(&lock);
		work_a();
		visit();
	}
	return arg;
}

static void *keep_house(void *arg)
{
	put_on(0, 0);
	for (;;) {
		sleep_seconds(KEEPER_ASLEEP_US / 1e6);
		(void)pthread_mutex_lock(&lock);
		SPIN(steps_moment);
		(void)pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(int argc, char **argv)
{
	bool keeper;

	program_start(&p, argc, argv);
	keeper = strcmp(p.kind, "keeper") == 0;
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_moment = program_steps(&p, keeper ? KEEPER_US : OUTSIDE_US, 0);
	wait_us = p.round_us * (100 - p.share_a) / 100 * (1 - p.speedup_b / 100);
	if (keeper) {
		start_thread(keep_house, NULL);
		start_thread(waits_with_lock, NULL);
	} else {
		check(pipe(to_outside) == 0, "pipe");
		if (in_child())
			run_outside();
		start_thread(moves, NULL);
	}
	program_finish(&p, NULL);
}
