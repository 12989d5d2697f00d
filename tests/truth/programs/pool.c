// SPDX-License-Identifier: BSD-2-Clause
/* --threads like threads share --window permits of a semaphore: with a permit work a and then, as long as --asleep says, an answer from
 * outside of the program (the connection of a pool, say); after it work b. a and b together are a round, --share-a of it a. What is most
 * asked for sets the pace: the permits, each taken for a + asleep, or the CPUs, which a + b keeps busy, or the threads themselves, each
 * back after a + asleep + b. The time between visits is max((a + asleep) / permits, (a + b) / CPUs, (a + asleep + b) / threads). */
#include "program.h"

#include <semaphore.h>

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 70, .threads = 4, .window = 2 };
static sem_t permits;

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
		while (sem_wait(&permits) < 0)
			continue;
		work_a();
		if (p.asleep_us > 0)
			sleep_seconds(p.asleep_us / 1e6);
		(void)sem_post(&permits);
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
	if (sem_init(&permits, 0, (unsigned int)p.window) < 0) {
		perror("sem_init");
		return 2;
	}
	for (long i = 0; i < p.threads; i++)
		start_thread(body, (void *)(intptr_t)i);
	program_finish(&p, NULL);
}
