// SPDX-License-Identifier: BSD-2-Clause
/* Lines that are waits: their shares, and effects that cannot be told since the waits follow the
 * pauses. */
#include "analysis_sample.h"
#include "base/clock.h"
#include "base/waits.h"
#include "profile/merge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define WAIT "q.c:1 [disk]"
#define OTHER "r.c:2 [disk]"
#define LINE "q.c:9"
#define VISITS 100

static struct profile profile;
static struct analysis analysis;

/* Twenty experiments of each of four speedups: the wait is half of a visit, and takes @longer times
 * as long at 100 % as at 0 %. It is up to @scatter times longer than that in some experiments. */
static void make(double longer, double scatter)
{
	static struct profile_samples samples[] = {
		{.location = WAIT, .count = 10, .ns = 6 * NSEC_PER_SEC},
		{.location = OTHER, .count = 1000, .ns = 30 * NSEC_PER_SEC},
		{.location = LINE, .count = 300, .ns = 3 * NSEC_PER_SEC},
		{.location = "s.c:3", .count = 100, .ns = NSEC_PER_SEC}};

	profile = (struct profile){.runtime_ns = 10 * NSEC_PER_SEC};
	for (size_t i = 0; i < 80; i++) {
		double s = (double)(i % 4) / 3, jitter = 1 + 0.001 * (double)(i % 7);
		uint64_t duration = (uint64_t)((1 - s / 2) * 500e6 * jitter);
		struct profile_experiment *x =
			&sample_visits(&profile, WAIT, s, duration, VISITS)->x;

		x->waits = VISITS;
		x->selected_ns = (uint64_t)(2.5e6 * VISITS * (1 + s * (longer - 1)) *
					    (1 + scatter * (double)(i * 7 % 11) / 10));
	}
	profile_set_samples(&profile, samples, 4);
	analyse(&profile, 1, &analysis);
}

static int tear_down(void **state)
{
	(void)state;
	analysis_free(&analysis);
	profile_free(&profile);
	return 0;
}

static void its_share_is_of_the_time(void **state)
{
	const struct analysis_line *line;

	(void)state;
	make(1, 0);
	line = sample_line(&analysis, WAIT);
	assert_true(fabs(line->share - 0.6) < 1e-9);
	assert_int_equal(line->wait, wait_of(WAIT, NULL));
	assert_int_equal(line->undecided, UNDECIDED_OPEN);
	assert_int_equal(line->verdict, VERDICT_HELPS);
	assert_true(fabs(line->curve.at[3].effect - 0.5) < 0.01);
	/* However many threads wait, and without the waits in what the shares of lines are of. */
	(void)sample_visits(&profile, OTHER, 0.5, 500000000, VISITS);
	(void)sample_visits(&profile, LINE, 0.5, 500000000, VISITS);
	(void)sample_visits(&profile, "[disk]", 0.5, 500000000, VISITS);
	analysis_free(&analysis);
	analyse(&profile, 1, &analysis);
	assert_true(sample_line(&analysis, OTHER)->share == 1);
	assert_true(sample_line(&analysis, "[disk]")->share == 1);
	assert_true(fabs(sample_line(&analysis, LINE)->share - 0.75) < 1e-9);
}

static void waits_that_grow_with_the_pauses_are_refused(void **state)
{
	const struct analysis_line *line;

	(void)state;
	make(1.5, 0);
	line = sample_line(&analysis, WAIT);
	assert_int_equal(line->undecided, UNDECIDED_DEPENDS);
	assert_int_equal(line->verdict, VERDICT_UNDECIDED);
	assert_true(isnan(line->curve.at[3].effect));
}

static void waits_that_scatter_are_not(void **state)
{
	(void)state;
	make(1.5, 4);
	assert_int_equal(sample_line(&analysis, WAIT)->undecided, UNDECIDED_OPEN);
}

static void waits_that_get_shorter_are_not(void **state)
{
	(void)state;
	make(0.5, 0);
	assert_int_equal(sample_line(&analysis, WAIT)->undecided, UNDECIDED_OPEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(its_share_is_of_the_time, tear_down),
		cmocka_unit_test_teardown(waits_that_grow_with_the_pauses_are_refused, tear_down),
		cmocka_unit_test_teardown(waits_that_scatter_are_not, tear_down),
		cmocka_unit_test_teardown(waits_that_get_shorter_are_not, tear_down),
	};

	return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
