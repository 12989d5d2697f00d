// SPDX-License-Identifier: BSD-2-Clause
/* What `validate` concludes, on runs whose truth is known. */
#include "analysis/validation.h"
#include "analysis_sample.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

/* The effect on the time per visit of a line that is @s faster; below 0: slower. */
typedef double (*program)(double s);

static double in_turn(double s)
{
	return 0.6 * s;
}

/* The slowed line does half of what it should: a method that overrates the line. */
static double overrated(double s)
{
	return s > 0 ? 0.6 * s : 0.3 * s;
}

/* Side by side with an equal: only slower makes a difference. */
static double level(double s)
{
	return s > 0 ? 0 : s;
}

/* It starts to matter when it is 25 % slower. */
static double bent(double s)
{
	return s > -0.25 ? 0.1 * s : -0.025 + 0.9 * (s + 0.25);
}

static double knee(double s)
{
	return s < 0.3 ? 0.9 * s : 0.27;
}

static double none(double s)
{
	(void)s;
	return 0;
}

static struct validation play_sampled(program effect, size_t decks, double noise, uint64_t seed,
				      uint64_t samples)
{
	static const double speedups[] = {0,   0.1,  0,	  0.2, -0.25, 0.3, 0,
					  0.4, -0.5, 0.5, 0,   -0.25, -0.5};
	struct profile p = {0};
	struct validation v;
	struct rng r;

	rng_seed(&r, seed);
	for (size_t i = 0; i < decks * 13; i++) {
		double s = speedups[i % 13],
		       period = 5e6 * (1 - effect(s)) * (1 + noise * 3.4 * (rng_unit(&r) - 0.5));
		uint64_t visits = (uint64_t)(500e6 / period);

		struct profile_run_experiment *x =
			sample_visits(&p, s < 0 ? VALIDATION_SLOWED : "a.c:1", fabs(s),
				      (uint64_t)(period * (double)visits), visits);

		x->x.elapsed = 500000000;
		x->x.selected_samples = samples;
	}
	v = validation_make(&p, seed);
	profile_free(&p);
	return v;
}

static struct validation play(program effect, size_t decks, double noise, uint64_t seed)
{
	return play_sampled(effect, decks, noise, seed, 100);
}

static void near(double value, double expected, double bound)
{
	if (!(fabs(value - expected) <= bound))
		fail_msg("%g is not within %g of %g", value, bound, expected);
}

static void what_is_true_agrees(void **state)
{
	struct validation v = play(in_turn, 9, 0.01, 1);

	(void)state;
	assert_int_equal(v.outcome, VALIDATION_AGREES);
	assert_int_equal(v.n_levels, 2);
	near(v.levels[0].slowed, 0.25, 1e-9);
	near(v.levels[0].measured, -0.15, 0.02);
	near(v.levels[0].predicted, -0.15, 0.02);
	near(v.levels[1].slowed, 0.5, 1e-9);
	near(v.levels[1].measured, -0.3, 0.02);
	near(v.levels[1].predicted, -0.3, 0.03);
	near(v.levels[1].gap, v.levels[1].measured - v.levels[1].predicted, 1e-12);
	assert_true(v.levels[1].gap_half >= v.levels[1].measured_half &&
		    v.levels[1].gap_half >= v.levels[1].predicted_half);
	/* The slope before a knee is what goes on below 0. */
	assert_int_equal(play(knee, 9, 0.01, 2).outcome, VALIDATION_AGREES);
	assert_int_equal(play(none, 9, 0.01, 3).outcome, VALIDATION_AGREES);
	assert_int_equal(play_sampled(none, 9, 0.01, 3, 0).outcome, VALIDATION_NOT_COMPARABLE);
}

static void what_is_false_is_a_gap(void **state)
{
	struct validation v = play(overrated, 9, 0.01, 4);

	(void)state;
	assert_int_equal(v.outcome, VALIDATION_GAP);
	near(v.levels[1].gap, 0.15, 0.03);
}

static void bends_below_zero_are_no_gap(void **state)
{
	(void)state;
	assert_int_equal(play(level, 9, 0.01, 5).outcome, VALIDATION_NOT_COMPARABLE);
	assert_int_equal(play(bent, 9, 0.01, 6).outcome, VALIDATION_NOT_COMPARABLE);
}

static void noise_decides_nothing(void **state)
{
	struct validation v = play(in_turn, 4, 0.15, 7);
	struct profile empty = {0};
	size_t gaps = 0;

	(void)state;
	assert_int_equal(v.outcome, VALIDATION_UNDECIDED);
	assert_true(v.missing_s > 0);
	for (uint64_t seed = 300; seed < 320; seed++)
		gaps += play(in_turn, 1, 0.01, seed).outcome == VALIDATION_GAP;
	assert_uint_in_range(gaps, 0,
			     3); /* an interval may be wrong once in twenty; here are two */
	v = validation_make(&empty, 1);
	assert_int_equal(v.outcome, VALIDATION_UNDECIDED);
	assert_true(v.n_levels == 0 && isnan(v.missing_s));
}

/* How often it is right. */
static void mostly_right(void **state)
{
	size_t agrees = 0, gaps = 0;

	(void)state;
	for (uint64_t seed = 100; seed < 120; seed++) {
		agrees += play(in_turn, 9, 0.015, seed).outcome == VALIDATION_AGREES;
		gaps += play(overrated, 9, 0.015, seed).outcome == VALIDATION_GAP;
	}
	assert_uint_in_range(agrees, 18, 20);
	assert_uint_in_range(gaps, 19, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_true_agrees),
		cmocka_unit_test(what_is_false_is_a_gap),
		cmocka_unit_test(bends_below_zero_are_no_gap),
		cmocka_unit_test(noise_decides_nothing),
		cmocka_unit_test(mostly_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
