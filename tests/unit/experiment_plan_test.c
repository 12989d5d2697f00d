// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/plan.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const double grid[] = {0.25, 0.5, 0.75, 1};
#define N_GRID (sizeof(grid) / sizeof(*grid))
#define DRAWS 30000

static size_t cell(double speedup)
{
	for (size_t i = 0; i < N_GRID; i++)
		if (speedup == grid[i])
			return i + 1;
	assert_true(speedup == 0);
	return 0;
}

/* Four standard deviations of a binomial count: the seeds are fixed, so a failure is a fault or
 * another generator. */
static void assert_share(uint64_t count, double p)
{
	double sd = sqrt(DRAWS * p * (1 - p));

	assert_true(fabs((double)count - DRAWS * p) <= 4 * sd);
}

static void speedups_follow_the_weights(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 5; seed++) {
		uint64_t seen[N_GRID + 1] = {0};
		struct plan_line line = {0};
		struct plan p;

		assert_int_equal(plan_init(&p, seed, -1, 1.0 / 3, grid, N_GRID, 0), 0);
		for (size_t i = 0; i < DRAWS; i++)
			seen[cell(plan_speedup(&p, &line, NULL))]++;
		assert_share(seen[0], 1.0 / 3);
		for (size_t i = 1; i <= N_GRID; i++)
			assert_share(seen[i], 2.0 / 3 / N_GRID);
		plan_free(&p);
	}
}

static void a_deck_holds_every_cell(void **state)
{
	size_t first_is_zero = 0;
	struct plan_line line = {0};
	struct plan p;

	(void)state;
	assert_int_equal(plan_init(&p, 7, -1, 0.5, grid, N_GRID, 0), 0);
	for (size_t deck = 0; deck < 500; deck++) {
		uint64_t seen[N_GRID + 1] = {0};

		for (size_t i = 0; i < 2 * N_GRID; i++) {
			size_t c = cell(plan_speedup(&p, &line, NULL));

			first_is_zero += i == 0 && c == 0;
			seen[c]++;
		}
		assert_int_equal(seen[0], N_GRID);
		for (size_t i = 1; i <= N_GRID; i++)
			assert_int_equal(seen[i], 1);
	}
	/* Shuffled: half of the decks begin with a zero. */
	assert_uint_in_range(first_is_zero, 200, 300);
	plan_free(&p);
}

/* Three lines, one of which is drawn once in ten times: of its speedups, four in a row are from
 * four quarters, and each comes as often as any other.
 */
static void few_experiments_are_spread(void **state)
{
	static const double fine[] = {0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1};
	size_t n_fine = sizeof(fine) / sizeof(*fine), seen[8] = {0}, n = 0;
	struct plan_line lines[3] = {{0}};
	unsigned int quarters = 0;
	struct plan p;

	(void)state;
	assert_int_equal(plan_init(&p, 9, -1, 1.0 / 3, fine, n_fine, 0), 0);
	while (n < 50 * n_fine) {
		uint64_t which = plan_sample(&p, 10);
		double s = plan_speedup(&p, &lines[which < 7 ? 0 : which < 9 ? 1 : 2], NULL);
		size_t card = (size_t)lround(8 * s) - 1;

		if (which < 9 || s == 0)
			continue;
		seen[card]++;
		quarters |= 1U << card / 2;
		if (++n % 4)
			continue;
		assert_int_equal(quarters, 15);
		quarters = 0;
	}
	for (size_t i = 0; i < n_fine; i++)
		assert_int_equal(seen[i], 50);
	plan_free(&p);
}

static void a_seed_repeats_and_another_differs(void **state)
{
	struct plan_line lines[3] = {{0}};
	struct plan a, b, c;
	size_t differ = 0;

	(void)state;
	assert_int_equal(plan_init(&a, 11, -1, 0.4, grid, N_GRID, 0), 0);
	assert_int_equal(plan_init(&b, 11, -1, 0.4, grid, N_GRID, 0), 0);
	assert_int_equal(plan_init(&c, 12, -1, 0.4, grid, N_GRID, 0), 0);
	for (size_t i = 0; i < 200; i++) {
		double s = plan_speedup(&a, &lines[0], NULL);

		/* Draws of lines in between, as many as the program's timing brings, leave the
		 * speedups alone. */
		for (size_t k = 0; k < i % 3; k++)
			(void)plan_sample(&b, 100);
		assert_true(s == plan_speedup(&b, &lines[1], NULL));
		differ += s != plan_speedup(&c, &lines[2], NULL);
	}
	assert_true(differ > 50);
	plan_free(&a);
	plan_free(&b);
	plan_free(&c);
}

static void samples_are_equally_likely(void **state)
{
	uint64_t seen[10] = {0};
	struct plan p;

	(void)state;
	assert_int_equal(plan_init(&p, 3, -1, 0.5, grid, N_GRID, 0), 0);
	for (size_t i = 0; i < DRAWS; i++) {
		uint64_t n = plan_sample(&p, 10);

		assert_true(n < 10);
		seen[n]++;
	}
	for (size_t i = 0; i < 10; i++)
		assert_share(seen[i], 0.1);
	assert_int_equal(plan_sample(&p, 1), 0);
	plan_free(&p);
}

static void fixed_and_degenerate_plans(void **state)
{
	struct plan_line line = {0};
	struct plan p;

	(void)state;
	assert_int_equal(plan_init(&p, 1, 0.35, 0.5, NULL, 0, 0), 0);
	for (size_t i = 0; i < 20; i++)
		assert_true(plan_speedup(&p, &line, NULL) == 0.35);
	plan_free(&p);
	assert_int_equal(plan_init(&p, 1, 0, 0.5, grid, N_GRID, 0), 0);
	for (size_t i = 0; i < 20; i++)
		assert_true(plan_speedup(&p, &line, NULL) == 0);
	plan_free(&p);
	assert_int_equal(plan_init(&p, 1, -1, 1, NULL, 0, 0), 0);
	assert_true(plan_speedup(&p, &line, NULL) == 0);
	plan_free(&p);
	assert_int_equal(plan_init(&p, 1, -1, 0, grid, N_GRID, 0), 0);
	for (size_t i = 0; i < 200; i++)
		assert_true(plan_speedup(&p, &line, NULL) > 0);
	plan_free(&p);
}

static void the_last_ones_slow(void **state)
{
	static const double twice[] = {0.25, 0.5, 0.25, 0.5};
	size_t seen[2][2] = {0};
	struct plan_line line = {0};
	struct plan p;

	(void)state;
	assert_int_equal(plan_init(&p, 5, -1, 0.5, twice, 4, 2), 0);
	for (size_t i = 0; i < 800; i++) {
		bool slows;
		double s = plan_speedup(&p, &line, &slows);

		if (s > 0)
			seen[slows][s == 0.5]++;
		else
			assert_false(slows);
	}
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(seen[i / 2][i % 2], 100);
	plan_free(&p);
}

static uint64_t length_ms(double visits_per_s, double samples_per_s, double elapsed_s)
{
	struct plan_pace pace = {visits_per_s, samples_per_s, (uint64_t)(elapsed_s * 1e9), false};

	return plan_length(50000000, 500000000, &pace) / 1000000;
}

static void plenty_makes_experiments_short(void **state)
{
	(void)state;
	assert_int_equal(length_ms(1000, 1000, 1), 500);
	assert_int_equal(length_ms(4000, 1000, 1), 125); /* 500 visits */
	assert_int_equal(length_ms(1e6, 250, 1), 100);	 /* 25 samples */
	assert_int_equal(length_ms(1e6, 4000, 1), 50);	 /* never shorter */
	assert_int_equal(length_ms(10, 4000, 1), 500);	 /* never longer */
	/* What is not known is not plentiful. */
	assert_int_equal(length_ms(0, 4000, 1), 500);
	assert_int_equal(length_ms(1e6, 0, 1), 500);
	assert_int_equal(length_ms(NAN, 4000, 1), 500);
	/* A long run has enough of them. */
	assert_int_equal(length_ms(1e6, 4000, 10), 100);
	assert_int_equal(length_ms(1e6, 4000, 100), 500);
}

static void in_bursts_they_are_shorter(void **state)
{
	/* 25 visits, however seldom the line is sampled. */
	const struct plan_pace pace = {250, 4000, 0, true}, seldom = {250, 1, 0, true},
			       unknown = {0, 4000, 0, true};

	(void)state;
	assert_int_equal(plan_length(20000000, 500000000, &pace), 100000000);
	assert_int_equal(plan_length(20000000, 500000000, &seldom), 100000000);
	assert_int_equal(plan_length(20000000, 500000000, &unknown), 500000000);
}

static void values_out_of_range_are_refused(void **state)
{
	static const double bad[] = {-1.5, -0.25, 0, 1.01, 25, NAN, INFINITY};
	struct plan p;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(plan_init(&p, 1, -1, 0.5, &bad[i], 1, 0), -EINVAL);
	assert_int_equal(plan_init(&p, 1, -1, 1.5, grid, N_GRID, 0), -EINVAL);
	assert_int_equal(plan_init(&p, 1, -1, NAN, grid, N_GRID, 0), -EINVAL);
	assert_int_equal(plan_init(&p, 1, NAN, 0.5, grid, N_GRID, 0), -EINVAL);
	assert_int_equal(plan_init(&p, 1, 1.5, 0.5, grid, N_GRID, 0), -EINVAL);
	assert_int_equal(plan_init(&p, 1, -1, 0.5, NULL, 0, 0), -EINVAL);
	assert_int_equal(plan_init(&p, 1, -1, 0.5, grid, N_GRID, N_GRID + 1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speedups_follow_the_weights),
		cmocka_unit_test(a_deck_holds_every_cell),
		cmocka_unit_test(few_experiments_are_spread),
		cmocka_unit_test(a_seed_repeats_and_another_differs),
		cmocka_unit_test(samples_are_equally_likely),
		cmocka_unit_test(fixed_and_degenerate_plans),
		cmocka_unit_test(the_last_ones_slow),
		cmocka_unit_test(plenty_makes_experiments_short),
		cmocka_unit_test(in_bursts_they_are_shorter),
		cmocka_unit_test(values_out_of_range_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
