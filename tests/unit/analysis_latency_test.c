// SPDX-License-Identifier: BSD-2-Clause
/* Percentiles of latency points that measured: effects whose truth is arithmetic, intervals that
 * hold it, and nothing that a hostile file can upset. */
#include "analysis/analysis.h"
#include "analysis_sample.h"
#include "base/rng.h"
#include "report/report.h"
#include "shared/histogram.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>

#define MS 1000000.0
#define EXPERIMENT_NS (500 * MS)
#define LINE "a.c:1"

/* The intervals of one experiment. */
struct counted {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	int64_t sum;
	uint64_t n;
};

static void count(struct counted *c, double ns, uint64_t times)
{
	c->buckets[histogram_bucket((uint64_t)ns)] += times;
	c->sum += (int64_t)ns * (int64_t)times;
	c->n += times;
}

static struct profile_latency *add(struct profile *p, const char *line, double speedup,
				   const struct counted *c)
{
	struct profile_run_experiment *x =
		sample_experiment(p, line, speedup, (uint64_t)EXPERIMENT_NS);
	struct profile_point *point = sample_point(x, PROFILE_LATENCY, "req");
	struct profile_latency *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->buckets = calloc(HISTOGRAM_BUCKETS, sizeof(*l->buckets));
	assert_non_null(l->buckets);
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (c->buckets[i])
			l->buckets[l->n_buckets++] = (struct profile_bucket){i, c->buckets[i]};
	l->sum_ns = c->sum;
	point->arrivals = point->departures = c->n;
	point->latency = l;
	x->x.period_ns = (uint64_t)(MS / 2);
	return l;
}

/* 95 % of the requests take `fast` ms, 5 % `slow` ms, each a little different. */
static void add_classes(struct profile *p, struct rng *r, double speedup, double fast, double slow,
			uint64_t n)
{
	static struct counted c;

	c = (struct counted){.n = 0};
	for (uint64_t i = 0; i < n; i++)
		count(&c, (i % 20 == 7 ? slow : fast) * MS * (0.97 + 0.06 * rng_unit(r)), 1);
	add(p, LINE, speedup, &c);
}

static struct analysis analysed(const struct profile *p)
{
	struct analysis a;

	analyse(p, 7, &a);
	assert_true(a.n_points >= 1 && a.points[0].n_lines >= 1);
	return a;
}

static const struct analysis_change *at(const struct analysis *a, enum latency_statistic s,
					size_t k)
{
	assert_non_null(a->points[0].lines[0].latency);
	return &a->points[0].lines[0].latency->at[s][k];
}

static void near_to(double got, double wanted, double by, const char *what)
{
	if (!(fabs(got - wanted) <= by))
		fail_msg("%s is %g, not %g +- %g", what, got, wanted, by);
}

/* The line is all that the slow ones do beyond the fast ones' 2 ms: 10 ms. */
static void a_line_of_the_slow_class(void **state)
{
	struct profile p = {0};
	struct analysis a;
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	for (int i = 0; i < 12; i++)
		for (int s = 0; s <= 100; s += 25)
			add_classes(&p, &r, s / 100.0, 2, 2 + 10 * (1 - s / 100.0), 200);
	a = analysed(&p);
	near_to(a.points[0].intervals->ns[LATENCY_P50], 2 * MS, 0.03 * MS, "p50");
	near_to(a.points[0].intervals->ns[LATENCY_P99], 12 * MS, 0.3 * MS, "p99");
	near_to(a.points[0].intervals->ns[LATENCY_MEAN], 2.5 * MS, 0.05 * MS, "the mean");
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		double s = analysis_curve_speedups[k], beyond = fmin(1, (12 - 10 * s) / 12);

		near_to(at(&a, LATENCY_P50, k)->effect, 0, 0.01, "the effect on p50");
		near_to(at(&a, LATENCY_P90, k)->effect, 0, 0.01, "the effect on p90");
		near_to(at(&a, LATENCY_P99, k)->effect, 1 - beyond, 0.025, "the effect on p99");
		near_to(at(&a, LATENCY_MEAN, k)->effect, 0.2 * s, 0.015, "the effect on the mean");
		near_to(a.points[0].lines[0].curve.at[k].effect, 0.2 * s, 0.015,
			"the line's effect");
		assert_true(at(&a, LATENCY_P99, k)->low <= 1 - beyond + 0.02 &&
			    at(&a, LATENCY_P99, k)->high >= 1 - beyond - 0.02);
		assert_true(at(&a, LATENCY_P99, k)->high - at(&a, LATENCY_P99, k)->low < 0.3);
	}
	assert_int_equal(a.points[0].lines[0].verdict, VERDICT_HELPS);
	assert_int_equal(a.points[0].visits, 200 * 60);
	analysis_free(&a);
	profile_free(&p);
}

/* A fine grid: one or two experiments a speedup. */
static void a_fine_grid(void **state)
{
	struct profile p = {0};
	struct analysis a;
	struct rng r;

	(void)state;
	rng_seed(&r, 2);
	for (int i = 0; i < 10; i++)
		add_classes(&p, &r, 0, 2, 12, 400);
	for (int s = 5; s <= 100; s += 5)
		add_classes(&p, &r, s / 100.0, 2 - 1.5 * s / 100, 12 - 1.5 * s / 100, 400);
	a = analysed(&p);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		double s = analysis_curve_speedups[k];

		near_to(at(&a, LATENCY_P50, k)->effect, 0.75 * s, 0.03, "the effect on p50");
		near_to(at(&a, LATENCY_P99, k)->effect, 0.125 * s, 0.03, "the effect on p99");
		assert_true(isfinite(at(&a, LATENCY_P50, k)->low) &&
			    isfinite(at(&a, LATENCY_P99, k)->low));
	}
	/* 4000 requests: four lie beyond the 99.9th percentile, which is not enough to be sure of
	 * it. */
	assert_true(isnan(at(&a, LATENCY_P999, 1)->low));
	analysis_free(&a);
	profile_free(&p);
}

/* An experiment sees whole only what begins early enough in it. Half of the requests take a tenth
 * of it, half of them nine tenths: of 100 requests each that begin in it, 90 and 10 are seen. */
static void long_intervals_count_more(void **state)
{
	static struct counted c;
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 5; i++) {
		c = (struct counted){.n = 0};
		count(&c, EXPERIMENT_NS / 10, 90);
		count(&c, EXPERIMENT_NS * 0.88, 12);
		add(&p, LINE, 0, &c);
	}
	a = analysed(&p);
	near_to(a.points[0].intervals->ns[LATENCY_MEAN] / EXPERIMENT_NS, 0.49, 0.015, "the mean");
	near_to(a.points[0].intervals->ns[LATENCY_P90] / EXPERIMENT_NS, 0.88, 0.03, "p90");
	assert_int_equal(a.points[0].visits, 5 * 102);
	analysis_free(&a);
	profile_free(&p);
}

/* How many of 60 programs have the truth in the interval at 50 %: of their p90, where each
 * experiment has a pace of its own.
 */
static void intervals_hold_what_they_promise(void **state)
{
	unsigned int inside = 0;
	double width = 0;

	(void)state;
	for (uint64_t trial = 0; trial < 60; trial++) {
		struct profile p = {0};
		struct analysis a;
		struct rng r;

		rng_seed(&r, 100 + trial);
		for (int i = 0; i < 16; i++) {
			static struct counted c;
			double s = i % 2 ? 0.5 : 0,
			       pace = (1 - 0.4 * s) * (0.9 + 0.2 * rng_unit(&r));

			c = (struct counted){.n = 0};
			for (int j = 0; j < 300; j++)
				count(&c, -log(1 - rng_unit(&r)) * 2 * MS * pace, 1);
			add(&p, LINE, s, &c);
		}
		a = analysed(&p);
		inside += at(&a, LATENCY_P90, 1)->low <= 0.2 && at(&a, LATENCY_P90, 1)->high >= 0.2;
		width += (at(&a, LATENCY_P90, 1)->high - at(&a, LATENCY_P90, 1)->low) / 60;
		analysis_free(&a);
		profile_free(&p);
	}
	/* 95 % of 60 are 57; 51 or fewer happen by chance once in a hundred times. */
	if (inside < 52)
		fail_msg("%u of 60 intervals hold the truth", inside);
	/* And they say something: the scatter of 8 experiments by 5.8 % against as many is +-6.6
	 * points. */
	assert_true(width < 0.25);
}

/* The machine is slower for some experiments, by up to a fifth, which the CPU time of a request
 * tells: of 100, five take six times as long and execute so much more, and each experiment has some
 * more of them, or less. */
static void a_slow_machine_is_taken_out(void **state)
{
	double widths[2] = {0};

	(void)state;
	for (int recorded = 0; recorded < 2; recorded++) {
		struct profile p = {0};
		struct analysis a;
		struct rng r;

		rng_seed(&r, 5);
		for (int i = 0; i < 60; i++) {
			static struct counted c;
			double s = 0.25 * (i % 5), machine = 1 + 0.2 * rng_unit(&r);
			unsigned int slow = 3 + rng_below(&r, 5);
			struct profile_experiment *x;

			c = (struct counted){.n = 0};
			for (unsigned int j = 0; j < 100; j++)
				count(&c,
				      (j < slow ? 12 - 10 * s : 2) * MS * machine *
					      (0.97 + 0.06 * rng_unit(&r)),
				      1);
			add(&p, LINE, s, &c);
			x = &p.experiments[p.n_experiments - 1].x;
			x->elapsed = (uint64_t)(EXPERIMENT_NS * (1 + 0.3 * s));
			x->executed_ns =
				recorded ? (uint64_t)(machine * (100 * 2 + slow * 10) * MS) : 0;
		}
		a = analysed(&p);
		near_to(at(&a, LATENCY_P50, 3)->effect, 0, recorded ? 0.03 : 0.1,
			"the effect on p50");
		near_to(at(&a, LATENCY_P99, 3)->effect, 10.0 / 12, recorded ? 0.02 : 0.1,
			"the effect on p99");
		near_to(at(&a, LATENCY_P99, 1)->effect, 5.0 / 12, recorded ? 0.02 : 0.1,
			"the effect on p99 at half");
		widths[recorded] = at(&a, LATENCY_P50, 1)->high - at(&a, LATENCY_P50, 1)->low;
		analysis_free(&a);
		profile_free(&p);
	}
	assert_true(widths[1] < widths[0] * 0.7);
}

/* Twelve experiments of requests back to back: 250 in 500 ms, of 4 ms, and of 3 ms at 50 %. Two and
 * one and a half are under way. @read: of those, how many are at the experiments' ends. */
static struct analysis analyse_flight(struct profile *p, double read)
{
	for (int i = 0; i < 12; i++) {
		static struct counted c;
		double s = i % 2 ? 0.5 : 0;
		struct profile_latency *l;

		c = (struct counted){.n = 0};
		count(&c, 4 * MS * (1 - s / 2), 250);
		l = add(p, LINE, s, &c);
		l->in_flight_begin = lround(read * 100 * (s > 0 ? 1 : 2));
		l->in_flight_end = lround(read * 100 * 2);
		p->experiments[p->n_experiments - 1].points[0].departures *= 100;
	}
	return analysed(p);
}

/* What is under way, and what leaves, say the mean as well. */
static void littles_law_beside_it(void **state)
{
	struct profile p = {0};
	struct analysis a = analyse_flight(&p, 1);

	(void)state;
	near_to(a.points[0].intervals->ns[LATENCY_LITTLE], 4 * MS, 1, "the mean by Little's law");
	near_to(at(&a, LATENCY_MEAN, 1)->effect, 0.25, 0.001, "the effect on the mean");
	near_to(at(&a, LATENCY_LITTLE, 1)->effect, 0.25, 0.001, "the effect by Little's law");
	assert_true(a.points[0].intervals->little && a.points[0].lines[0].latency->little);
	analysis_free(&a);
	profile_free(&p);
}

/* Where the readings of what is under way do not agree with the timed mean, there are too few of
 * them to be told. */
static void littles_law_disagrees(void **state)
{
	struct profile p = {0};
	struct analysis a = analyse_flight(&p, 0.74);

	(void)state;
	near_to(at(&a, LATENCY_MEAN, 1)->effect, 0.25, 0.001, "the effect on the mean");
	assert_true(isnan(at(&a, LATENCY_LITTLE, 1)->effect));
	assert_false(a.points[0].intervals->little || a.points[0].lines[0].latency->little);
	analysis_free(&a);
	profile_free(&p);
}

/* Points of coz.h are as they were, also beside a measured one of the same name. */
static void counters_only(void **state)
{
	static struct counted c;
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct profile_run_experiment *x =
			sample_experiment(&p, LINE, i % 2 ? 0.5 : 0, (uint64_t)EXPERIMENT_NS);
		struct profile_point *point = sample_point(x, PROFILE_LATENCY, "req");

		point->departures = 100;
		point->difference = i % 2 ? 1 : 2;
	}
	count(&c, MS, 10);
	add(&p, LINE, 0, &c);
	a = analysed(&p);
	assert_int_equal(a.n_points, 2);
	assert_null(a.points[0].intervals);
	assert_null(a.points[0].lines[0].latency);
	near_to(a.points[0].lines[0].cells[1].change.effect, 0.5, 1e-9,
		"the effect by Little's law");
	assert_non_null(a.points[1].intervals);
	assert_int_equal(a.points[1].visits, 10);
	analysis_free(&a);
	profile_free(&p);
}

static char *report(const struct profile *p, bool json)
{
	const struct report_options o = {.verbose = true, .width = 500};
	struct analysis a;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	analyse(p, 1, &a);
	if (json)
		report_json(f, p, &a);
	else
		report_print(f, p, &a, &o, NULL);
	assert_int_equal(fclose(f), 0);
	analysis_free(&a);
	return text;
}

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void the_report_says_it(void **state)
{
	struct profile p = {0};
	struct profile_latency *l;
	struct json_object *o, *point, *ns, *line, *latency;
	char *text;
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	for (int i = 0; i < 12; i++)
		for (int s = 0; s <= 100; s += 50)
			add_classes(&p, &r, s / 100.0, 4, 4 + 20 * (1 - s / 100.0), 200);
	l = p.experiments[0].points[0].latency;
	l->unmatched = 11;
	l->unended = 12;
	l->crossed = 13;
	l->lost = 14;
	text = report(&p, false);
	says(text, "Latency point 'req': 7200 intervals\n");
	says(text, "At 0 %: mean 5.");
	says(text, "p99.9 24.");
	says(text, "13 begun before the experiment, 11 ends without a begin, 12 begins");
	says(text, "14 lost (too many in flight)");
	says(text, "\na.c:1  p50 ");
	says(text, "The mean by Little's law is not told");
	says(text, "A percentile is told where");
	assert_null(strstr(text, "percentiles are blurred"));
	free(text);
	/* Half of a millisecond between samples: too far for requests of 2 ms. */
	p.experiments[0].x.period_ns = 1000000;
	text = report(&p, false);
	says(text, "Samples are 1.0 ms apart");
	free(text);

	text = report(&p, true);
	o = json_tokener_parse(text);
	assert_non_null(o);
	point = json_object_array_get_idx(json_object_object_get(o, "points"), 0);
	ns = json_object_object_get(json_object_object_get(point, "intervals"), "ns");
	near_to(json_object_get_double(json_object_object_get(ns, "p50")), 4 * MS, 0.1 * MS, "p50");
	assert_int_equal(json_object_get_int(json_object_object_get(
				 json_object_object_get(point, "intervals"), "lost")),
			 14);
	line = json_object_array_get_idx(json_object_object_get(point, "lines"), 0);
	latency = json_object_object_get(line, "latency");
	assert_int_equal(json_object_array_length(json_object_object_get(latency, "cells")), 2);
	latency = json_object_array_get_idx(json_object_object_get(latency, "at"), 1);
	near_to(json_object_get_double(
			json_object_object_get(json_object_object_get(latency, "p99"), "effect")),
		10.0 / 24, 0.03, "p99's effect");
	json_object_put(o);
	free(text);
	profile_free(&p);
}

/* Begins and ends that never match are no point that never fired. */
static void nothing_matched(void **state)
{
	static const struct counted none;
	struct profile p = {0};
	char *text;

	(void)state;
	add(&p, LINE, 0, &none)->unmatched = 5;
	sample_visits(&p, LINE, 0, 1000000, 7);
	text = report(&p, false);
	says(text, "Latency point 'req' has begins or ends, but no interval");
	says(text, "5 ends without a begin");
	assert_null(strstr(text, "'req' never fired"));
	free(text);
	profile_free(&p);
}

static void hostile(void **state)
{
	static struct counted c;
	struct profile p = {0};
	char *text;

	(void)state;
	c = (struct counted){.sum = INT64_MIN, .n = 3};
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		c.buckets[i] = UINT64_MAX;
	for (int i = 0; i < 6; i++) {
		struct profile_latency *l = add(&p, LINE, i / 5.0, &c);

		l->unmatched = l->lost = l->crossed = l->unended = UINT64_MAX;
		l->in_flight_begin = i % 2 ? INT64_MIN : INT64_MAX;
		l->in_flight_end = i % 3 ? INT64_MIN : INT64_MAX;
		p.experiments[i].x.duration = i % 2 ? 0 : UINT64_MAX;
		p.experiments[i].x.period_ns = UINT64_MAX;
		c.sum = i % 2 ? INT64_MIN : INT64_MAX;
	}
	text = report(&p, false);
	assert_null(strstr(text, "nan"));
	free(text);
	text = report(&p, true);
	assert_null(strstr(text, "NaN"));
	free(text);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_of_the_slow_class),
		cmocka_unit_test(a_fine_grid),
		cmocka_unit_test(long_intervals_count_more),
		cmocka_unit_test(intervals_hold_what_they_promise),
		cmocka_unit_test(a_slow_machine_is_taken_out),
		cmocka_unit_test(littles_law_beside_it),
		cmocka_unit_test(littles_law_disagrees),
		cmocka_unit_test(counters_only),
		cmocka_unit_test(the_report_says_it),
		cmocka_unit_test(nothing_matched),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
