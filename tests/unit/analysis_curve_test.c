// SPDX-License-Identifier: BSD-2-Clause
/* Fitted curves of lines, by arithmetic: one with a knee, one straight, one without effect, and
 * what few experiments allow. */
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

static double knee(double s)
{
	return s < 0.4 ? s : 0.4;
}

static double straight(double s)
{
	return 0.3 * s;
}

static double none(double s)
{
	(void)s;
	return 0;
}

/* As a run with default options makes them: a third at 0 %, the others anywhere on the grid. */
static void add_line(struct profile *p, const char *name, double (*effect)(double),
		     size_t experiments, double noise, struct rng *rng)
{
	for (size_t i = 0; i < experiments; i++) {
		double s = i % 3 == 0 ? 0 : 0.05 * (double)(1 + rng_below(rng, 20));
		double period =
			2 * MS * (1 - effect(s)) * (1 + noise * 3.4 * (rng_unit(rng) - 0.5));
		uint64_t visits = (uint64_t)(500 * MS / period);

		sample_visits(p, name, s, (uint64_t)(period * (double)visits), visits);
	}
}

/* How often the truth lies within the interval, and how wide that is, over many runs of 60 s with
 * two lines. */
static void intervals_cover(void **state)
{
	size_t covered = 0, cells = 0, knees = 0;
	double width = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct profile p = {0};
		struct analysis a;
		struct rng rng;

		rng_seed(&rng, seed);
		add_line(&p, "a.c:1", knee, 60, 0.02, &rng);
		add_line(&p, "b.c:1", none, 60, 0.02, &rng);
		analyse(&p, seed, &a);
		for (size_t l = 0; l < 2; l++) {
			const struct analysis_line *line = sample_line(&a, l ? "b.c:1" : "a.c:1");

			for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
				double truth = (l ? none : knee)(analysis_curve_speedups[k]);

				assert_true(isfinite(line->curve.at[k].low));
				covered += line->curve.at[k].low <= truth &&
					   truth <= line->curve.at[k].high;
				width += line->curve.at[k].high - line->curve.at[k].low;
				cells++;
			}
			if (l == 0 && fabs(line->curve.knee - 0.4) <= 0.1)
				knees++;
		}
		analysis_free(&a);
		profile_free(&p);
	}
	if (covered * 100 < cells * 90)
		fail_msg("the truth lies within %zu of %zu intervals", covered, cells);
	if (width / (double)cells / 2 > 0.02)
		fail_msg("half-width %.4f", width / (double)cells / 2);
	if (knees < 36)
		fail_msg("the knee was found in %zu of 40 runs", knees);
}

static void a_straight_line_has_no_knee(void **state)
{
	struct profile p = {0};
	struct analysis a;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	add_line(&p, "a.c:1", straight, 60, 0.02, &rng);
	analyse(&p, 1, &a);
	assert_true(isnan(sample_line(&a, "a.c:1")->curve.knee));
	assert_true(fabs(sample_line(&a, "a.c:1")->curve.at[1].effect - 0.15) < 0.02);
	analysis_free(&a);
	profile_free(&p);
}

static void experiments_without_visits_count(void **state)
{
	struct profile p = {0};
	struct analysis a;
	const struct analysis_line *line;

	(void)state;
	/* At 50 %, one of three experiments saw nobody: three periods of 200 ms in 600 ms, as at 0
	 * %. Dropping it would make 25 % of it. */
	for (int i = 0; i < 6; i++)
		sample_visits(&p, "a.c:1", 0, 400000000, 2);
	for (int s = 25; s <= 100; s += 25)
		for (int i = 0; i < 3; i++)
			sample_visits(&p, "a.c:1", s / 100.0, i == 0 ? 200000000 : 300000000,
				      i == 0 ? 0 : 2);
	analyse(&p, 1, &a);
	line = sample_line(&a, "a.c:1");
	assert_true(fabs(line->curve.at[1].effect) < 1e-6);
	analysis_free(&a);
	profile_free(&p);
}

static void too_few_say_nothing(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	sample_visits(&p, "a.c:1", 0, 500000000, 100);
	sample_visits(&p, "a.c:1", 0.5, 500000000, 120);
	analyse(&p, 1, &a);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		assert_true(isnan(sample_line(&a, "a.c:1")->curve.at[k].effect));
	analysis_free(&a);
	profile_free(&p);
}

/* By chance a line had no experiment in the last quarter, which others had: the curve says what is
 * shown there, less surely. */
static void a_quarter_without_experiments(void **state)
{
	struct profile p = {0};
	struct analysis a;
	struct analysis_change near, far;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int i = 0; i < 30; i++) {
		double s = 0.05 * (double)rng_below(&rng, 13),
		       period = 2 * MS * (1 - 0.4 * s) * (1 + 0.03 * (rng_unit(&rng) - 0.5));

		sample_visits(&p, "a.c:1", s, (uint64_t)(250 * period), 250);
		sample_visits(&p, "b.c:1", 0.05 * (double)rng_below(&rng, 21), (uint64_t)(500 * MS),
			      250);
	}
	analyse(&p, 1, &a);
	near = analysis_shown(sample_line(&a, "a.c:1"), 1);
	far = analysis_shown(sample_line(&a, "a.c:1"), 3);
	assert_true(near.low <= 0.2 && 0.2 <= near.high);
	assert_true(far.low <= 0.4 && 0.4 <= far.high);
	/* A knee right behind the last experiment, at 60 %, would leave it at 24. */
	assert_true(far.low <= 0.245);
	assert_true(far.high - far.low > near.high - near.low);
	analysis_free(&a);
	/* Where no line was tried there, nothing is shown. */
	for (size_t i = 0; i < p.n_experiments; i++)
		if (p.experiments[i].x.speedup > 0.65)
			p.experiments[i].x.speedup = 0.1;
	analyse(&p, 1, &a);
	assert_true(isnan(analysis_shown(sample_line(&a, "a.c:1"), 3).effect));
	analysis_free(&a);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_cover),
		cmocka_unit_test(a_straight_line_has_no_knee),
		cmocka_unit_test(experiments_without_visits_count),
		cmocka_unit_test(too_few_say_nothing),
		cmocka_unit_test(a_quarter_without_experiments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
