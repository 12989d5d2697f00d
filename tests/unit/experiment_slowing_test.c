// SPDX-License-Identifier: BSD-2-Clause
/* Whether a line is slowed at its visits, by what an experiment has shown of them. */
#include "experiment/slowing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MSEC 1000000ULL

static char why[256];

/* Two threads half of whose time is in the line, which they visit for @visit_ns; sampled each 0.5
 * ms of that, with a probe of 1 us. */
static struct slowing_seen seen(uint64_t elapsed_ns, uint64_t visit_ns)
{
	return (struct slowing_seen){
		.elapsed_ns = elapsed_ns,
		.visits = elapsed_ns / visit_ns,
		.cost_ns = 1000,
		.samples = elapsed_ns / (MSEC / 2),
		.line_ns = elapsed_ns,
		.most = 0.5,
	};
}

static enum slowing_way judged(struct slowing_seen x)
{
	enum slowing_way way;

	memset(why, 'x', sizeof(why));
	way = slowing_judge(&x, why, sizeof(why));
	assert_non_null(memchr(why, '\0', sizeof(why)));
	assert_int_equal(way == SLOWING_BY_SAMPLES, why[0] != '\0');
	return way;
}

static void cheap_and_short_visits_have_the_probe(void **state)
{
	(void)state;
	assert_int_equal(judged(seen(1000 * MSEC, MSEC)), SLOWING_BY_PROBE);
	assert_int_equal(judged(seen(1000 * MSEC, 51000)), SLOWING_BY_PROBE); /* 1.96 % */
	/* As soon as enough is known, and not before. */
	assert_int_equal(judged(seen(300 * MSEC, MSEC)), SLOWING_BY_PROBE);
	assert_int_equal(judged(seen(200 * MSEC, MSEC)), SLOWING_OPEN);
	assert_int_equal(judged(seen(10 * MSEC, MSEC)), SLOWING_OPEN);
	assert_int_equal(judged((struct slowing_seen){.most = 0.5}), SLOWING_OPEN);
}

static void dear_visits_have_not(void **state)
{
	(void)state;
	assert_int_equal(judged(seen(1000 * MSEC, 49000)), SLOWING_BY_SAMPLES); /* 2.04 % */
	assert_non_null(strstr(why, "up to 2 % of the run"));
	/* It may be less over the whole second; far too much is far too much. */
	assert_int_equal(judged(seen(400 * MSEC, 49000)), SLOWING_OPEN);
	assert_int_equal(judged(seen(60 * MSEC, 49000)), SLOWING_OPEN);
	assert_int_equal(judged(seen(60 * MSEC, 4000)), SLOWING_BY_SAMPLES);
	assert_non_null(strstr(why, "up to 25 % of the run"));
}

static void long_visits_have_not(void **state)
{
	struct slowing_seen x = seen(1000 * MSEC, 4 * MSEC);

	(void)state;
	assert_int_equal(judged(x), SLOWING_BY_PROBE);
	x = seen(1000 * MSEC, 5 * MSEC);
	assert_int_equal(judged(x), SLOWING_BY_SAMPLES);
	assert_non_null(strstr(why, "a visit takes 5 ms"));
	x.most = 0.25;
	assert_int_equal(judged(x), SLOWING_BY_PROBE);
}

static void what_is_not_known_is_not_guessed(void **state)
{
	struct slowing_seen x = seen(1000 * MSEC, MSEC);

	(void)state;
	x.samples = 49;
	assert_int_equal(judged(x), SLOWING_BY_SAMPLES);
	assert_non_null(strstr(why, "too few samples"));
	x.samples = 50;
	assert_int_equal(judged(x), SLOWING_BY_PROBE);
	x.elapsed_ns = 900 * MSEC;
	assert_int_equal(judged(x), SLOWING_OPEN);
	x = (struct slowing_seen){.elapsed_ns = 1000 * MSEC,
				  .cost_ns = 1000,
				  .samples = 500,
				  .line_ns = MSEC,
				  .most = 0.5};
	assert_int_equal(judged(x), SLOWING_BY_SAMPLES);
	assert_non_null(strstr(why, "no visit"));
}

static void the_cost_is_a_share(void **state)
{
	struct slowing_seen x = seen(1000 * MSEC, MSEC), none = {0};
	char one;

	(void)state;
	assert_true(fabs(slowing_cost(&x) - 0.001) < 1e-12);
	assert_true(slowing_cost(&none) == 0);
	/* A short text is cut, and none is allowed. */
	x.samples = 0;
	assert_int_equal(slowing_judge(&x, &one, 1), SLOWING_BY_SAMPLES);
	assert_int_equal(slowing_judge(&x, NULL, 0), SLOWING_BY_SAMPLES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cheap_and_short_visits_have_the_probe),
		cmocka_unit_test(dear_visits_have_not),
		cmocka_unit_test(long_visits_have_not),
		cmocka_unit_test(what_is_not_known_is_not_guessed),
		cmocka_unit_test(the_cost_is_a_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
