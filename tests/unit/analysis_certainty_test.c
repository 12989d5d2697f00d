// SPDX-License-Identifier: BSD-2-Clause
/* When a run may end, and how long it still takes: against lines whose intervals are set here, and
 * against synthetic runs. Built plain: it simulates for long, and with sanitizers takes five times
 * as long. */
#include "analysis/certainty.h"
#include "analysis/fidelity.h"
#include "analysis_sample.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static struct analysis_line line(const char *name, double share, double half, double allowed_share)
{
	struct analysis_line l = {.selected = name,
				  .share = share,
				  .experiments = 30,
				  .slope = {NAN, NAN, NAN},
				  .allow = {.share = allowed_share, .presence = {1, 1, 0}}};

	l.curve.at[1].effect = 0.2;
	l.curve.at[1].low = 0.2 - half;
	l.curve.at[1].high = 0.2 + half;
	return l;
}

static struct certainty ask(struct analysis_line *lines, size_t n, double half)
{
	struct analysis_point point = {.name = "p", .visits = 100, .lines = lines, .n_lines = n};
	struct analysis a = {.points = &point, .n_points = 1};

	return certainty_of(&a, half, 10);
}

/* Slopes are shown where there are some; and what is shown outlives the analysis, of a long name
 * the end. */
static void names_are_kept(void **state)
{
	char name[CERTAINTY_NAME + 10];
	struct analysis_line l = line(name, 0.5, 0.01, NAN);
	struct certainty c;

	(void)state;
	memset(name, 'x', sizeof(name));
	memcpy(name + sizeof(name) - 6, "a.c:1", 6);
	l.slope = (struct analysis_change){0.3, 0.2, 0.4};
	c = ask(&l, 1, 0.02);
	memset(name, 'y', sizeof(name));
	assert_int_equal(c.n_top, 1);
	assert_true(c.slopes && c.top[0].effect == 0.3 && c.top[0].low == 0.2);
	assert_int_equal(strlen(c.top[0].selected), CERTAINTY_NAME - 1);
	assert_string_equal(c.top[0].selected + CERTAINTY_NAME - 7, "xa.c:1");
}

/* Of a point that has slopes alone these count: 4 % of a slope of 0.5 is the method's own, which no
 * more time takes away. */
static void slopes_are_certain(void **state)
{
	struct analysis_line l = line("a.c:1", 0.5, NAN, NAN);
	struct certainty c;

	(void)state;
	l.experiments = 0;
	l.slope = (struct analysis_change){0.5, 0.4, 0.6};
	c = ask(&l, 1, 0.05);
	assert_false(c.reached);
	assert_true(c.missing_s > 20 && c.missing_s < 60);
	l.slope = analysis_around(0.5, 0.05);
	c = ask(&l, 1, 0.05);
	assert_true(c.reached && !c.at_floor);
	l.slope = analysis_around(0.5, 0.023);
	c = ask(&l, 1, 0.01);
	assert_true(c.reached && c.at_floor);
	/* One window has no interval. */
	l.slope = (struct analysis_change){0.5, NAN, NAN};
	assert_false(ask(&l, 1, 0.05).reached);
	/* A line that nobody is in need not be known. */
	l.share = 0.01;
	assert_false(ask(&l, 1, 0.05).reached);
}

/* Of a latency point that no experiment was made for. */
static void slow_intervals_are_shown(void **state)
{
	struct analysis_line l = line("a.c:1", NAN, NAN, NAN);
	struct analysis_point point = {
		.name = "p", .visits = 100, .lines = &l, .n_lines = 1, .classes[0].n = 5};
	struct analysis a = {.points = &point, .n_points = 1};
	struct certainty c;

	(void)state;
	l.experiments = 0;
	l.slope = l.in_class[0] = (struct analysis_change){NAN, NAN, NAN};
	l.in_class[PROFILE_CLASSES - 1] = (struct analysis_change){0.7, 0.6, 0.8};
	c = certainty_of(&a, 0, 10);
	assert_int_equal(c.n_top, 1);
	assert_true(c.shares && !c.slopes && c.top[0].effect == 0.7 && c.top[0].high == 0.8);
}

static void the_widest_of_the_top_counts(void **state)
{
	struct analysis_line l[] = {line("a", 0.5, 0.01, NAN), line("rare", 0.01, 0.5, NAN),
				    line("b", 0.2, 0.04, NAN), line("c", 0.1, 0.02, NAN),
				    line("fourth", 0.1, 0.3, NAN)};
	struct certainty c = ask(l, 5, 0.02);

	(void)state;
	assert_false(c.reached);
	/* Half as wide takes four times as long. */
	assert_true(fabs(c.missing_s - 30) < 1e-9);
	assert_int_equal(c.n_top, 5);
	assert_string_equal(c.top[0].selected, "a");
	assert_true(fabs(c.top[0].effect - 0.2) < 1e-9 && fabs(c.top[0].low - 0.19) < 1e-9 &&
		    fabs(c.top[0].high - 0.21) < 1e-9);
	assert_string_equal(c.top[0].verdict, "undecided");
	c = ask(l, 5, 0.0401);
	assert_true(c.reached && !c.at_floor && c.missing_s == 0);
	/* What nobody asked for is not reached. */
	c = ask(l, 5, 0);
	assert_true(!c.reached && isnan(c.missing_s) && c.n_top);
}

static void the_unknown_keeps_it_going(void **state)
{
	struct analysis_line l[] = {line("a", 0.5, 0.01, NAN), line("b", 0.2, NAN, NAN)};
	struct certainty c = ask(l, 2, 0.02);

	(void)state;
	assert_true(!c.reached && isnan(c.missing_s));
	l[1] = line("b", 0.2, 0.001, NAN);
	l[1].experiments = 5;
	assert_false(ask(l, 2, 0.02).reached);
	assert_true(ask(l, 1, 0.02).reached);
	assert_false(ask(l, 0, 0.02).reached);
}

static void the_method_has_a_floor(void **state)
{
	/* An allowance of 0.8 points and 4.5 % of 20: 1.2 points. */
	double own = hypot(0.008, 0.01);
	struct analysis_line l[] = {line("a", 0.5, hypot(0.03, own), 0.05)};
	struct certainty c = ask(l, 1, hypot(0.015, own));

	(void)state;
	assert_true(!c.reached && fabs(c.missing_s - 30) < 1e-9);
	/* One point can never be had: as near as makes no difference is half of the floor in noise.
	 */
	c = ask(l, 1, 0.01);
	assert_true(!c.reached && fabs(c.missing_s - 10 * (pow(0.03 / (own / 2), 2) - 1)) < 1e-9);
	l[0] = line("a", 0.5, hypot(0.005, own), 0.05);
	c = ask(l, 1, 0.01);
	assert_true(c.reached && c.at_floor);
}

static void expensive_samples_raise_the_floor(void **state)
{
	struct analysis_allowance cheap = fidelity_allow(500e3, 8e6, 0, false),
				  expensive = fidelity_allow(500e3, 8e6, 0.12, false);

	(void)state;
	/* 16 samples a visit scatter by a quarter of what they cost; a tenth of that is 0.3 points,
	 * beside 0.8. */
	assert_true(fabs(fidelity_allowance(cheap, 0) - 0.008) < 1e-9);
	assert_true(fabs(fidelity_allowance(expensive, 0) - hypot(0.003, 0.008)) < 1e-9);
	/* Visits that are far shorter than the rate follows say nothing more. */
	assert_true(fabs(fidelity_allow(500e3, 3e6, 0.12, false).scatter -
			 fidelity_allow(500e3, 1e3, 0.12, false).scatter) < 1e-9);
	assert_true(fabs(fidelity_allowance(expensive, 0.4) -
			 hypot(fidelity_allowance(expensive, 0), 0.4 * expensive.share)) < 1e-9);
	/* Without a period nothing is known, and what a file says of samples that take all of the
	 * time is bounded. */
	assert_true(fidelity_allowance(fidelity_allow(0, 1e8, 0.12, false), 0.4) == 0);
	assert_true(fidelity_allowance(fidelity_allow(500e3, 8e6, 1e9, false), 0) < 0.05);
	assert_true(fabs(fidelity_allowance(fidelity_allow(500e3, 8e6, NAN, false), 0) - 0.008) <
		    1e-9);
	/* What ends a wait is not under the profiler's control. */
	assert_true(fidelity_allowance(fidelity_allow(500e3, 8e6, 0, true), 0) > 0.016);
	assert_true(fidelity_allowance(fidelity_allow(500e3, 8e6, 0, true), 0.4) >
		    1.8 * fidelity_allowance(fidelity_allow(500e3, 8e6, 0, false), 0.4));
}

/* The estimate is honest: after as long as it says, the run is done, give or take what few
 * experiments can tell. */
static void the_estimate_comes_true(void **state)
{
	double ratio = 0;
	size_t runs = 10;

	(void)state;
	for (uint64_t seed = 1; seed <= runs; seed++) {
		struct profile p = {0};
		struct certainty c = {0};
		struct rng r;
		double said = NAN, elapsed = 0;

		rng_seed(&r, seed);
		for (size_t i = 0; i < 2000 && !c.reached; i++) {
			double s = i % 3 == 0 ? 0 : 0.05 * (double)(1 + rng_below(&r, 20)),
			       period = 5e6 * (1 - 0.3 * s);
			struct profile_run_experiment *x;

			period *= 1 + 0.08 * (rng_unit(&r) + rng_unit(&r) + rng_unit(&r) - 1.5);
			x = sample_visits(&p, "a.c:1", s, (uint64_t)(100 * period), 100);
			x->x.elapsed = x->x.duration;
			elapsed += (double)x->x.elapsed / 1e9;
			if (i % 20 == 19 && i > 20) {
				struct analysis a;

				analyse(&p, seed, &a);
				c = certainty_of(&a, 0.01, elapsed);
				if (isnan(said) && !isnan(c.missing_s))
					said = elapsed + c.missing_s;
				analysis_free(&a);
			}
		}
		assert_true(c.reached && said > 0);
		ratio += log(elapsed / said) / (double)runs;
		profile_free(&p);
	}
	if (!(fabs(ratio) < log(1.4)))
		fail_msg("runs took %.2f times as long as was said", exp(ratio));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_kept),
		cmocka_unit_test(slow_intervals_are_shown),
		cmocka_unit_test(slopes_are_certain),
		cmocka_unit_test(the_widest_of_the_top_counts),
		cmocka_unit_test(the_unknown_keeps_it_going),
		cmocka_unit_test(the_method_has_a_floor),
		cmocka_unit_test(expensive_samples_raise_the_floor),
		cmocka_unit_test(the_estimate_comes_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
