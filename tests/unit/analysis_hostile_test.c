// SPDX-License-Identifier: BSD-2-Clause
/* Numbers that no honest run writes, and very many of them. */
#include "analysis/analysis.h"
#include "analysis_sample.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static void sound(const struct analysis *a)
{
	for (size_t i = 0; i < a->n_points; i++)
		for (size_t j = 0; j < a->points[i].n_lines; j++) {
			const struct analysis_line *l = &a->points[i].lines[j];

			assert_true(l->n_cells <= ANALYSIS_MAX_SPEEDUPS);
			assert_non_null(l->selected);
			for (size_t k = 0; k < l->n_cells; k++) {
				const struct analysis_cell *c = &l->cells[k];

				assert_false(isinf(c->change.effect) || isinf(c->period_ns));
				assert_true(isnan(c->change.low) == isnan(c->change.high));
				if (!isnan(c->change.low))
					assert_true(c->change.low <= c->change.effect &&
						    c->change.effect <= c->change.high);
			}
		}
}

static void nothing_to_analyse(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	analyse(&p, 1, &a);
	assert_int_equal(a.n_points, 0);
	assert_true(a.foreign == 0 && a.late_ns == 0);
	analysis_free(&a);
	analysis_free(&a); /* harmless */
}

static void zeros_and_extremes(void **state)
{
	static const uint64_t extreme[] = {0, 1, UINT64_MAX};
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int d = 0; d < 3; d++)
		for (int v = 0; v < 3; v++)
			for (int s = 0; s < 3; s++) {
				struct profile_run_experiment *x =
					sample_visits(&p, "a", s / 2.0, extreme[d], extreme[v]);
				struct profile_point *l = sample_point(x, PROFILE_LATENCY, "l");

				l->departures = extreme[v];
				l->difference = d == 0 ? INT64_MIN : INT64_MAX;
				x->x.elapsed = x->x.growth = x->x.late = extreme[d];
				x->x.credited = INT64_MIN;
				x->x.foreign = s == 0 ? (double)NAN : s == 1 ? 1e308 : -1;
			}
	p.experiments[0].x.speedup = NAN;
	p.experiments[1].x.speedup = -INFINITY;
	analyse(&p, 1, &a);
	assert_int_equal(a.n_points, 2);
	sound(&a);
	analysis_free(&a);
	profile_free(&p);
}

static void without_baseline_or_visits(void **state)
{
	struct profile p = {0};
	struct analysis a;
	const struct analysis_line *l;

	(void)state;
	for (int i = 0; i < 3; i++)
		sample_visits(&p, "a", 0.5, 1000, 10);
	analyse(&p, 1, &a);
	l = &a.points[0].lines[0];
	assert_int_equal(l->n_cells, 1);
	assert_true(isnan(l->cells[0].change.effect) && isnan(l->best_effect) &&
		    isnan(a.points[0].placebo));
	assert_int_equal(l->verdict, VERDICT_UNDECIDED);
	assert_true(isnan(l->missing_s));
	analysis_free(&a);
	profile_free(&p);
	for (int i = 0; i < 6; i++)
		sample_visits(&p, "a", i & 1, 1000, 0);
	analyse(&p, 1, &a);
	l = &a.points[0].lines[0];
	assert_true(isnan(l->cells[1].change.effect) && isnan(a.points[0].placebo));
	assert_int_equal(a.points[0].visits, 0);
	analysis_free(&a);
	profile_free(&p);
}

/* One experiment at each of two speedups has an effect, but nothing to tell its error from. */
static void one_of_each(void **state)
{
	struct profile p = {0};
	struct analysis a;
	const struct analysis_cell *c;

	(void)state;
	sample_visits(&p, "a", 0, 1000, 10);
	sample_visits(&p, "a", 1, 500, 10);
	analyse(&p, 1, &a);
	c = &a.points[0].lines[0].cells[1];
	assert_true(fabs(c->change.effect - 0.5) < 1e-12 && isnan(c->change.low) &&
		    isnan(c->change.high));
	assert_int_equal(a.points[0].lines[0].verdict, VERDICT_UNDECIDED);
	analysis_free(&a);
	profile_free(&p);
}

/* More lines, points and experiments than any run has: work and memory stay bounded. */
static void very_many(void **state)
{
	enum { N = 30000 };
	struct profile p = {.n_runs = 1, .n_experiments = N};
	struct analysis a;
	char name[32];

	(void)state;
	p.runs = calloc(1, sizeof(*p.runs));
	p.experiments = calloc(N, sizeof(*p.experiments));
	assert_true(p.runs && p.experiments);
	for (int i = 0; i < N; i++) {
		struct profile_run_experiment *x = &p.experiments[i];
		int line = i % 3 ? 0 : i;

		(void)snprintf(name, sizeof(name), "f.c:%d", line);
		x->x.selected = strdup(name);
		x->x.speedup = (i % 101) / 100.0;
		x->x.duration = 1000000;
		(void)snprintf(name, sizeof(name), "p%d", i % 7 ? 0 : i);
		sample_point(x, PROFILE_THROUGHPUT, name)->delta = 100 + (uint64_t)(i % 5);
	}
	analyse(&p, 1, &a);
	assert_uint_in_range(a.n_points, 1, 128);
	for (size_t i = 0; i < a.n_points; i++)
		assert_uint_in_range(a.points[i].n_lines, 1, 512);
	sound(&a);
	analysis_free(&a);
	profile_free(&p);
}

/* Days of experiments, all of them at 0 %: the time that it takes does not grow with their square.
 */
static void very_many_zeros(void **state)
{
	enum { N = 200000 };
	struct profile p = {.n_runs = 1, .n_experiments = N};
	struct analysis a;

	(void)state;
	p.runs = calloc(1, sizeof(*p.runs));
	p.experiments = calloc(N, sizeof(*p.experiments));
	assert_true(p.runs && p.experiments);
	for (int i = 0; i < N; i++) {
		struct profile_run_experiment *x = &p.experiments[i];

		x->x.selected = strdup("a");
		x->x.duration = 1000000;
		sample_point(x, PROFILE_THROUGHPUT, "p")->delta = 100 + (uint64_t)(i % 5);
	}
	(void)alarm(30);
	analyse(&p, 1, &a);
	(void)alarm(0);
	assert_int_equal(a.points[0].lines[0].experiments, N);
	analysis_free(&a);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_analyse),
		cmocka_unit_test(zeros_and_extremes),
		cmocka_unit_test(without_baseline_or_visits),
		cmocka_unit_test(one_of_each),
		cmocka_unit_test(very_many),
		cmocka_unit_test(very_many_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
