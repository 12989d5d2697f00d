// SPDX-License-Identifier: BSD-2-Clause
/* From measured gaps to the costs that the ledger adds: lines that are known, with what a shared
 * machine puts between them. */
#include "kernel/calibration/fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define POINTS 600

/* Deterministic, from -@span to @span. */
static int64_t noise(unsigned int *state, int64_t span)
{
	*state = *state * 1664525u + 1013904223u;
	return (int64_t)(*state >> 8) % (2 * span + 1) - span;
}

static void a_line_with_noise(void **state)
{
	static struct unseen_point p[POINTS];
	struct abi_unseen l;
	unsigned int seed = 1;

	(void)state;
	for (size_t i = 0; i < POINTS; i++) {
		p[i].beside = 7000 + noise(&seed, 3000);
		p[i].ns = 12000 + 5 * (p[i].beside - 7000) / 2 + noise(&seed, 1500);
		/* One in twenty had another interrupt in between, or the host away. */
		if (i % 20 == 0)
			p[i].ns += i % 40 ? 150000 : 400000;
	}
	l = fit_unseen(p, POINTS);
	assert_uint_in_range(l.slope_q8, 256 * 24 / 10, 256 * 26 / 10);
	assert_uint_in_range(l.ns + l.slope_q8 * (7000 - l.beside_ns) / 256, 11800, 12200);
	assert_uint_in_range(fit_distance(p, POINTS, &l) + 200, 0, 400);
	for (size_t i = 0; i < POINTS; i++)
		p[i].ns += 4000;
	assert_uint_in_range(fit_distance(p, POINTS, &l), 3800, 4200);
}

static void nothing_beside_it(void **state)
{
	static struct unseen_point p[POINTS];
	struct abi_unseen l;
	unsigned int seed = 2;

	(void)state;
	for (size_t i = 0; i < POINTS; i++)
		p[i] = (struct unseen_point){0, 8000 + noise(&seed, 900)};
	l = fit_unseen(p, POINTS);
	assert_int_equal(l.slope_q8, 0);
	assert_int_equal(l.beside_ns, 0);
	assert_uint_in_range(l.ns, 7900, 8100);
	/* Hardly anything: what it seems to tell is chance. */
	for (size_t i = 0; i < POINTS; i++)
		p[i].beside = 3000 + noise(&seed, 50);
	assert_int_equal(fit_unseen(p, POINTS).slope_q8, 0);
}

static void what_cannot_be(void **state)
{
	static struct unseen_point p[POINTS];
	struct abi_unseen l;

	(void)state;
	l = fit_unseen(p, 0);
	assert_true(l.ns == 0 && l.beside_ns == 0 && l.slope_q8 == 0);
	assert_int_equal(fit_distance(p, 0, &l), 0);
	/* Less than nothing is nothing; what falls, or rises like a wall, has no slope or the
	 * steepest. */
	for (int i = 0; i < POINTS; i++)
		p[i] = (struct unseen_point){5000 + i, -3000 - i};
	l = fit_unseen(p, POINTS);
	assert_true(l.ns == 0 && l.slope_q8 == 0);
	for (int i = 0; i < POINTS; i++)
		p[i] = (struct unseen_point){5000 + i, 1000 + 20 * i};
	assert_int_equal(fit_unseen(p, POINTS).slope_q8, 4 * 256);
}

static void means(void **state)
{
	int64_t v[] = {10, 12, 1000000, 11, 9, 21, 49};

	(void)state;
	assert_int_equal(fit_mean(v, 0), 0);
	assert_int_equal(fit_mean(v, 7),
			 (9 + 10 + 11 + 12 + 21) / 5); /* four times the median is 48 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_with_noise),
		cmocka_unit_test(nothing_beside_it),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
