// SPDX-License-Identifier: BSD-2-Clause
/* Experiments at a duty cycle. */
#include "experiment_run.h"

#include <errno.h>
#include <math.h>

#define SECOND (1000 * MSEC)

static double time_in_experiments(void)
{
	double ns = 0;

	for (size_t i = 0; i < n_records; i++)
		ns += (double)records[i].elapsed;
	return ns;
}

/* A tenth of the time, in bursts of four, of which two are at 0 %; the first has two alone. */
static void experiments_take_their_share(void **state)
{
	double share;

	(void)state;
	options.duty = 0.1;
	options.zero_share = 0.5;
	open_runner();
	run_until(600 * SECOND);
	share = time_in_experiments() / (600.0 * (double)SECOND);
	assert_true(share > 0.08 && share < 0.12);
	assert_true(n_records > 60);
	assert_int_equal(records[1].burst, 1);
	for (size_t i = 2; i + 4 <= n_records; i += 4) {
		size_t zeros = 0;

		assert_int_equal(records[i].burst, 2 + (i - 2) / 4);
		assert_int_equal(records[i + 3].burst, 2 + (i - 2) / 4);

		for (size_t k = 0; k < 4; k++)
			zeros += records[i + k].speedup == 0;
		assert_int_equal(zeros, 2);
	}
}

static void check_lengths(size_t from, size_t to, uint64_t ns)
{
	assert_true(to > from);
	for (size_t i = from; i < to; i++)
		assert_true(fabs((double)records[i].elapsed - (double)ns) < (double)ns / 20);
}

/* Each experiment is as long as 25 visits take, also the first one, and those of the line that has
 * few samples. The load changes in each rest. */
static void experiments_follow_the_load(void **state)
{
	uint64_t since, burst = 0;
	size_t first = 0;
	bool was = false;

	(void)state;
	options.duty = 0.1;
	options.zero_share = 0.5;
	options.shortest_ns = 20 * MSEC;
	fake.round_ns = 4 * MSEC;
	open_runner();
	since = fake.now;
	while (n_records < 100) {
		fake_advance(&fake, next);
		assert_int_equal(runner_step(runner, fake.now, &next), 0);
		if (fake.running && burst) {
			/* What is sampled before it: twice the burst that was before. */
			assert_true(fabs((double)(fake.now - since) / (2 * (double)burst) - 1) <
				    0.05);
			burst = 0;
		}
		if (fake.resting && !was) {
			check_lengths(first, n_records, 25 * fake.round_ns);
			for (burst = 0; first < n_records; first++)
				burst += records[first].elapsed;
			fake.round_ns = fake.round_ns == MSEC ? 4 * MSEC : MSEC;
		}
		if (!fake.resting && was)
			since = fake.now;
		was = fake.resting;
	}
	assert_true(first > 80);
}

/* A load that falls within a burst leaves some experiments with too few visits. Those after it are
 * longer, but not for good. */
static void one_experiment_with_few_visits_is_forgotten(void **state)
{
	(void)state;
	options.duty = 0.1;
	options.shortest_ns = 20 * MSEC;
	fake.round_ns = MSEC;
	open_runner();
	run_to_begin();
	fake.round_ns = 1000 * MSEC;
	run_to_begin();
	fake.round_ns = MSEC;
	while (n_records < 80) {
		fake_advance(&fake, next);
		assert_int_equal(runner_step(runner, fake.now, &next), 0);
	}
	check_lengths(1, 2, 50 * MSEC);
	check_lengths(60, 80, 25 * MSEC);
}

/* How long the rests are is drawn anew each time: they must not fall in step with what the program
 * does. */
static void rests_differ(void **state)
{
	uint64_t rests[12], shortest = UINT64_MAX, longest = 0, since = 0;
	size_t n = 0;
	bool was = false;

	(void)state;
	options.duty = 0.1;
	open_runner();
	while (n < 12) {
		fake_advance(&fake, next);
		assert_int_equal(runner_step(runner, fake.now, &next), 0);
		if (fake.resting && !was)
			since = fake.now;
		if (!fake.resting && was)
			rests[n++] = fake.now - since;
		was = fake.resting;
	}
	for (size_t i = 0; i < n; i++) {
		shortest = rests[i] < shortest ? rests[i] : shortest;
		longest = rests[i] > longest ? rests[i] : longest;
	}
	assert_true(longest > shortest + shortest / 2);
}

/* While a line is tried, the others have fewer samples than their share: those do not count,
 * however much of what is sampled they are. Of the program above, A has a quarter of the samples
 * and B half. */
static void lines_are_drawn_by_what_is_sampled_between(void **state)
{
	double of_b = 0;

	(void)state;
	options.duty = 0.5;
	options.fixed_speedup = 0.75;
	open_runner();
	run_until(120 * SECOND);
	assert_true(n_records > 90);
	for (size_t i = 0; i < n_records; i++)
		of_b += strcmp(records[i].selected, LINE_B) == 0;
	of_b /= (double)n_records;
	assert_true(fabs(of_b - 0.5) < 4 * 0.5 / sqrt((double)n_records));
}

/* Whatever is tried: the global delay has no more than its share of the time. A speedup of 75 %
 * makes it grow by up to three quarters. */
static void pauses_take_no_more_than_they_may(void **state)
{
	double growth = 0;

	(void)state;
	options.most_slowdown = 0.05;
	options.fixed_speedup = 0.75;
	open_runner();
	run_until(300 * SECOND);
	for (size_t i = 0; i < n_records; i++)
		growth += (double)records[i].growth;
	assert_true(growth > 0);
	/* ... but for the rest after the last burst. */
	assert_true(growth < (0.05 * 300 + 2.5) * (double)SECOND);
	assert_int_equal(fake.setup.most_growth_ns, 3 * SECOND);
}

/* From there on nobody was paused: it says nothing. */
static void an_experiment_that_went_too_far_is_not_recorded(void **state)
{
	struct runner_status status;

	(void)state;
	open_runner();
	fake.totals.bounded = true;
	run_until(5 * SECOND);
	runner_get_status(runner, &status);
	assert_int_equal(n_records, 0);
	assert_true(status.bounded > 5);
	fake.totals.bounded = false;
	run_until(10 * SECOND);
	assert_true(n_records > 5);
}

static void a_failure_to_rest_ends_the_run(void **state)
{
	int r = 0;

	(void)state;
	options.duty = 0.1;
	open_runner();
	fake.fails = 'r';
	while (r == 0 && fake.now < 100 * SECOND) {
		fake_advance(&fake, next);
		r = runner_step(runner, fake.now, &next);
	}
	assert_int_equal(r, -EIO);
	assert_int_equal(n_records, 3);
}

/* With all of the time there are no rests. */
static void without_a_duty_cycle_there_is_no_rest(void **state)
{
	(void)state;
	open_runner();
	run_until(20 * SECOND);
	assert_null(strchr(fake.calls, 'r'));
	assert_true(time_in_experiments() > 0.9 * 20 * (double)SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(experiments_take_their_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(experiments_follow_the_load, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_experiment_with_few_visits_is_forgotten, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(rests_differ, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_are_drawn_by_what_is_sampled_between, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(pauses_take_no_more_than_they_may, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_experiment_that_went_too_far_is_not_recorded,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failure_to_rest_ends_the_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_duty_cycle_there_is_no_rest, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
