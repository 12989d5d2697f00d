// SPDX-License-Identifier: BSD-2-Clause
/* A line gains no more than its share of the time allows, and does not help and hurt at once. */
#include "analysis/analysis.h"
#include "analysis_sample.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#define MS 1000000.0
#define LENGTH_MS 500.0
#define PERIOD_NS 1000000

/* Experiments of one line, in turn at each speedup of a quarter. @gain: what is measured of the
 * time per visit at each, less chance's @noise. @share: of the time, by its samples; 0: not told.
 */
static void try_line(struct profile *p, const char *line, const double gain[4], double noise,
		     double share, size_t n)
{
	struct rng r;

	rng_seed(&r, 4);
	for (size_t i = 0; i < n; i++) {
		double is = i % 2 ? (double)(1 + i / 2 % 4) / 4 : 0;
		double effect = is > 0 ? gain[i / 2 % 4] : 0;
		double rate = 1 + noise * (2 * rng_unit(&r) - 1);
		struct profile_run_experiment *x =
			sample_visits(p, line, is, (uint64_t)(LENGTH_MS * MS),
				      (uint64_t)(5000 * rate / (1 - effect)));

		x->x.period_ns = PERIOD_NS;
		x->x.selected_ns = (uint64_t)(share * LENGTH_MS * MS);
	}
}

static struct analysis_change at(const struct analysis *a, const char *line, size_t k)
{
	return analysis_shown(sample_line(a, line), k);
}

static void a_small_line_has_a_small_effect(void **state)
{
	static const double none[4];
	struct profile p = {0};
	struct analysis a;

	(void)state;
	try_line(&p, "a.c:1", none, 0.3, 0.004, 48);
	try_line(&p, "a.c:2", none, 0.3, 0, 48);
	analyse(&p, 1, &a);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct analysis_change c = at(&a, "a.c:1", k);

		assert_true(c.low >= -0.016 && c.high <= 0.016);
		assert_true(c.effect >= c.low && c.effect <= c.high);
	}
	assert_int_equal(sample_line(&a, "a.c:1")->verdict, VERDICT_NO_EFFECT);
	/* The same experiments, of a line whose samples nobody counted. */
	assert_true(at(&a, "a.c:2", 3).high > 0.05);
	assert_int_equal(sample_line(&a, "a.c:2")->verdict, VERDICT_UNDECIDED);
	analysis_free(&a);
	profile_free(&p);
}

/* 86 % of one thread's time; at 100 % they measured 94, with much scatter. */
static void no_line_gains_more_than_its_time(void **state)
{
	static const double gain[4] = {0.23, 0.45, 0.68, 0.94};
	struct profile p = {0};
	struct analysis a;
	struct analysis_change c;

	(void)state;
	try_line(&p, "a.c:1", gain, 0.8, 0.858, 24);
	try_line(&p, "a.c:2", gain, 0.8, 0, 24);
	analyse(&p, 1, &a);
	c = at(&a, "a.c:1", 3);
	assert_true(c.low < 0.86 && c.high < 0.92 && c.effect <= c.high);
	assert_true(at(&a, "a.c:2", 3).high > 0.95);
	analysis_free(&a);
	profile_free(&p);
}

/* More than the line's own time can hang on it: who waits for a lock wakes late. */
static void what_is_surely_beyond_stays(void **state)
{
	static const double gain[4] = {0.1, 0.2, 0.3, 0.4}, loss[4] = {-0.1, -0.2, -0.3, -0.4};
	struct profile p = {0};
	struct analysis a;

	(void)state;
	try_line(&p, "a.c:1", gain, 0.01, 0.01, 48);
	try_line(&p, "a.c:2", loss, 0.01, 0.01, 48);
	analyse(&p, 1, &a);
	assert_true(at(&a, "a.c:1", 3).effect > 0.35);
	assert_int_equal(sample_line(&a, "a.c:1")->verdict, VERDICT_HELPS);
	assert_true(at(&a, "a.c:2", 3).effect < -0.35);
	assert_int_equal(sample_line(&a, "a.c:2")->verdict, VERDICT_HURTS);
	analysis_free(&a);
	profile_free(&p);
}

static void nothing_helps_and_hurts(void **state)
{
	static const double both[4] = {-0.2, 0.2, 0.3, 0.4};
	struct profile p = {0};
	struct analysis a;
	bool helps = false, hurts = false;

	(void)state;
	try_line(&p, "a.c:1", both, 0.01, 0, 80);
	analyse(&p, 1, &a);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		helps |= at(&a, "a.c:1", k).low > 0;
		hurts |= at(&a, "a.c:1", k).high < 0;
	}
	assert_true(helps && hurts);
	assert_int_equal(sample_line(&a, "a.c:1")->verdict, VERDICT_UNDECIDED);
	analysis_free(&a);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_line_has_a_small_effect),
		cmocka_unit_test(no_line_gains_more_than_its_time),
		cmocka_unit_test(what_is_surely_beyond_stays),
		cmocka_unit_test(nothing_helps_and_hurts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
