// SPDX-License-Identifier: BSD-2-Clause
/* Slopes from the windows of a profile: the ratio, its interval, and which lines have them. */
#include "analysis/analysis.h"
#include "analysis/compare.h"
#include "analysis/slopes.h"
#include "base/error.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ULL

struct text {
	char *data;
	size_t size;
	FILE *f;
};

static void begin(struct text *t)
{
	t->f = open_memstream(&t->data, &t->size);
	assert_non_null(t->f);
	(void)fputs("{\"type\":\"startup\",\"time\":1}\n", t->f);
}

static unsigned int seen = 10;
static unsigned long long window_ms = 250;
static const char *name_of_point = "done";

static void window(struct text *t, size_t n, unsigned long long time, unsigned long long own,
		   const char *places)
{
	(void)fprintf(t->f,
		      "{\"type\":\"slopes\",\"point\":\"%s\",\"began\":%zu,\"length\":%llu,"
		      "\"seen\":%u,\"visits\":10,\"time_ns\":%llu,\"own_ns\":%llu,"
		      "\"places\":\"%s\"}\n",
		      name_of_point, n + 1, window_ms * MS, seen, time, own, places);
}

static void analysed(struct text *t, struct profile *p, struct analysis *a)
{
	struct error e = {.text = ""};

	assert_int_equal(fclose(t->f), 0);
	*p = (struct profile){0};
	if (profile_read_buffer(p, t->data, t->size, "windows", &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(p->bad_lines, 0);
	analyse(p, 1, a);
}

static void end(struct text *t, struct profile *p, struct analysis *a)
{
	analysis_free(a);
	profile_free(p);
	free(t->data);
}

static const struct analysis_line *line(const struct analysis *a, const char *name)
{
	for (size_t i = 0; i < a->points[0].n_lines; i++)
		if (strcmp(a->points[0].lines[i].selected, name) == 0)
			return &a->points[0].lines[i];
	return NULL;
}

static void near(double value, double expected)
{
	if (!(fabs(value - expected) < 1e-9))
		fail_msg("%.9g is not %.9g", value, expected);
}

/* Of 1000 ms, 100 are the profiler's: what remains is what slopes are shares of. */
static void sums_are_divided_by_sums(void **state)
{
	struct text t = {0};
	struct profile p;
	struct analysis a;

	(void)state;
	begin(&t);
	window(&t, 0, 400 * MS, 40 * MS, "72000000\\ta.c:1\\n0\\ta.c:2\\n36000000\\t[disk]\\n");
	window(&t, 1, 600 * MS, 60 * MS, "378000000\\ta.c:1\\n0\\ta.c:2\\n54000000\\t[disk]\\n");
	analysed(&t, &p, &a);
	assert_int_equal(a.n_points, 1);
	assert_string_equal(a.points[0].name, "done");
	assert_int_equal(a.points[0].visits, 20);
	near(a.points[0].self_share, 0.1);
	near(line(&a, "a.c:1")->slope.effect, 0.5);
	near(line(&a, "[disk]")->slope.effect, 0.1);
	assert_int_equal(line(&a, "[disk]")->wait, 1);
	/* Both windows say the same: what is left is what the method may be off. */
	near(line(&a, "[disk]")->slope.low, 0.1 - hypot(0.008, 0.004));
	assert_true(line(&a, "a.c:1")->slope.low < 0.3 && line(&a, "a.c:1")->slope.high > 0.7);
	/* Nothing was tried, and a line without a slope is not worth a row. */
	assert_null(line(&a, "a.c:2"));
	assert_true(analysis_slopes_only(&a.points[0]));
	/* What is sure to be gained comes first. */
	assert_string_equal(a.points[0].lines[0].selected, "[disk]");
	end(&t, &p, &a);
}

/* A visit counts as much in a long window, where chains are long, as in a short one: 10 visits of
 * 20 % and 40 of 40 % are 36 %. */
static void long_windows_weigh_by_their_visits(void **state)
{
	struct text t = {0};
	struct profile p;
	struct analysis a;

	(void)state;
	begin(&t);
	window(&t, 0, 10 * 125 * MS, 0, "250000000\\ta.c:1\\n");
	window_ms = 1000;
	window(&t, 1, 40 * 500 * MS, 0, "8000000000\\ta.c:1\\n");
	window_ms = 250;
	analysed(&t, &p, &a);
	near(line(&a, "a.c:1")->slope.effect, 0.36);
	end(&t, &p, &a);
}

/* Windows that differ by chance, of one length or each twice as long as the one before: 95 of 100
 * intervals hold the truth. What a window says is as sure as it is long. */
static void intervals_hold_of(size_t windows, bool grows)
{
	size_t held = 0, runs = 400;
	struct rng rng;

	rng_seed(&rng, 7);
	for (size_t run = 0; run < runs; run++) {
		struct text t = {0};
		struct profile p;
		struct analysis a;
		const struct analysis_change *c;

		begin(&t);
		for (size_t i = 0; i < windows; i++, window_ms *= grows ? 2 : 1) {
			double x = (double)window_ms / 250,
			       time = 200e6 * (1 + rng_unit(&rng)) * x * x,
			       share = 0.3 + 0.6 * (rng_unit(&rng) - 0.5) / sqrt(x);
			char places[64];

			(void)snprintf(places, sizeof(places), "%.0f\\ta.c:1\\n", share * time);
			window(&t, i, (unsigned long long)time, 0, places);
		}
		window_ms = 250;
		analysed(&t, &p, &a);
		c = &line(&a, "a.c:1")->slope;
		held += c->low <= 0.3 && c->high >= 0.3;
		end(&t, &p, &a);
	}
	print_message("%zu of %zu\n", held, runs);
	assert_true(held > runs * 92 / 100 && held <= runs * 99 / 100);
}

static void intervals_hold(void **state)
{
	(void)state;
	intervals_hold_of(20, false);
	intervals_hold_of(6, true);
}

/* A line gets a place in some windows only: those are what is known of it. */
static void windows_without_the_line_do_not_count(void **state)
{
	struct text t = {0};
	struct profile p;
	struct analysis a;

	(void)state;
	begin(&t);
	window(&t, 0, 500 * MS, 0, "250000000\\ta.c:1\\n");
	window(&t, 1, 500 * MS, 0, "250000000\\ta.c:1\\n100000000\\ta.c:9\\n");
	analysed(&t, &p, &a);
	near(line(&a, "a.c:1")->slope.effect, 0.5);
	near(line(&a, "a.c:9")->slope.effect, 0.2);
	assert_true(isnan(line(&a, "a.c:9")->slope.low));
	end(&t, &p, &a);
}

/* A window has a record of each point, one after the other. */
static void points_have_visits_of_their_own(void **state)
{
	struct text t = {0};
	struct profile p;
	struct analysis a;

	(void)state;
	begin(&t);
	for (size_t i = 0; i < 2; i++) {
		name_of_point = "done";
		seen = 10;
		window(&t, i, 500 * MS, 0, "250000000\\ta.c:1\\n");
		name_of_point = "other";
		seen = 3;
		window(&t, i, 500 * MS, 0, "100000000\\ta.c:1\\n");
		window(&t, i, 500 * MS, 0, "200000000\\ta.c:2\\n");
	}
	name_of_point = "done";
	seen = 10;
	analysed(&t, &p, &a);
	assert_int_equal(a.n_points, 2);
	assert_int_equal(a.points[0].visits, 20);
	assert_int_equal(a.points[1].visits, 6);
	near(a.points[1].lines[0].slope.effect, 0.4);
	end(&t, &p, &a);
}

static void intervals(struct text *t, size_t n, const char *class, unsigned long long time,
		      const char *places)
{
	(void)fprintf(t->f,
		      "{\"type\":\"slopes\",\"point\":\"request\",\"class\":\"%s\",\"began\":%zu,"
		      "\"length\":%llu,\"seen\":5,\"visits\":5,\"time_ns\":%llu,\"own_ns\":%llu,"
		      "\"places\":\"%s\"}\n",
		      class, n + 1, 250 * MS, time, time / 10, places);
}

/* Of each class on its own, and no slope. A tenth is the profiler's. */
static void intervals_by_length(void **state)
{
	struct text t = {0};
	struct profile p;
	struct analysis a;
	const struct analysis_line *l;

	(void)state;
	begin(&t);
	intervals(&t, 0, "all", 50 * MS, "45000000\\ta.c:1\\n");
	for (size_t i = 1; i < 4; i++) {
		intervals(&t, i, "p50", 10 * MS, "900000\\ta.c:1\\n");
		intervals(&t, i, "max", 100 * MS, "45000000\\ta.c:1\\n");
		intervals(&t, i, "max", 100 * MS, "9000000\\ta.c:2\\n");
		intervals(&t, i, "p11", 100 * MS, "90000000\\ta.c:2\\n");
	}
	analysed(&t, &p, &a);
	assert_int_equal(a.points[0].kind, PROFILE_LATENCY);
	assert_true(analysis_has_classes(&a.points[0]));
	assert_false(analysis_has_slopes(&a.points[0]));
	assert_int_equal(a.points[0].classes[0].n, 15);
	assert_int_equal(a.points[0].classes[1].n, 0);
	assert_int_equal(a.points[0].classes[3].n, 15);
	near(a.points[0].classes[3].mean_ns, 20 * MS);
	l = line(&a, "a.c:1");
	assert_true(isnan(l->slope.effect) && isnan(l->in_class[1].effect));
	near(l->in_class[0].effect, 0.1);
	near(l->in_class[3].effect, 0.5);
	near(l->in_class[3].low, 0.5);
	near(line(&a, "a.c:2")->in_class[3].effect, 0.1);
	end(&t, &p, &a);
}

/* What is no place is left out, whatever a file says. */
static void hostile_places(void **state)
{
	struct text t = {0};
	struct profile p;
	struct analysis a;

	(void)state;
	begin(&t);
	window(&t, 0, 0, 9, "\\t\\n5\\n5\\t\\nx\\ta.c:1\\n99999999999999999999\\ta.c:2\\n");
	window(&t, 1, 10, 9, "3\\ta.c:3");
	analysed(&t, &p, &a);
	assert_null(line(&a, "a.c:1"));
	near(line(&a, "a.c:3")->slope.effect, 3);
	end(&t, &p, &a);
}

/* The line took half of a round and was made 40 % faster: a fifth less time, and 3/8 of it. */
static void before_and_after(void **state)
{
	struct text t[2] = {{0}};
	struct profile p[2];
	struct analysis a[2];
	struct comparison c;
	struct promise s;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		begin(&t[k]);
		for (size_t i = 0; i < 8; i++) {
			/* Two records of one window are one window. */
			seen = (k ? 125 : 100) + i % 2;
			window(&t[k], i, 1000 * MS, 0,
			       k       ? i % 2 ? "374000000\\ta.c:1\\n" : "376000000\\ta.c:1\\n"
			       : i % 2 ? "499000000\\ta.c:1\\n"
				       : "501000000\\ta.c:1\\n");
			window(&t[k], i, 1000 * MS, 0, "100000000\\tb.c:1\\n");
		}
		analysed(&t[k], &p[k], &a[k]);
	}
	seen = 10;
	compare(&p[0], &a[0], &p[1], &a[1], &c);
	assert_int_equal(c.n_points, 1);
	assert_true(c.points[0].slopes_only);
	assert_true(fabs(c.points[0].gain.effect - 0.2) < 0.001);
	assert_int_equal(c.points[0].n_lines, 2);
	near(c.points[0].lines[0].slope.effect, -0.125);
	assert_true(c.points[0].lines[0].differs && !c.points[0].lines[1].differs);
	s = compare_promise(&c.points[0], "a.c:1", 0.4);
	near(s.predicted.effect, 0.2);
	assert_int_equal(s.outcome, PROMISE_CAME_TRUE);
	assert_int_equal(compare_promise(&c.points[0], "a.c:1", 0.8).outcome, PROMISE_BROKEN);
	compare_free(&c);
	for (size_t k = 0; k < 2; k++)
		end(&t[k], &p[k], &a[k]);
}

/* "a.c:1" and "a.c:2" are of one function, and of one row. */
static size_t by_file(const char *location, void *arg)
{
	return location[0] == *(const char *)arg ? 0 : location[0] == 'b' ? 1 : SIZE_MAX;
}

static void rows_of_several_places(void **state)
{
	struct text t = {0};
	struct profile p;
	struct analysis a;
	struct analysis_change rows[3];
	char first = 'a';

	(void)state;
	begin(&t);
	for (size_t i = 0; i < 4; i++) {
		/* Two records of one window are one window. */
		window(&t, i, 1000 * MS, 0, "100000000\\ta.c:1\\n50000000\\tc.c:1\\n");
		window(&t, i, 1000 * MS, 0, "200000000\\ta.c:2\\n400000000\\tb.c:1\\n");
	}
	analysed(&t, &p, &a);
	slopes_of_rows(&p, slopes_point(&p), 3, by_file, &first, rows);
	near(rows[0].effect, 0.3);
	near(rows[0].low, 0.3 - hypot(0.008, 0.012));
	near(rows[1].effect, 0.4);
	assert_true(isnan(rows[2].effect));
	end(&t, &p, &a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_several_places),
		cmocka_unit_test(sums_are_divided_by_sums),
		cmocka_unit_test(long_windows_weigh_by_their_visits),
		cmocka_unit_test(intervals_hold),
		cmocka_unit_test(windows_without_the_line_do_not_count),
		cmocka_unit_test(points_have_visits_of_their_own),
		cmocka_unit_test(intervals_by_length),
		cmocka_unit_test(hostile_places),
		cmocka_unit_test(before_and_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
