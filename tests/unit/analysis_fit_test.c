// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/fit.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#define N 40

static void near(double value, double expected, double by)
{
	if (!(fabs(value - expected) <= by))
		fail_msg("%.6g is not %.6g", value, expected);
}

/* N points at 5, 10, .. 100 %, twice each, with the effect @curve and noise of standard deviation
 * @noise. */
static void make(struct fit_point *p, double (*curve)(double), double noise, uint64_t seed)
{
	struct rng rng;

	rng_seed(&rng, seed);
	for (size_t i = 0; i < N; i++) {
		double sum = -6;

		for (int k = 0; k < 12; k++) /* nearly normal */
			sum += rng_unit(&rng);
		p[i].speedup = 0.05 * (double)(i % 20 + 1);
		p[i].effect = curve(p[i].speedup) + noise * sum;
		p[i].weight = 100;
	}
}

static double straight(double s)
{
	return 0.5 * s;
}

static double knee(double s)
{
	return s < 0.4 ? s : 0.4;
}

static double early_knee(double s)
{
	return s < 0.045 ? s : 0.045;
}

static double bend(double s)
{
	return s < 0.57 ? s : 0.57 + 0.5 * (s - 0.57);
}

static double falling(double s)
{
	return -0.3 * s;
}

static double none(double s)
{
	(void)s;
	return 0;
}

static void exact_points_are_found_exactly(void **state)
{
	struct fit_point p[N];
	struct fit f;

	(void)state;
	make(p, straight, 0, 1);
	f = fit_curve(p, N, true);
	assert_true(isnan(f.knee));
	near(f.slope, 0.5, 1e-9);
	near(fit_at(&f, 0.3), 0.15, 1e-9);
	make(p, knee, 0, 1);
	f = fit_curve(p, N, true);
	near(f.knee, 0.4, 1e-9);
	near(f.slope, 1, 1e-6);
	near(f.after, 0, 1e-6);
	near(fit_at(&f, 0.2), 0.2, 1e-6);
	near(fit_at(&f, 0.9), 0.4, 1e-6);
	make(p, falling, 0, 1);
	f = fit_curve(p, N, true);
	near(fit_at(&f, 1), -0.3, 1e-9);
}

/* With 3 % of noise an experiment, over 50 draws of it. */
static void noisy_curves_come_out(void **state)
{
	static const struct {
		double (*curve)(double);
		double knee, knee_by; /* of the median; NaN: none in most */
	} cases[] = {{straight, NAN, 0}, {knee, 0.4, 0.05}, {bend, 0.57, 0.1},
		     {falling, NAN, 0},	 {none, NAN, 0},    {early_knee, 0.05, 0.1}};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		double sum_error = 0, sum_knee = 0;
		size_t knees = 0;

		for (uint64_t seed = 1; seed <= 50; seed++) {
			struct fit_point p[N];
			struct fit f;

			make(p, cases[c].curve, 0.03, seed);
			f = fit_curve(p, N, true);
			for (int q = 1; q <= 4; q++)
				sum_error +=
					fabs(fit_at(&f, 0.25 * q) - cases[c].curve(0.25 * q)) / 4;
			if (!isnan(f.knee)) {
				knees++;
				sum_knee += f.knee;
			}
		}
		if (sum_error / 50 > 0.012)
			fail_msg("case %zu: mean error %.4f", c, sum_error / 50);
		if (isnan(cases[c].knee)) {
			if (knees > 20)
				fail_msg("case %zu: %zu knees of 50", c, knees);
		} else if (cases[c].curve != early_knee) {
			if (knees < 45)
				fail_msg("case %zu: %zu knees of 50", c, knees);
			near(sum_knee / (double)knees, cases[c].knee, cases[c].knee_by);
		}
	}
}

static void one_disturbed_experiment_does_not_bend_it(void **state)
{
	struct fit_point p[N];
	struct fit f;

	(void)state;
	make(p, straight, 0.01, 7);
	p[19].effect = -2; /* at 100 %, where it has the longest lever */
	f = fit_curve(p, N, true);
	near(fit_at(&f, 1), 0.5, 0.03);
}

static void few_points_are_taken_as_they_are(void **state)
{
	struct fit_point p[] = {{0.5, 0.2, 1}, {0.5, 0.3, 3}};
	struct fit f;

	(void)state;
	assert_true(isnan(fit_curve(p, 0, true).slope));
	f = fit_curve(p, 2, true);
	near(fit_at(&f, 0.5), 0.275, 1e-9);
	assert_true(isnan(f.knee));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_points_are_found_exactly),
		cmocka_unit_test(noisy_curves_come_out),
		cmocka_unit_test(one_disturbed_experiment_does_not_bend_it),
		cmocka_unit_test(few_points_are_taken_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
