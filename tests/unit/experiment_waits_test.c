// SPDX-License-Identifier: BSD-2-Clause
/* How the runner draws waits, and how long and fast their experiments are. */
#include "experiment_run.h"

static size_t selected_times(const char *line)
{
	size_t n = 0;

	for (size_t i = 0; i < n_records; i++)
		n += strcmp(records[i].selected, line) == 0;
	return n;
}

/* Two threads run all of the time. */
static void waits_are_drawn_by_their_time(void **state)
{
	(void)state;
	fake.wait_share = 1;
	fake.wait_ns = 5 * MSEC;
	open_runner();
	run_until(fake.now + 60000 * MSEC);
	assert_uint_in_range(selected_times(LINE_W), n_records / 5, n_records / 2 - 1);
}

/* However much they take; where nothing runs for long. */
static void at_most_half_of_the_draws_are_waits(void **state)
{
	(void)state;
	fake.wait_share = 1;
	fake.wait_ns = 5 * MSEC;
	fake.tick_weight_ns = TICK_NS / 100;
	open_runner();
	run_until(fake.now + 60000 * MSEC);
	assert_uint_in_range(selected_times(LINE_W), n_records / 3, 2 * n_records / 3);
}

static void waits_that_matter_little_are_not_drawn(void **state)
{
	(void)state;
	fake.wait_share = 0.04;
	fake.wait_ns = 5 * MSEC;
	open_runner();
	run_until(fake.now + 10000 * MSEC);
	assert_int_equal(selected_times(LINE_W), 0);
}

static void waits_that_last_too_long_are_not_drawn(void **state)
{
	(void)state;
	fake.wait_share = 1;
	fake.wait_ns = 400 * MSEC;
	open_runner();
	run_until(fake.now + 10000 * MSEC);
	assert_int_equal(selected_times(LINE_W), 0);
}

/* Ten waits an experiment. */
static void they_are_if_they_are_asked_for(void **state)
{
	(void)state;
	options.what = 2; /* the first kind: disk */
	fake.wait_share = 0.04;
	fake.wait_ns = 20 * MSEC;
	options.shortest_ns = 50 * MSEC;
	open_runner();
	run_until(fake.now + 10000 * MSEC);
	assert_true(n_records > 5);
	assert_int_equal(selected_times(LINE_W), n_records);
	for (size_t i = 1; i < n_records; i++)
		assert_true(records[i].elapsed >= 200 * MSEC);
}

static void lines_alone_are_drawn_if_those_are_asked_for(void **state)
{
	(void)state;
	options.what = 1;
	fake.wait_share = 1;
	fake.wait_ns = 5 * MSEC;
	open_runner();
	run_until(fake.now + 10000 * MSEC);
	assert_true(n_records > 10);
	assert_int_equal(selected_times(LINE_W), 0);
}

/* A wait that takes all of the time: the global delay must not grow by more than 80 % of it. */
static void the_global_delay_does_not_grow_by_all_of_the_time(void **state)
{
	static const double steep[] = {0.5, 1};

	(void)state;
	options.grid = steep;
	options.n_grid = 2;
	options.what = 3;
	fake.wait_share = 1;
	fake.wait_ns = 5 * MSEC;
	open_runner();
	run_until(fake.now + 120000 * MSEC);
	assert_true(selected_times(LINE_W) > 10);
	for (size_t i = 0; i < n_records; i++)
		assert_true(strcmp(records[i].selected, LINE_W) != 0 || records[i].speedup <= 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(waits_are_drawn_by_their_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(at_most_half_of_the_draws_are_waits, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(waits_that_matter_little_are_not_drawn, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(waits_that_last_too_long_are_not_drawn, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(they_are_if_they_are_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_alone_are_drawn_if_those_are_asked_for,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_global_delay_does_not_grow_by_all_of_the_time,
						set_up, tear_down),
	};

	return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
