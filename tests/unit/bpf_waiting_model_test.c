// SPDX-License-Identifier: BSD-2-Clause
/* A wait as the target, in the model of threads that share CPUs: a thread that was woken from
 * outside earns a part of what it waited. Predictions for shorter waits against waits that are
 * really shorter. The tracing programs do not have this rule yet (CONTRIBUTING.md says what it
 * would touch). Built plain: it simulates for long, and with sanitizers takes five times as long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define HELD_GIVES_WAY true
#include "bpf_crowd_model.h"

#include <stdio.h>

static const struct step fetch[] = {{TAKE, 1}, {AWAY, 800}, {OTHER, 400}, {GIVE, 0}, {AGAIN, 0}};
static const struct step wait_8ms[] = {{AWAY, 8000}, {OTHER, 2000}, {VISIT, 0}, {AGAIN, 0}};

#define CONSUME(us)                                                        \
	{                                                                  \
		{TAKE, 0}, {GIVE, 1}, {OTHER, us}, {VISIT, 0}, {AGAIN, 0}, \
	}
#define COMPUTE                                        \
	{                                              \
		{OTHER, 1000}, {VISIT, 1}, {AGAIN, 0}, \
	}

static const struct program programs[] = {
	/* With a queue of eight between them, a fetcher and its consumer: the faster one, and the
	   slower one. */
	{.name = "fetched, then computed",
	 .threads = 2,
	 .bound = 1,
	 .steps = CONSUME(960),
	 .first = fetch,
	 .room = 8},
	{.name = "fetched beside computing",
	 .threads = 2,
	 .bound = 1,
	 .steps = CONSUME(1600),
	 .first = fetch,
	 .room = 8},
	{.name = "one waits",
	 .threads = 1,
	 .bound = 1,
	 .steps = {{AWAY, 5000}, {OTHER, 2000}, {VISIT, 0}, {AGAIN, 0}}},
	{.name = "eight wait",
	 .threads = 8,
	 .bound = 3.5,
	 .steps = {{AWAY, 5000}, {OTHER, 500}, {VISIT, 0}, {AGAIN, 0}}},
	{.name = "eight wait, no CPU is free",
	 .threads = 8,
	 .bound = 1.5,
	 .steps = {{AWAY, 1000}, {OTHER, 4500}, {VISIT, 0}, {AGAIN, 0}}},
	{.name = "waits with a lock",
	 .threads = 4,
	 .permits = 1,
	 .bound = 1.5,
	 .steps = {{TAKE, 0}, {AWAY, 3000}, {GIVE, 0}, {OTHER, 500}, {VISIT, 0}, {AGAIN, 0}}},
	{.name = "waits with a permit, of many",
	 .threads = 8,
	 .permits = 3,
	 .bound = 1.5,
	 .steps = {{TAKE, 0},
		   {OTHER, 500},
		   {AWAY, 1000},
		   {GIVE, 0},
		   {OTHER, 4500},
		   {VISIT, 0},
		   {AGAIN, 0}}},
	{.name = "waits with a permit, of few",
	 .threads = 4,
	 .permits = 2,
	 .bound = 2.5,
	 .steps = {{TAKE, 0},
		   {AWAY, 9000},
		   {OTHER, 3000},
		   {GIVE, 0},
		   {OTHER, 300},
		   {VISIT, 0},
		   {AGAIN, 0}}},
	/* On one CPU, a thread that waits and one that always computes, as a progress point of
	   either sees it. */
	{.name = "preempts",
	 .threads = 2,
	 .bound = 1.5,
	 .steps = COMPUTE,
	 .first = wait_8ms,
	 .cpus = 1},
	{.name = "is preempted",
	 .threads = 2,
	 .bound = 3.5,
	 .steps = COMPUTE,
	 .first = wait_8ms,
	 .cpus = 1,
	 .point = 1},
};

#define N_PROGRAMS (sizeof(programs) / sizeof(programs[0]))

/* In percent. */
static double really(const struct program *p, double shorter)
{
	return 100 * (1 - period_at(p, 0, shorter, 4000000 * US, NOTHING) /
				  period_at(p, 0, 0, 4000000 * US, NOTHING));
}

static void predictions_come_true(void **state)
{
	static const double speedups[] = {0.25, 0.5, 0.75};
	const char *wrong = NULL;

	(void)state;
	for (size_t i = 0; i < N_PROGRAMS; i++) {
		const struct program *p = &programs[i];

		printf("%-28s", p->name);
		for (size_t k = 0; k < sizeof(speedups) / sizeof(speedups[0]); k++) {
			double seen = effect(p, speedups[k], NOTHING),
			       truth = really(p, speedups[k]);

			printf("  %2.0f %%: %5.1f (%5.1f)", 100 * speedups[k], seen, truth);
			if (fabs(seen - truth) > p->bound)
				wrong = p->name;
		}
		printf("\n");
	}
	if (wrong)
		fail_msg("%s is off by more than its bound", wrong);
}

/* R4 must not hold between a thread that has just earned by waiting and the one that it preempts.
 * The other leaves the CPU with a debt, that of the wait; its clock would take away what was
 * earned, and the time behind the one that preempted it would be credited as waited for. */
static void preempting_is_no_wait(void **state)
{
	(void)state;
	for (size_t i = N_PROGRAMS - 2; i < N_PROGRAMS; i++) {
		double seen = effect(&programs[i], 0.5, CAME_BY), truth = really(&programs[i], 0.5);

		printf("%-28s  50 %%: %5.1f (%5.1f) by R4 as it is\n", programs[i].name, seen,
		       truth);
		assert_true(fabs(seen - truth) > 10);
	}
}

/* Of T threads on two CPUs that always work each waits 1 - 2/T of the time for one. */
static void more_cpus(void **state)
{
	static const double speedups[] = {0.25, 0.5, 0.75, 1};

	(void)state;
	for (int threads = 3; threads <= 8; threads++) {
		const struct program p = {.name = "a CPU each",
					  .threads = threads,
					  .for_cpu = true,
					  .steps = {{OTHER, 1700}, {VISIT, 0}, {AGAIN, 0}}};

		printf("%-20s %d", p.name, threads);
		for (size_t k = 0; k < sizeof(speedups) / sizeof(speedups[0]); k++) {
			double truth = 100 * speedups[k] * (1 - 2.0 / threads),
			       seen = effect(&p, speedups[k], NOTHING);

			printf("  %3.0f %%: %5.1f (%4.1f; %5.1f if what is held earns)",
			       100 * speedups[k], seen, truth, effect(&p, speedups[k], HELD_EARNS));
			if (fabs(seen - truth) > 2.5)
				fail_msg("%d threads: %.1f at %.0f %%, not %.1f", threads, seen,
					 100 * speedups[k], truth);
		}
		printf("\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_cpus),
		cmocka_unit_test(predictions_come_true),
		cmocka_unit_test(preempting_is_no_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
