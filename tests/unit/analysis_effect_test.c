// SPDX-License-Identifier: BSD-2-Clause
/* Effects against arithmetic: experiments whose periods are known. */
#include "analysis/analysis.h"
#include "analysis/effect.h"
#include "analysis/stats.h"
#include "analysis_sample.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#define MS 1000000ull

static void near(double value, double expected)
{
	if (!(fabs(value - expected) < 1e-9))
		fail_msg("%.12g is not %.12g", value, expected);
}

static const struct analysis_line *find(const struct analysis *a, size_t point, const char *line)
{
	for (size_t i = 0; i < a->points[point].n_lines; i++)
		if (strcmp(a->points[point].lines[i].selected, line) == 0)
			return &a->points[point].lines[i];
	fail_msg("no line %s", line);
	return NULL;
}

static const struct analysis_cell *cell(const struct analysis_line *l, double speedup)
{
	for (size_t i = 0; i < l->n_cells; i++)
		if (fabs(l->cells[i].speedup - speedup) < 1e-9)
			return &l->cells[i];
	fail_msg("no cell %g", speedup);
	return NULL;
}

/* What the experiment before has left is visited in the first part. */
static void first_parts_do_not_count(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct profile_run_experiment *x =
			sample_visits(&p, "a.c:1", i % 2 ? 0.5 : 0, 500 * MS, i % 2 ? 58 : 50);

		x->x.settled_elapsed = x->x.settled_duration = 450 * MS;
		x->points[0].settled_delta = 45;
	}
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 0.5)->change.effect, 0);
	analysis_free(&a);
	profile_free(&p);
}

static void sums_as_coz_does(void **state)
{
	struct profile p = {0};
	struct analysis a;
	const struct analysis_line *l;

	(void)state;
	/* 0 %: 300 ms / 30 = 10 ms. 50 %: 250 ms / 50 = 5 ms, although the mean of the two is (4 +
	 * 15) / 2. */
	sample_visits(&p, "a.c:1", 0, 100 * MS, 10);
	sample_visits(&p, "a.c:1", 0, 200 * MS, 20);
	sample_visits(&p, "a.c:1", 0.5, 190 * MS, 46);
	sample_visits(&p, "a.c:1", 0.5, 60 * MS, 4);
	analyse(&p, 1, &a);
	assert_int_equal(a.n_points, 1);
	assert_int_equal(a.points[0].visits, 80);
	l = find(&a, 0, "a.c:1");
	assert_int_equal(l->experiments, 4);
	assert_int_equal(l->n_cells, 2);
	near(cell(l, 0)->period_ns, 10e6);
	near(cell(l, 0)->change.effect, 0);
	near(cell(l, 0.5)->period_ns, 5e6);
	near(cell(l, 0.5)->change.effect, 0.5);
	assert_int_equal(cell(l, 0.5)->experiments, 2);
	near(cell(l, 0.5)->visits, 50);
	assert_true(cell(l, 0.5)->change.low <= 0.5 && cell(l, 0.5)->change.high >= 0.5);
	analysis_free(&a);
	profile_free(&p);
}

static void littles_law(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct profile_run_experiment *x =
			sample_experiment(&p, "a.c:1", i ? 0.5 : 0, 100 * MS);
		struct profile_point *point = sample_point(x, PROFILE_LATENCY, "p");

		/* Baseline: 4 in flight, 20 departures in 100 ms: 20 ms. 50 %: 100 ms * (1 + 3) /
		 * (10 + 30) = 10 ms. */
		point->departures = i == 0 ? 20 : i == 1 ? 10 : 30;
		point->difference = i == 0 ? 4 : i == 1 ? 1 : 3;
		point->arrivals = 1000; /* of no consequence */
	}
	analyse(&p, 1, &a);
	assert_int_equal(a.points[0].kind, PROFILE_LATENCY);
	near(cell(find(&a, 0, "a.c:1"), 0)->period_ns, 20e6);
	near(cell(find(&a, 0, "a.c:1"), 0.5)->period_ns, 10e6);
	near(cell(find(&a, 0, "a.c:1"), 0.5)->change.effect, 0.5);
	analysis_free(&a);
	profile_free(&p);
}

/* Regular visits, few of them, with edges at every place: the spans have it exactly, the whole
 * durations do not. */
static void spans_have_no_edges(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 6; i++) {
		uint64_t duration = (510 + (uint64_t)i * 15) * MS;

		sample_timed(&p, "a.c:1", 0, duration, 5 + (i > 4), (4 + (i > 4)) * 100 * MS);
		sample_timed(&p, "a.c:1", 1, duration, 10 + (uint64_t)(i > 1),
			     (9 + (uint64_t)(i > 1)) * 50 * MS);
	}
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 0)->period_ns, 100e6);
	near(cell(find(&a, 0, "a.c:1"), 1)->change.effect, 0.5);
	near(cell(find(&a, 0, "a.c:1"), 1)->change.low, 0.5);
	analysis_free(&a);
	/* One of them untimed: the whole line is read the other way, and nothing is mixed. */
	sample_visits(&p, "a.c:1", 1, 500 * MS, 10);
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 0)->period_ns, (6 * 510e6 + 15 * 15e6) / 31);
	near(cell(find(&a, 0, "a.c:1"), 1)->period_ns, (6 * 510e6 + 15 * 15e6 + 500e6) / 74);
	analysis_free(&a);
	profile_free(&p);
}

/* An experiment with one visit or none has no span; it counts whole, so that a stall is not made to
 * vanish. */
static void nothing_is_dropped_for_its_outcome(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 12; i++)
		sample_timed(&p, "a.c:1", 0, (480 + (uint64_t)i * 4) * MS, 5, 400 * MS);
	sample_timed(&p, "a.c:1", 0, 480 * MS, 0, 0);
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 0)->period_ns, (12 * 400e6 + 480e6) / 48);
	analysis_free(&a);
	/* More than one in ten: whole durations for all. */
	sample_timed(&p, "a.c:1", 0, 480 * MS, 1, 0);
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 0)->period_ns, (12 * 480e6 + 4e6 * 66 + 2 * 480e6) / 61);
	analysis_free(&a);
	profile_free(&p);
}

/* Irregular visits: where spans are no steadier than durations, their bias towards short gaps is
 * not worth it. */
static void spans_only_where_they_pay(void **state)
{
	static const uint64_t span[] = {200, 450, 330, 260, 420, 390};
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 6; i++)
		sample_timed(&p, "a.c:1", 0, 500 * MS, 5, span[i] * MS);
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 0)->period_ns, 100e6);
	analysis_free(&a);
	profile_free(&p);
}

static void baseline_of_all_lines_unless_phases_differ(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 6; i++) {
		sample_visits(&p, "a.c:1", 0, (1000 + (uint64_t)(i % 3)) * MS, 100);
		sample_visits(&p, "b.c:1", 0, (1000 + (uint64_t)((i + 1) % 3)) * MS, 100);
	}
	sample_visits(&p, "c.c:1", 0.5, 801 * MS, 100); /* has no baseline of its own */
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 0)->period_ns, 10.01e6);
	assert_int_equal(cell(find(&a, 0, "a.c:1"), 0)->experiments, 12);
	near(cell(find(&a, 0, "c.c:1"), 0.5)->change.effect, 1 - 8.01 / 10.01);
	analysis_free(&a);
	/* A line that runs in another phase: its visits take twice as long, at 0 % too. */
	for (int i = 0; i < 6; i++)
		sample_visits(&p, "d.c:1", 0, (2000 + (uint64_t)(i % 3)) * MS, 100);
	sample_visits(&p, "d.c:1", 1, 2001 * MS, 100);
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 0)->period_ns, 10.01e6);
	near(cell(find(&a, 0, "d.c:1"), 0)->period_ns, 20.01e6);
	near(cell(find(&a, 0, "d.c:1"), 1)->change.effect, 0);
	analysis_free(&a);
	profile_free(&p);
}

static void shares_from_log_or_experiments(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct profile_run_experiment *x =
			sample_visits(&p, i ? "b.c:1" : "a.c:1", 0, 100 * MS, 10);

		x->x.samples = 100;
		x->x.selected_samples = i ? 10 : 25;
		x->x.function = i ? strdup("f") : NULL;
	}
	analyse(&p, 1, &a);
	near(find(&a, 0, "a.c:1")->share, 0.25);
	near(find(&a, 0, "b.c:1")->share, 0.10);
	assert_string_equal(find(&a, 0, "b.c:1")->function, "f");
	assert_null(find(&a, 0, "a.c:1")->function);
	analysis_free(&a);
	p.samples = calloc(2, sizeof(*p.samples));
	assert_non_null(p.samples);
	p.n_samples = 2;
	p.samples[0] = (struct profile_samples){strdup("a.c:1"), 30};
	p.samples[1] = (struct profile_samples){strdup("z.c:1"), 70};
	analyse(&p, 1, &a);
	near(find(&a, 0, "a.c:1")->share, 0.3);
	near(find(&a, 0, "b.c:1")->share, 0);
	analysis_free(&a);
	profile_free(&p);
}

static void fidelity_adds_up(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		struct profile_experiment *x = &sample_visits(&p, "a.c:1", 0, 100 * MS, 10)->x;

		x->elapsed = (100 + 100 * i) * MS;
		x->growth = 5;
		x->paid = 7;
		x->owed = 1;
		x->credited = -2;
		x->rq_credited = 3;
		x->oversleep = -1;
		x->late = i * 10;
		x->foreign = i == 2 ? 0.5 : 0.01;
		x->imbalance = i == 1 ? INT64_MIN : -3;
	}
	analyse(&p, 1, &a);
	near(a.elapsed_ns, 600e6);
	near(a.growth_ns, 15);
	near(a.sums.paid, 21);
	near(a.owed_ns, 3);
	near(a.sums.credited, -6);
	near(a.sums.rq_credited, 9);
	near(a.sums.oversleep, -3);
	near(a.late_ns, 15);
	near(a.foreign, (0.01 * 100 + 0.01 * 200 + 0.5 * 300) / 600);
	assert_int_equal(a.foreign_flagged, 1);
	assert_true(a.imbalance_max == INT64_MAX);
	analysis_free(&a);
	profile_free(&p);
}

/* Before the sampling rate followed the visits, visits were 10 % faster: hardly a baseline for
 * those that came after. */
static void another_rate_hardly_counts(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	sample_visits(&p, "a.c:1", 0, 1000 * MS, 1100)->x.period_ns = 500000;
	sample_visits(&p, "a.c:1", 0.5, 1000 * MS, 1000)->x.period_ns = 250000;
	sample_visits(&p, "a.c:1", 0, 1000 * MS, 1000)->x.period_ns = 252000;
	analyse(&p, 1, &a);
	assert_true(fabs(cell(find(&a, 0, "a.c:1"), 0.5)->change.effect) < 0.001);
	assert_int_equal(a.marked, 1);
	analysis_free(&a);
	profile_free(&p);
}

static double width(const struct analysis_cell *c)
{
	return c->change.high - c->change.low;
}

/* The run ends in the middle of an experiment, the only one of its speedup: a tenth as long as the
 * others, it scatters as much as ten times that. */
static void a_short_one_says_little(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 20; i++)
		sample_visits(&p, "a.c:1", 0.2 * (i % 4), (uint64_t)(980 + i * 17 % 40) * MS, 1000);
	sample_visits(&p, "a.c:1", 0.8, 1000 * MS, 1000);
	sample_visits(&p, "a.c:1", 1, 100 * MS, 90);
	analyse(&p, 1, &a);
	near(cell(find(&a, 0, "a.c:1"), 1)->period_ns, 100e6 / 90);
	assert_true(width(cell(find(&a, 0, "a.c:1"), 1)) >
		    2.5 * width(cell(find(&a, 0, "a.c:1"), 0.8)));
	analysis_free(&a);
	profile_free(&p);
}

static void fine_grids_are_joined(void **state)
{
	struct profile p = {0};
	struct analysis a;
	const struct analysis_line *l;

	(void)state;
	for (int i = 0; i <= 100; i++)
		sample_visits(&p, "a.c:1", i / 100.0, 1000 * MS, 100);
	sample_visits(&p, "a.c:1", 0.0001, 1000 * MS, 100); /* not a baseline */
	analyse(&p, 1, &a);
	l = &a.points[0].lines[0];
	assert_uint_in_range(l->n_cells, 2, ANALYSIS_MAX_SPEEDUPS);
	assert_int_equal(l->cells[0].experiments, 1);
	for (size_t i = 1; i < l->n_cells; i++)
		assert_true(l->cells[i].speedup > l->cells[i - 1].speedup &&
			    l->cells[i].speedup <= 1);
	analysis_free(&a);
	profile_free(&p);
}

#define PAIRS 40

/* The standard deviation of the period of pairs at 0 %, of which one is as much too fast as the
 * other is too slow. */
static double scatter_of_pairs(bool in_burst)
{
	struct observation obs[2 * PAIRS] = {0};
	double periods[RESAMPLES];
	struct rng r;

	rng_seed(&r, 5);
	for (uint32_t i = 0; i < PAIRS; i++) {
		double off = 0.2 * (rng_unit(&r) - 0.5);

		for (int half = 0; half < 2; half++) {
			/* Not next to each other, as those of two lines. */
			struct observation *o = &obs[i + half * PAIRS];

			o->num[READ_WHOLE] = half ? 1 - off : 1 + off;
			o->den[READ_WHOLE] = o->weight = 1;
			o->burst = i;
			o->in_burst = in_burst;
		}
	}
	group_resample(obs, 2 * PAIRS, READ_WHOLE, &r, periods);
	return stats_deviation(periods, RESAMPLES);
}

static void experiments_of_a_burst_are_drawn_together(void **state)
{
	(void)state;
	assert_true(scatter_of_pairs(false) > 0.003);
	assert_true(scatter_of_pairs(true) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_parts_do_not_count),
		cmocka_unit_test(sums_as_coz_does),
		cmocka_unit_test(littles_law),
		cmocka_unit_test(spans_have_no_edges),
		cmocka_unit_test(nothing_is_dropped_for_its_outcome),
		cmocka_unit_test(spans_only_where_they_pay),
		cmocka_unit_test(baseline_of_all_lines_unless_phases_differ),
		cmocka_unit_test(shares_from_log_or_experiments),
		cmocka_unit_test(fidelity_adds_up),
		cmocka_unit_test(another_rate_hardly_counts),
		cmocka_unit_test(a_short_one_says_little),
		cmocka_unit_test(fine_grids_are_joined),
		cmocka_unit_test(experiments_of_a_burst_are_drawn_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
