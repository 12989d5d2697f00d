// SPDX-License-Identifier: BSD-2-Clause
/* The barrier program of the Coz paper: two threads with work 67 : 64 between barriers; a round is the longer one. Line
 * a helps until both are level, 3/67 = 4.48 %; line b never. --share-a is a's part of both works (67 of 131). With --kind spin threads wait by looking
 * again and again. */
#include "program.h"

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 20000, .share_a = 100 * 67.0 / 131, .kind = "pthread" };
static pthread_barrier_t barrier;
static bool spins;
static uint32_t arrived, turn;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static KEEP void meet(void)
{
	uint32_t mine = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);

	if (!spins) {
		(void)pthread_barrier_wait(&barrier);
	} else if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == 2) {
		__atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&turn, mine + 1, __ATOMIC_RELEASE);
	} else {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == mine)
			continue;
	}
}

static void *body_a(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		work_a();
		meet();
		visit();
	}
	return arg;
}

static void *body_b(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		work_b();
		meet();
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	spins = strcmp(p.kind, "spin") == 0;
	if (!spins && strcmp(p.kind, "pthread") != 0)
		program_usage(argv[0]);
	steps_a = program_steps(&p, p.round_us, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / p.share_a, p.speedup_b);
	(void)pthread_barrier_init(&barrier, NULL, 2);
	start_thread(body_a, NULL);
	start_thread(body_b, NULL);
	program_finish(&p, NULL);
}
