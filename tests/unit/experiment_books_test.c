// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/books.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SEC 1000000000ULL

static struct backend_totals begin, end;

static int fresh(void **state)
{
	(void)state;
	begin = (struct backend_totals){.time_ns = 100 * SEC, .n_points = 1};
	end = (struct backend_totals){.time_ns = 101 * SEC, .n_points = 1};
	return 0;
}

static struct profile_point throughput(size_t index)
{
	struct profile_point p = {.kind = PROFILE_THROUGHPUT};

	books_point(&begin, &end, index, &p);
	return p;
}

static struct profile_point latency(void)
{
	struct profile_point p = {.kind = PROFILE_LATENCY};

	books_point(&begin, &end, 0, &p);
	return p;
}

static void every_number_is_a_difference(void **state)
{
	struct profile_experiment x = {
		.speedup = 0.25, .owed = 5, .ahead = 4, .threads = 6, .imbalance = -7};
	char line[] = "a.c:1";

	(void)state;
	x.selected = line;
	begin = (struct backend_totals){
		.time_ns = 1000,
		.growth = 10,
		.hits = 1,
		.hit_ns = 2,
		.paid = 3,
		.payments = 4,
		.credited = -50,
		.rq_credited = 60,
		.forgiven = 7,
		.oversleep = 8,
		.samples = 9,
		.selected_samples = 10,
		.outside_wait_ns = 100,
		.busy_ns = 1000,
		.executed_ns = 900,
		.stolen_ns = 50,
		.pause_latency_ns = 77,
		.selected_ns = 11,
		.held = 12,
		.owed_at_exit = 13,
		.held_asleep = 14,
		.period_ns = 500,
	};
	end = (struct backend_totals){
		.time_ns = 3000,
		.growth = 510,
		.hits = 12,
		.hit_ns = 23,
		.paid = 34,
		.payments = 45,
		.credited = -60,
		.rq_credited = 50,
		.forgiven = 78,
		.oversleep = -1,
		.samples = 100,
		.selected_samples = 30,
		.outside_wait_ns = 300,
		.busy_ns = 2000,
		.executed_ns = 1500,
		.stolen_ns = 150,
		.pause_latency_ns = 99,
		.selected_ns = 21,
		.held = 32,
		.owed_at_exit = 43,
		.held_asleep = 64,
		.period_ns = 250,
	};
	books_experiment(&begin, &end, UINT64_MAX, &x);
	assert_string_equal(x.selected, "a.c:1");
	assert_true(x.speedup == 0.25);
	assert_int_equal(x.elapsed, 2000);
	assert_int_equal(x.growth, 500);
	assert_int_equal(x.duration, 1500);
	assert_int_equal(x.hits, 11);
	assert_int_equal(x.hit_ns, 21);
	assert_int_equal(x.paid, 31);
	assert_int_equal(x.payments, 41);
	assert_int_equal(x.credited, -10);
	assert_int_equal(x.rq_credited, -10);
	assert_int_equal(x.forgiven, 71);
	assert_int_equal(x.oversleep, -9);
	assert_int_equal(x.samples, 91);
	assert_int_equal(x.selected_samples, 20);
	assert_int_equal(x.selected_ns, 10);
	assert_int_equal(x.executed_ns, 600);
	assert_true(x.stolen == 0.1);
	assert_int_equal(x.held, 20);
	assert_int_equal(x.owed_at_exit, 30);
	assert_int_equal(x.held_asleep, 50);
	assert_int_equal(x.began, 1000);
	assert_int_equal(x.period_ns, 500);
	assert_int_equal(x.late, 99);
	assert_int_equal(x.owed, 5);
	assert_int_equal(x.threads, 6);
	assert_int_equal(x.ahead, 4);
	assert_int_equal(x.imbalance, -7);
	assert_true(x.foreign == 0.2);
}

static void what_comes_after_the_first_part_is_known(void **state)
{
	struct backend_totals settled = begin;
	struct profile_experiment x = {0};
	struct profile_point p = {.kind = PROFILE_THROUGHPUT, .delta = 5};

	(void)state;
	settled.time_ns = begin.time_ns + SEC / 4;
	settled.growth = SEC / 8;
	settled.executed_ns = 1000;
	end.growth = SEC / 2;
	end.executed_ns = 1500;
	books_settled(&settled, &end, UINT64_MAX, &x);
	assert_int_equal(x.settled_elapsed, 3 * SEC / 4);
	assert_int_equal(x.settled_duration, 3 * SEC / 8);
	assert_int_equal(x.settled_executed_ns, 500);
	settled.points[0].visits = 1001;
	end.points[0].visits = 1005;
	books_settled_point(&settled, &end, 0, &p);
	assert_int_equal(p.settled_delta, 4);

	/* The program had ended before. */
	x = (struct profile_experiment){0};
	books_settled(&settled, &end, begin.time_ns + SEC / 8, &x);
	assert_int_equal(x.settled_elapsed, 0);
}

static void the_program_s_end_cuts_the_clock_only(void **state)
{
	struct profile_experiment x = {0};

	(void)state;
	end.growth = SEC / 5;
	books_experiment(&begin, &end, 100 * SEC + SEC / 2, &x);
	assert_int_equal(x.elapsed, SEC / 2);
	assert_int_equal(x.growth, SEC / 5);
	assert_int_equal(x.duration, SEC / 2 - SEC / 5);
	books_experiment(&begin, &end, 200 * SEC, &x);
	assert_int_equal(x.elapsed, SEC);
	books_experiment(&begin, &end, 99 * SEC, &x);
	assert_int_equal(x.elapsed, 0);
	assert_int_equal(x.duration, 0);
}

static void impossible_readings_do_not_wrap(void **state)
{
	struct profile_experiment x = {0};

	(void)state;
	end.growth = 2 * SEC;
	begin.hits = 10;
	end.hits = 9;
	begin.credited = INT64_MIN;
	end.credited = INT64_MAX;
	end.outside_wait_ns = 5;
	books_experiment(&begin, &end, UINT64_MAX, &x);
	assert_int_equal(x.duration, 0);
	assert_int_equal(x.hits, 0);
	assert_true(x.foreign == 0);
	end.busy_ns = 3;
	books_experiment(&begin, &end, UINT64_MAX, &x);
	assert_true(x.foreign == 1);
}

static void visits_are_timed_in_virtual_time(void **state)
{
	struct profile_point p;

	(void)state;
	begin.points[0].visits = 1000;
	end.points[0] = (struct backend_point){
		.visits = 1005,
		.first_ns = 100 * SEC + 1000,
		.last_ns = 100 * SEC + 9000,
		.first_local = 500,
		.last_local = 2500,
	};
	p = throughput(0);
	assert_int_equal(p.delta, 5);
	assert_true(p.timed);
	assert_int_equal(p.first_ns, 1000);
	assert_int_equal(p.last_ns, 9000);
	assert_int_equal(p.effective_ns, 6000);
	assert_int_equal(p.timed_visits, 5);

	/* Not those of the experiment's first part. */
	end.points[0].timed_visits = 4;
	assert_int_equal(throughput(0).timed_visits, 4);
	end.points[0].timed_visits = 1;
	assert_int_equal(throughput(0).timed_visits, 5);

	/* The first visitor was ahead of the last one: more virtual time than wall time. */
	end.points[0].last_local = 100;
	assert_int_equal(throughput(0).effective_ns, 8400);

	/* Between begin() and the first reading. */
	end.points[0].first_ns = 100 * SEC - 10;
	p = throughput(0);
	assert_true(p.timed);
	assert_int_equal(p.first_ns, 0);
	assert_int_equal(p.effective_ns, 9410);
}

static void assert_untimed(uint64_t delta)
{
	struct profile_point p = throughput(0);

	assert_false(p.timed);
	assert_int_equal(p.delta, delta);
	assert_int_equal(p.first_ns, 0);
	assert_int_equal(p.last_ns, 0);
	assert_int_equal(p.effective_ns, 0);
}

static void what_cannot_be_timed_is_not(void **state)
{
	const struct backend_point good = {
		.visits = 2, .first_ns = 100 * SEC + 1, .last_ns = 100 * SEC + 50};

	(void)state;
	assert_untimed(0);
	end.points[0] = good;
	assert_true(throughput(0).timed);
	end.points[0].visits = 1;
	assert_untimed(1);
	end.points[0] = good;
	end.points[0].last_ns = good.first_ns;
	assert_untimed(2);
	end.points[0] = good;
	end.points[0].last_local = 49;
	assert_untimed(2);
	end.points[0].last_local = INT64_MAX;
	end.points[0].first_local = INT64_MIN;
	(void)throughput(0);
	end.points[0] = good;
	end.points[0].first_ns = 0;
	assert_untimed(2);
}

static void points_may_become_known_in_between(void **state)
{
	(void)state;
	end.n_points = 3;
	end.points[2].visits = 40;
	assert_int_equal(throughput(2).delta, 40);
	assert_int_equal(throughput(3).delta, 0);
	begin.points[0].visits = 10;
	end.points[0].visits = 9;
	assert_int_equal(throughput(0).delta, 0);
	/* Beyond n_points is not read. */
	begin.points[2].visits = 39;
	assert_int_equal(throughput(2).delta, 40);
}

static void assert_in_flight(uint64_t a0, uint64_t d0, uint64_t a1, uint64_t d1, int64_t expected)
{
	begin.points[0] = (struct backend_point){.visits = a0, .departures = d0};
	end.points[0] = (struct backend_point){.visits = a1, .departures = d1};
	assert_int_equal(latency().difference, expected);
}

static void latency_is_by_littles_law(void **state)
{
	struct profile_point p;

	(void)state;
	assert_in_flight(100, 90, 300, 284, 13);
	p = latency();
	assert_int_equal(p.arrivals, 200);
	assert_int_equal(p.departures, 194);
	assert_int_equal(p.delta, 0);
	assert_false(p.timed);
	assert_int_equal(books_visits(&p), 194);
	assert_in_flight(0, 0, 0, 0, 0);
	assert_in_flight(5, 5, 6, 5, 1); /* a half */
	assert_in_flight(5, 5, 5, 6, -1);
	assert_in_flight(6, 5, 7, 5, 2); /* 1.5 */
	assert_in_flight(6, 5, 5, 6, 0);
	/* The program can write its counters. */
	assert_in_flight(INT64_MAX, 0, INT64_MAX, 0, INT64_MAX);
	assert_in_flight(0, 1ULL << 63, 0, 1ULL << 63, INT64_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_number_is_a_difference, fresh),
		cmocka_unit_test_setup(what_comes_after_the_first_part_is_known, fresh),
		cmocka_unit_test_setup(the_program_s_end_cuts_the_clock_only, fresh),
		cmocka_unit_test_setup(impossible_readings_do_not_wrap, fresh),
		cmocka_unit_test_setup(visits_are_timed_in_virtual_time, fresh),
		cmocka_unit_test_setup(what_cannot_be_timed_is_not, fresh),
		cmocka_unit_test_setup(points_may_become_known_in_between, fresh),
		cmocka_unit_test_setup(latency_is_by_littles_law, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
