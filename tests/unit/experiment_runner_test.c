// SPDX-License-Identifier: BSD-2-Clause
/* The state machine: what is called in which order, when, and what reaches the sink. */
#include "experiment_run.h"

static void its_first_part_is_told_apart(void **state)
{
	uint64_t begin;

	(void)state;
	options.settling_part = 10;
	options.fixed_line = LINE_B;
	options.fixed_speedup = 0;
	open_runner();
	run_to_begin();
	begin = fake.now;
	assert_int_equal(fake.setup.settling_ns, 50 * MSEC);
	assert_int_equal(next, begin + 50 * MSEC);
	memset(fake.calls, 0, sizeof(fake.calls));
	run_until(next);
	assert_string_equal(fake.calls, "s");
	assert_int_equal(next, begin + 500 * MSEC);
	run_until(next);
	assert_int_equal(n_records, 1);
	assert_int_equal(records[0].elapsed, 500 * MSEC);
	assert_int_equal(records[0].settled_elapsed, 450 * MSEC);
	assert_int_equal(records[0].settled_duration, 450 * MSEC);
}

static void an_experiment_takes_its_time(void **state)
{
	uint64_t begin;

	(void)state;
	open_runner();
	run_to_begin();
	begin = fake.now;
	assert_int_equal(next, begin + 500 * MSEC);

	/* Early calls do nothing. */
	fake.calls[0] = 0;
	fake_advance(&fake, next - 1);
	assert_int_equal(runner_step(runner, fake.now, &next), 0);
	assert_int_equal(next, begin + 500 * MSEC);
	assert_string_equal(fake.calls, "");

	/* end, then the last reading, then the debts; then the experiment's samples are put aside.
	 */
	memset(fake.calls, 0, sizeof(fake.calls));
	run_until(next);
	assert_string_equal(fake.calls, "esod");
	assert_int_equal(n_records, 1);
	assert_int_equal(records[0].elapsed, 500 * MSEC);
	assert_int_equal(records[0].duration, records[0].elapsed - records[0].growth);
	assert_int_equal(records[0].owed, 123);
	assert_int_equal(records[0].threads, 2);

	/* Nobody is slowed down in the pause between; then samples, intervals, begin, the first
	 * reading. */
	assert_int_equal(next, begin + 510 * MSEC);
	assert_false(fake.running);
	memset(fake.calls, 0, sizeof(fake.calls));
	run_until(next);
	assert_string_equal(fake.calls, "dibs");
	assert_true(fake.running);
}

static void a_late_step_makes_a_longer_experiment(void **state)
{
	(void)state;
	open_runner();
	run_to_begin();
	fake_advance(&fake, next + 40 * MSEC);
	assert_int_equal(runner_step(runner, fake.now, &next), 0);
	assert_int_equal(records[0].elapsed, 540 * MSEC);
	assert_int_equal(next, fake.now + 10 * MSEC);
}

static void without_a_sample_it_waits(void **state)
{
	(void)state;
	open_runner();
	fake.idle = true;
	for (uint64_t i = 0; i < 50; i++) {
		fake_advance(&fake, next);
		assert_int_equal(runner_step(runner, fake.now, &next), 0);
		assert_int_equal(next, fake.now + 20 * MSEC);
	}
	/* A sample without a line is none. */
	fake.extra[0] = (struct backend_sample){0x8000, 100};
	fake.n_extra = 1;
	run_until(next);
	assert_false(fake.running);
	fake.idle = false;
	run_until(next);
	assert_true(fake.running);
	assert_int_equal(n_records, 0);
}

static void a_line_whose_code_is_gone_is_not_drawn(void **state)
{
	(void)state;
	open_runner();
	fake.gone = LINE_B;
	run_until(fake.now + 30000 * MSEC);
	assert_true(n_records > 40);
	for (size_t i = 0; i < n_records; i++)
		assert_string_not_equal(records[i].selected, LINE_B);
	fake.unloaded = true;
	run_until(fake.now + 2000 * MSEC);
	assert_false(fake.running);
}

static void few_visits_lengthen_the_next_ones(void **state)
{
	static const uint64_t expected[] = {500, 1000, 2000, 3000, 3000};

	(void)state;
	options.min_visits = 100000;
	options.max_experiment_ns = 3000 * MSEC;
	open_runner();
	run_until(fake.now + 9800 * MSEC);
	assert_int_equal(n_records, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(records[i].elapsed, expected[i] * MSEC);
}

static void many_visits_shorten_all_but_the_first(void **state)
{
	(void)state;
	options.shortest_ns = 50 * MSEC;
	options.fixed_line = LINE_A;
	options.settling_part = 10;
	open_runner();
	run_to_begin();
	run_until(next + 3000 * MSEC);
	/* 2000 visits a second, and 500 samples: 500 visits take the longer of both. */
	assert_true(n_records >= 10);
	assert_int_equal(records[0].elapsed, 500 * MSEC);
	for (size_t i = 1; i < n_records; i++) {
		assert_uint_in_range(records[i].elapsed, 249 * MSEC,
				     335 * MSEC); /* at 50 % every second visit of the first
						     experiment is missing */
		assert_int_equal(records[i].elapsed, records[1].elapsed);
	}
	assert_uint_in_range(fake.setup.settling_ns, 24 * MSEC, 34 * MSEC);
}

static void latencies_need_the_full_length(void **state)
{
	(void)state;
	options.shortest_ns = 50 * MSEC;
	open_runner();
	assert_int_equal(runner_add_point(runner, "requests", PROFILE_LATENCY), 0);
	run_until(fake.now + 2000 * MSEC);
	assert_true(n_records >= 3);
	for (size_t i = 0; i < n_records; i++)
		assert_int_equal(records[i].elapsed, 500 * MSEC);
}

static void an_experiment_without_visits_is_recorded(void **state)
{
	(void)state;
	options.experiment_ns = MSEC / 10;
	options.max_experiment_ns = MSEC / 10;
	options.cool_off_ns = 5 * MSEC;
	open_runner();
	run_until(fake.now + 100 * MSEC);
	assert_true(n_records >= 15);
	assert_int_equal(record_points[0][0].delta, 0);
}

static void enough_visits_of_one_point_are_enough(void **state)
{
	(void)state;
	open_runner();
	assert_int_equal(runner_add_point(runner, "never", PROFILE_LATENCY), 0);
	run_until(fake.now + 3000 * MSEC);
	assert_true(n_records >= 5);
	assert_int_equal(n_last_points, 2);
	assert_string_equal(record_points[0][1].name, "never");
	for (size_t i = 0; i < n_records; i++)
		assert_int_equal(records[i].elapsed, 500 * MSEC);
}

static void without_points_the_length_stays(void **state)
{
	(void)state;
	options.n_points = 0;
	open_runner();
	run_until(fake.now + 3000 * MSEC);
	assert_true(n_records >= 5);
	assert_int_equal(n_last_points, 0);
	assert_int_equal(records[4].elapsed, 500 * MSEC);
}

static void a_point_may_be_added_while_it_runs(void **state)
{
	char name[] = "late";

	(void)state;
	open_runner();
	run_to_begin();
	fake.totals.n_points = 2;
	fake.totals.points[1].visits = 9;
	assert_int_equal(runner_add_point(runner, name, PROFILE_THROUGHPUT), 0);
	name[0] = 'x';
	run_until(next);
	assert_int_equal(n_last_points, 2);
	assert_string_equal(record_points[0][1].name, "late");
	assert_int_equal(record_points[0][1].delta, 9);
	for (size_t i = 2; i < ABI_MAX_POINTS; i++)
		assert_int_equal(runner_add_point(runner, "p", PROFILE_THROUGHPUT), 0);
	assert_int_equal(runner_add_point(runner, "p", PROFILE_THROUGHPUT), -E2BIG);
}

static void the_program_s_end_closes_the_books(void **state)
{
	uint64_t begin;

	(void)state;
	open_runner();
	run_to_begin();
	begin = fake.now;
	fake_advance(&fake, begin + 200 * MSEC);
	fake.idle = true; /* it ended; we notice later */
	fake_advance(&fake, begin + 230 * MSEC);
	memset(fake.calls, 0, sizeof(fake.calls));
	assert_int_equal(runner_finish(runner, begin + 200 * MSEC), 0);
	assert_string_equal(fake.calls, "esod");
	assert_int_equal(n_records, 1);
	assert_int_equal(records[0].elapsed, 200 * MSEC);
	assert_int_equal(records[0].duration, 200 * MSEC - records[0].growth);

	/* It is over. */
	assert_int_equal(runner_step(runner, fake.now, &next), 0);
	assert_true(next == UINT64_MAX);
	assert_int_equal(runner_finish(runner, fake.now), 0);
	assert_string_equal(fake.calls, "esod");
}

static void a_stub_of_an_experiment_is_not_recorded(void **state)
{
	(void)state;
	for (int tenth = 0; tenth < 2; tenth++) {
		uint64_t end;

		fake_init(&fake);
		n_records = 0;
		open_runner();
		run_to_begin();
		end = fake.now + 50 * MSEC - (tenth ? 0 : 1);
		fake_advance(&fake, end + MSEC);
		assert_int_equal(runner_finish(runner, end), 0);
		assert_false(fake.running);
		assert_int_equal(n_records, tenth);
		runner_free(runner);
		runner = NULL;
	}
	/* Before the first experiment: the samples are still counted. */
	fake_init(&fake);
	open_runner();
	fake_advance(&fake, fake.now + 10 * MSEC);
	assert_int_equal(runner_finish(runner, fake.now), 0);
	assert_int_equal(n_records, 1);
}

static void freeing_ends_the_experiment(void **state)
{
	(void)state;
	open_runner();
	run_to_begin();
	assert_true(fake.running);
	runner_free(runner);
	runner = NULL;
	assert_false(fake.running);
	assert_int_equal(n_records, 0);
	runner_free(NULL);
}

static void the_sink_can_stop_the_run(void **state)
{
	(void)state;
	sink_returns = -ENOSPC;
	open_runner();
	run_to_begin();
	fake_advance(&fake, next);
	assert_int_equal(runner_step(runner, fake.now, &next), -ENOSPC);
	assert_false(fake.running);
	assert_int_equal(runner_step(runner, fake.now + 1000 * MSEC, &next), 0);
	assert_true(next == UINT64_MAX);
	assert_int_equal(n_records, 1);
}

static void every_failure_of_the_backend_ends_the_run(void **state)
{
	(void)state;
	for (const char *c = "dnibseo"; *c; c++) {
		int err = 0;

		fake_init(&fake);
		n_records = 0;
		open_runner();
		fake.fails = *c;
		for (size_t i = 0; i < 10 && err == 0; i++) {
			fake_advance(&fake, next);
			err = runner_step(runner, fake.now, &next);
		}
		assert_int_equal(err, -EIO);
		assert_int_equal(n_records, 0);
		assert_false(fake.running);
		runner_free(runner);
		runner = NULL;
	}
	fake_init(&fake);
	open_runner();
	run_to_begin();
	fake.fails = 'o';
	fake_advance(&fake, next);
	assert_int_equal(runner_finish(runner, fake.now), -EIO);
}

static void options_are_checked(void **state)
{
	(void)state;
	options.experiment_ns = 0;
	assert_int_equal(runner_new(&options, &fake_ops, &fake, sink, NULL, &runner), -EINVAL);
	options.experiment_ns = MSEC;
	options.zero_share = 2;
	assert_int_equal(runner_new(&options, &fake_ops, &fake, sink, NULL, &runner), -EINVAL);
	options.zero_share = 0.5;
	options.n_grid = 0;
	assert_int_equal(runner_new(&options, &fake_ops, &fake, sink, NULL, &runner), -EINVAL);
	assert_null(runner);
	/* A maximum below the length is the length; times beyond the clock saturate. */
	options.fixed_speedup = 0.5;
	options.max_experiment_ns = 0;
	options.min_visits = UINT64_MAX;
	open_runner();
	run_until(fake.now + 200 * MSEC);
	assert_true(n_records > 5);
	assert_int_equal(records[5].elapsed, MSEC);
	runner_free(runner);
	options.experiment_ns = UINT64_MAX;
	open_runner();
	run_to_begin();
	assert_true(next == UINT64_MAX);
}

static void a_whole_run_is_one_experiment(void **state)
{
	uint64_t begin;

	(void)state;
	options.whole_run = true;
	options.n_points = 0;
	open_runner();
	run_to_begin();
	begin = fake.now;
	assert_int_equal(next, UINT64_MAX);
	fake_advance(&fake, begin + 100000 * MSEC);
	assert_int_equal(runner_step(runner, fake.now, &next), 0);
	assert_int_equal(n_records, 0);
	assert_int_equal(runner_finish(runner, begin + 90000 * MSEC), 0);
	assert_int_equal(n_records, 1);
	assert_int_equal(n_last_points, 1);
	assert_int_equal(records[0].elapsed, 90000 * MSEC);
	assert_int_equal(record_points[0][0].delta, 1);
	assert_string_equal(record_points[0][0].name, "end-to-end");
	assert_false(record_points[0][0].timed);
}

static void half_a_run_is_none(void **state)
{
	(void)state;
	options.whole_run = true;
	open_runner();
	run_to_begin();
	runner_abandon(runner);
	assert_false(fake.running);
	assert_int_equal(runner_finish(runner, fake.now), 0);
	assert_int_equal(n_records, 0);
}

/* Of an experiment in which the program was stopped nothing is kept, and the next one begins. */
static void a_dropped_one_is_followed_by_another(void **state)
{
	(void)state;
	open_runner();
	assert_false(runner_drop(runner, fake.now));
	run_to_begin();
	fake_advance(&fake, fake.now + 100 * MSEC);
	assert_true(runner_drop(runner, fake.now));
	assert_false(fake.running);
	assert_false(runner_drop(runner, fake.now));
	next = fake.now;
	run_until(fake.now + 700 * MSEC);
	assert_int_equal(n_records, 1);
	assert_true(records[0].elapsed >= 500 * MSEC && records[0].elapsed < 520 * MSEC);
}

static void a_dropped_run_is_over(void **state)
{
	(void)state;
	options.whole_run = true;
	open_runner();
	run_to_begin();
	assert_true(runner_drop(runner, fake.now));
	assert_int_equal(runner_step(runner, fake.now + 1000 * MSEC, &next), 0);
	assert_false(fake.running);
	assert_int_equal(runner_finish(runner, fake.now + 2000 * MSEC), 0);
	assert_int_equal(n_records, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_whole_run_is_one_experiment, set_up, tear_down),
		cmocka_unit_test_setup_teardown(half_a_run_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_dropped_one_is_followed_by_another, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_dropped_run_is_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(its_first_part_is_told_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_experiment_takes_its_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_late_step_makes_a_longer_experiment, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_a_sample_it_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_line_whose_code_is_gone_is_not_drawn, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(few_visits_lengthen_the_next_ones, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(many_visits_shorten_all_but_the_first, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(latencies_need_the_full_length, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_experiment_without_visits_is_recorded, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(enough_visits_of_one_point_are_enough, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_points_the_length_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_point_may_be_added_while_it_runs, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_program_s_end_closes_the_books, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_stub_of_an_experiment_is_not_recorded, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(freeing_ends_the_experiment, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_sink_can_stop_the_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_failure_of_the_backend_ends_the_run, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(options_are_checked, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
