// SPDX-License-Identifier: BSD-2-Clause
/* Intervals and verdicts on seeded synthetic programs: how often they are right, and that they
 * repeat. Built plain: it simulates for long, and with sanitizers takes five times as long. */
#include "analysis/analysis.h"
#include "analysis/stats.h"
#include "analysis_sample.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A standard normal deviate, near enough. */
static double normal(struct rng *r)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += rng_unit(r);
	return sum;
}

/* One experiment of half a second: visits of 5 ms * (1 - effect), the experiment's pace scattering
 * by @noise. */
static void add(struct profile *p, struct rng *r, const char *line, double speedup, double effect,
		double noise)
{
	double period = 5e6 * (1 - effect) * (1 + noise * normal(r));
	double visits =
		500e6 / period + rng_unit(r); /* where in a visit the experiment begins is chance */

	sample_visits(p, line, speedup, 500000000, (uint64_t)visits);
}

/* How many of 150 programs have the true effect inside the interval at 50 %, with @n experiments a
 * cell. */
static unsigned int covered(size_t n, uint64_t seed, double *ret_width)
{
	unsigned int inside = 0;
	double width = 0;

	for (uint64_t trial = 0; trial < 150; trial++) {
		struct profile p = {0};
		struct analysis a;
		struct rng r;
		const struct analysis_line *l;

		rng_seed(&r, seed + trial);
		for (size_t i = 0; i < n; i++) {
			add(&p, &r, "a.c:1", 0, 0, 0.05);
			add(&p, &r, "a.c:1", 0.5, 0.2, 0.05);
			add(&p, &r, "a.c:1", 1.0, 0.4, 0.05);
		}
		analyse(&p, trial, &a);
		l = sample_line(&a, "a.c:1");
		assert_int_equal(l->n_cells, 3);
		assert_true(l->cells[1].change.low <= l->cells[1].change.effect &&
			    l->cells[1].change.effect <= l->cells[1].change.high);
		inside += l->cells[1].change.low <= 0.2 && 0.2 <= l->cells[1].change.high;
		width += (l->cells[1].change.high - l->cells[1].change.low) / 150;
		analysis_free(&a);
		profile_free(&p);
	}
	*ret_width = width;
	return inside;
}

static void intervals_hold_what_they_promise(void **state)
{
	static const size_t sizes[] = {2, 4, 8, 20};
	double width, before = 1e9;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		unsigned int inside = covered(sizes[i], 1000 * i, &width);

		/* 95 % of 150 is 142.5 with a standard deviation of 2.7; they may be wider, never
		 * much narrower. */
		if (inside < 136)
			fail_msg("%zu experiments a cell: %u of 150 intervals cover", sizes[i],
				 inside);
		assert_true(width < before && width > 0);
		before = width;
	}
	/* 20 against 20 experiments of 5 %: 2 * 1.96 * 0.8 * 0.05 * sqrt(2 / 20) = 0.0496. */
	assert_true(width > 0.040 && width < 0.065);
}

/* A fine grid leaves one experiment in a cell; the other cells tell its scatter. */
static void single_experiments_have_intervals(void **state)
{
	unsigned int inside = 0, cells = 0;

	(void)state;
	for (uint64_t trial = 0; trial < 30; trial++) {
		struct profile p = {0};
		struct analysis a;
		struct rng r;
		const struct analysis_line *l;

		rng_seed(&r, 77 + trial);
		for (int i = 0; i < 8; i++)
			add(&p, &r, "a.c:1", 0, 0, 0.03);
		for (int s = 1; s <= 10; s++)
			add(&p, &r, "a.c:1", s / 10.0, s / 40.0, 0.03);
		analyse(&p, trial, &a);
		l = sample_line(&a, "a.c:1");
		for (size_t i = 1; i < l->n_cells; i++, cells++)
			inside += l->cells[i].change.low <= l->cells[i].speedup / 4 &&
				  l->cells[i].speedup / 4 <= l->cells[i].change.high;
		/* No single cell is sure, their trend is. */
		assert_int_equal(l->verdict, VERDICT_HELPS);
		analysis_free(&a);
		profile_free(&p);
	}
	assert_int_equal(cells, 300);
	assert_uint_in_range(inside, 270, 300);
}

/* Twenty lines, one of which helps, one hurts. Many were looked at: false discoveries stay rare. */
static void verdicts_honour_that_many_lines_were_looked_at(void **state)
{
	unsigned int helps = 0, hurts = 0, wrong = 0;

	(void)state;
	for (uint64_t trial = 0; trial < 20; trial++) {
		struct profile p = {0};
		struct analysis a;
		struct rng r;

		rng_seed(&r, 31 + trial);
		for (int line = 0; line < 20; line++)
			for (int i = 0; i < 16; i++) {
				double s = (i % 4) / 3.0;
				char name[16];

				(void)snprintf(name, sizeof(name), "f.c:%d", line);
				add(&p, &r, name, s,
				    line == 3	? s * 0.2
				    : line == 4 ? s * -0.2
						: 0,
				    0.04);
			}
		analyse(&p, trial, &a);
		assert_int_equal(a.points[0].n_lines, 20);
		assert_string_equal(a.points[0].lines[0].selected, "f.c:3");
		for (size_t i = 0; i < 20; i++) {
			const struct analysis_line *l = &a.points[0].lines[i];

			if (strcmp(l->selected, "f.c:3") == 0)
				helps += l->verdict == VERDICT_HELPS && l->best_effect > 0;
			else if (strcmp(l->selected, "f.c:4") == 0)
				hurts += l->verdict == VERDICT_HURTS && l->best_effect < 0;
			else
				wrong += l->verdict == VERDICT_HELPS || l->verdict == VERDICT_HURTS;
		}
		analysis_free(&a);
		profile_free(&p);
	}
	assert_int_equal(helps, 20);
	assert_int_equal(hurts, 20);
	/* At most 5 % of the discoveries: 2 of 42 expected at worst, of 360 flat lines. */
	assert_uint_in_range(wrong, 0, 6);
}

static void undecided_says_how_much_longer(void **state)
{
	struct profile p = {0};
	struct analysis a;
	const struct analysis_line *l;
	struct rng r;
	double first;

	(void)state;
	rng_seed(&r, 5);
	for (int i = 0; i < 8; i++)
		add(&p, &r, "a.c:1", i & 1, 0, 0.2);
	analyse(&p, 1, &a);
	l = sample_line(&a, "a.c:1");
	assert_int_equal(l->verdict, VERDICT_UNDECIDED);
	assert_true(l->missing_s > 1 && isfinite(l->missing_s));
	first = l->missing_s;
	analysis_free(&a);
	/* The same program with many more experiments is decided: no effect. */
	for (int i = 0; i < 4000; i++)
		add(&p, &r, "a.c:1", i & 1, 0, 0.2);
	analyse(&p, 1, &a);
	l = sample_line(&a, "a.c:1");
	assert_int_equal(l->verdict, VERDICT_NO_EFFECT);
	assert_true(isnan(l->missing_s));
	assert_true(first < 2000);
	analysis_free(&a);
	profile_free(&p);
}

static void the_seed_repeats_everything(void **state)
{
	struct profile p = {0};
	struct analysis a, b, c;
	struct rng r;
	bool differs = false;

	(void)state;
	rng_seed(&r, 9);
	for (int i = 0; i < 60; i++)
		add(&p, &r, i % 2 ? "a.c:1" : "b.c:1", (i % 3) / 2.0, 0.1, 0.1);
	analyse(&p, 7, &a);
	analyse(&p, 7, &b);
	analyse(&p, 8, &c);
	assert_true(a.points[0].placebo == b.points[0].placebo);
	/* 20 experiments that scatter by 10 %, half against half: 1.96 * 0.1 * 2 / sqrt(20). */
	assert_true(a.points[0].placebo > 0.04 && a.points[0].placebo < 0.16);
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < a.points[0].lines[i].n_cells; j++) {
			const struct analysis_change *x = &a.points[0].lines[i].cells[j].change,
						     *y = &b.points[0].lines[i].cells[j].change;

			assert_true(x->low == y->low && x->high == y->high &&
				    x->effect == y->effect);
			differs |= x->low != c.points[0].lines[i].cells[j].change.low;
		}
	differs |= a.points[0].placebo != c.points[0].placebo;
	assert_true(differs);
	analysis_free(&a);
	analysis_free(&b);
	analysis_free(&c);
	profile_free(&p);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Quantiles equal those of the sorted numbers, of few and of many, with and without equal ones. */
static void quantiles(void **state)
{
	double v[200], sorted[200];
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	for (size_t n = 1; n <= 200; n++)
		for (uint64_t values = 2; values <= 2000; values *= 10) {
			size_t k = rng_below(&r, n);

			for (size_t i = 0; i < n; i++)
				sorted[i] = v[i] = (double)rng_below(&r, values);
			qsort(sorted, n, sizeof(*sorted), by_value);
			assert_true(fabs(stats_quantile(v, n, (double)k / fmax(1, (double)n - 1)) -
					 sorted[k]) < 1e-9);
		}
}

static void textbook_numbers(void **state)
{
	double p[] = {0.6, 0.001, 0.041, 0.008, 0.039}, v[] = {4, 1, 3, 2};

	(void)state;
	assert_true(fabs(stats_t_quantile(1) - 12.706) < 1e-9);
	assert_true(fabs(stats_t_quantile(12) - 2.179) < 0.01);
	assert_true(fabs(stats_t_quantile(1e9) - 1.960) < 1e-3);
	assert_true(stats_t_quantile(NAN) > 12 && stats_t_quantile(-3) > 12);
	assert_true(fabs(stats_t_tail(4.303, 2) - 0.05) < 0.004);
	assert_true(fabs(stats_t_tail(2.228, 10) - 0.05) < 0.001);
	assert_true(fabs(stats_t_tail(12.706, 1) - 0.05) < 0.001);
	assert_true(fabs(stats_chi2_80(5) - 7.289) < 0.05);
	assert_true(stats_quantile(v, 4, 0.5) == 2.5 && stats_quantile(v, 4, 1) == 4 &&
		    stats_quantile(v, 1, 0.3) == 1);
	/* Ranks 1 and 2 pass 0.05 * rank / 5; 0.039 misses 0.03, and no later one makes up for it.
	 */
	assert_true(stats_discovery_limit(p, 5, 0.05) == 0.008);
	assert_true(stats_discovery_limit(p, 0, 0.05) == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_hold_what_they_promise),
		cmocka_unit_test(single_experiments_have_intervals),
		cmocka_unit_test(verdicts_honour_that_many_lines_were_looked_at),
		cmocka_unit_test(undecided_says_how_much_longer),
		cmocka_unit_test(the_seed_repeats_everything),
		cmocka_unit_test(quantiles),
		cmocka_unit_test(textbook_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
