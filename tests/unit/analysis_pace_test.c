// SPDX-License-Identifier: BSD-2-Clause
/* Programs whose pace changes while they are measured, slowly, from burst to burst, or because
 * others take the CPU for some of the time; and what scaling a histogram does to it. */
#include "analysis/analysis.h"
#include "analysis/collect.h"
#include "analysis/histogram.h"
#include "analysis_sample.h"
#include "base/rng.h"
#include "shared/histogram.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#define MS 1000000.0
#define LINE "a.c:1"
#define EXPERIMENTS 120
#define REQUESTS 200

static struct profile_latency *latency_of(const uint64_t *counts)
{
	struct profile_latency *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->buckets = calloc(HISTOGRAM_BUCKETS, sizeof(*l->buckets));
	assert_non_null(l->buckets);
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (counts[i])
			l->buckets[l->n_buckets++] = (struct profile_bucket){i, counts[i]};
	return l;
}

/* One request in twenty, by chance, takes 12.5 ms more than the others' 2.5 ms; the line is those.
 * All times @pace times that, and a share
 * @late of them is 8 ms longer. */
static void add(struct profile *p, struct rng *r, double speedup, double pace, double late)
{
	struct profile_run_experiment *x =
		sample_experiment(p, LINE, speedup, (uint64_t)(1000 * MS));
	struct profile_point *point = sample_point(x, PROFILE_LATENCY, "req");
	static uint64_t counts[HISTOGRAM_BUCKETS];
	int64_t sum = 0;

	memset(counts, 0, sizeof(counts));
	for (int i = 0; i < REQUESTS; i++) {
		double ns = 2.5 * (1 - speedup) + (rng_below(r, 20) == 0 ? 12.5 : 0);

		ns *= pace * (0.99 + 0.02 * rng_unit(r)) * MS;
		ns += rng_unit(r) < late ? 8 * MS : 0;
		counts[histogram_bucket((uint64_t)ns)]++;
		sum += (int64_t)ns;
	}
	point->latency = latency_of(counts);
	point->latency->sum_ns = sum;
	point->arrivals = point->departures = REQUESTS;
	x->x.foreign = late;
}

static struct analysis analysed(const struct profile *p)
{
	struct analysis a;

	analyse(p, 7, &a);
	assert_true(a.n_points == 1 && a.points[0].n_lines == 1);
	assert_non_null(a.points[0].lines[0].latency);
	return a;
}

static const struct analysis_change *effect(const struct analysis *a, enum latency_statistic s,
					    double speedup)
{
	const struct analysis_latency *l = a->points[0].lines[0].latency;

	for (size_t i = 0; i < l->n_cells; i++)
		if (fabs(l->cells[i].speedup - speedup) < 1e-3)
			return &l->cells[i].change[s];
	fail();
	return NULL;
}

static void near_to(double got, double wanted, double by, const char *what)
{
	if (!(fabs(got - wanted) <= by))
		fail_msg("%s is %g, not %g +- %g", what, got, wanted, by);
}

static double speedup_of(struct rng *r)
{
	return rng_unit(r) < 0.4 ? 0 : 0.25 * (double)(1 + rng_below(r, 3));
}

/* The pace is 12 % up and down, three times in the run. How many slow ones an experiment has by
 * chance moves its mean by as much, so that the mean says nothing of the pace. */
static void slow_changes_are_taken_out(void **state)
{
	struct profile p = {0};
	struct analysis a;
	struct rng r;

	(void)state;
	rng_seed(&r, 5);
	for (int i = 0; i < EXPERIMENTS; i++)
		add(&p, &r, speedup_of(&r), 1 + 0.12 * sin(6 * M_PI * i / EXPERIMENTS), 0);
	a = analysed(&p);
	near_to(a.points[0].intervals->ns[LATENCY_P50], 2.5 * MS, 0.07 * MS, "p50");
	for (double s = 0.25; s < 1; s += 0.25) {
		near_to(effect(&a, LATENCY_P50, s)->effect, s, 0.008, "the effect on p50");
		near_to(effect(&a, LATENCY_P99, s)->effect, s / 6, 0.012, "the effect on p99");
		assert_true(effect(&a, LATENCY_P99, s)->high - effect(&a, LATENCY_P99, s)->low <
			    0.06);
	}
	analysis_free(&a);
	profile_free(&p);
}

/* For half of the run another program has a third of the CPU. What is said is of the other half,
 * and its times stay what they were. */
static void others_are_no_pace(void **state)
{
	struct profile p = {0};
	struct analysis a;
	struct rng r;

	(void)state;
	rng_seed(&r, 6);
	for (int i = 0; i < EXPERIMENTS; i++)
		add(&p, &r, speedup_of(&r), 1, i >= EXPERIMENTS / 2 ? 0.35 : 0);
	a = analysed(&p);
	near_to(a.points[0].intervals->ns[LATENCY_P50], 2.5 * MS, 0.05 * MS, "p50");
	near_to(a.points[0].intervals->ns[LATENCY_P99], 15 * MS, 0.5 * MS, "p99");
	for (double s = 0.25; s < 1; s += 0.25) {
		near_to(effect(&a, LATENCY_P50, s)->effect, s, 0.012, "the effect on p50");
		near_to(effect(&a, LATENCY_P99, s)->effect, s / 6, 0.03, "the effect on p99");
	}
	analysis_free(&a);
	profile_free(&p);
}

#define BURSTS 135
#define MINUTE 60e9

/* An experiment of 100 ms that is the @i-th of @burst, of one a minute. */
static void add_to_burst(struct profile *p, struct rng *r, const char *line, double speedup,
			 double period, uint64_t burst, int i)
{
	uint64_t visits = (uint64_t)(100 * MS / period);
	double noise = 0.98 + 0.04 * rng_unit(r);
	struct profile_run_experiment *x = sample_visits(
		p, line, speedup, (uint64_t)(period * noise * (double)visits), visits);

	x->x.burst = burst;
	x->x.began = (uint64_t)(MINUTE * (double)burst + 110 * MS * i);
}

/* Bursts of two experiments at 0 % and two others. A load between 1 and 3, another one in each: a
 * visit takes so many ms; or, if it is
 * @seldom low, 1 in every twelfth and 3 in the others. Of what a visit takes at a load of 1, a
 * third is in a.c:1, none in b.c:1. */
static struct analysis_change of_bursts(uint64_t seed, bool seldom)
{
	static const char *const lines[] = {"a.c:1", "b.c:1"};
	struct profile p = {0};
	struct analysis_change at;
	struct analysis a;
	struct rng r;

	rng_seed(&r, seed);
	for (uint64_t burst = 1; burst <= BURSTS; burst++) {
		double load = seldom ? (burst % 12 ? 3 : 1) : 1 + 2 * rng_unit(&r);

		for (int i = 0; i < 4; i++) {
			size_t line = rng_below(&r, 2);
			double speedup = i % 3 == 0 ? 0 : 0.25 * (double)(1 + rng_below(&r, 4));

			add_to_burst(&p, &r, lines[line], speedup,
				     (load - (line == 0 ? speedup / 3 : 0)) * MS, burst, i);
		}
	}
	analyse(&p, seed, &a);
	at = sample_line(&a, "a.c:1")->curve.at[1];
	analysis_free(&a);
	profile_free(&p);
	return at;
}

static void check_bursts(bool seldom, double wanted)
{
	double wide = 0, mean = 0;
	int missed = 0;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct analysis_change at = of_bursts(seed, seldom);

		missed += !(at.low <= wanted && at.high >= wanted);
		wide += (at.high - at.low) / 100;
		mean += at.effect / 100;
	}
	if (missed > 20 || wide > 0.045 || fabs(mean - wanted) > 0.005)
		fail_msg("%d intervals are missed, they are %g wide; the mean is %g for %g", missed,
			 wide, mean, wanted);
}

/* Each experiment is compared with those at 0 % of its own burst, also where lines had different
 * loads by chance: of 100 times the same, 5 or so are outside of their intervals, which also allow
 * for what a line is worth at different loads. */
static void loads_that_come_and_go_are_taken_out(void **state)
{
	(void)state;
	/* Loads between 1 and 3 are equally frequent: visits in some time, at 0 % and with a sixth
	 * less for each. */
	check_bursts(false, 1 - log(3) / log((3 - 1.0 / 6) / (1 - 1.0 / 6)));
	/* What differs from most bursts counts in full. */
	check_bursts(true, 1 - (1 + 11 / 3.0) / (1 / (1 - 1.0 / 6) + 11 / (3 - 1.0 / 6)));
}

static struct histogram_sums *scaled(const uint64_t *counts, double scale)
{
	struct profile_latency *l = latency_of(counts);
	struct observation o = {
		.latency = l, .weight = 1, .scale = 1, .length_scale = scale, .visits = 1e6};
	struct histogram_sums *sums = calloc(1, sizeof(*sums));
	struct histogram_blocks b = histogram_blocks_make(&o, 1);

	assert_non_null(sums);
	histogram_add(sums, &b, 0);
	histogram_blocks_free(&b);
	free(l->buckets);
	free(l);
	return sums;
}

/* Less than a bucket is not lost, none is counted twice, and the shape stays. */
static void scaling_keeps_what_is_there(void **state)
{
	static const double scales[] = {1, 0.999, 1.001, 1.003, 0.9, 1.3, 0.5, 2, 0.0001, 1000};
	static uint64_t counts[HISTOGRAM_BUCKETS];

	(void)state;
	memset(counts, 0, sizeof(counts));
	for (uint64_t i = 0; i < 100000; i++)
		counts[histogram_bucket((uint64_t)(10 * MS + 20.0 * (double)i))]++;
	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		struct histogram_sums *s = scaled(counts, scales[i]);

		near_to(s->total, 100000, 1e-3, "the number of intervals");
		for (double q = 0.1; q < 1; q += 0.2)
			near_to(histogram_quantile(s, q) / scales[i], (10 + 2 * q) * MS,
				2 + 0.02 * MS * (scales[i] < 0.1 ? 5 : 1), "a quantile");
		free(s);
	}
}

static void no_scale_leaves_the_table(void **state)
{
	static const double scales[] = {0, 1e-300, 1e-9, 1e9, 1e300, INFINITY};
	static uint64_t counts[HISTOGRAM_BUCKETS];

	(void)state;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		counts[i] = 1;
	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		struct histogram_sums *s = scaled(counts, scales[i]);

		near_to(s->total, HISTOGRAM_BUCKETS, 1e-3, "the number of intervals");
		free(s);
	}
}

static void the_middle_is_that_of_most(void **state)
{
	static uint64_t counts[HISTOGRAM_BUCKETS];
	struct profile_latency *l;

	(void)state;
	memset(counts, 0, sizeof(counts));
	counts[histogram_bucket((uint64_t)MS)] = 92;
	l = latency_of(counts);
	near_to(exp(histogram_middle(l, 0)), MS, 0.01 * MS, "the middle of one length");
	free(l->buckets);
	free(l);
	counts[histogram_bucket(3)] = 4;
	counts[histogram_bucket((uint64_t)(500 * MS))] = 4;
	l = latency_of(counts);
	near_to(exp(histogram_middle(l, 0)), MS, 0.01 * MS, "the middle without the edges");
	l->n_buckets = 0;
	assert_true(isnan(histogram_middle(l, 0)));
	free(l->buckets);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_changes_are_taken_out),
		cmocka_unit_test(others_are_no_pace),
		cmocka_unit_test(loads_that_come_and_go_are_taken_out),
		cmocka_unit_test(scaling_keeps_what_is_there),
		cmocka_unit_test(no_scale_leaves_the_table),
		cmocka_unit_test(the_middle_is_that_of_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
