// SPDX-License-Identifier: BSD-2-Clause
/* The sampling rate by what an experiment has shown. */
#include "experiment/session/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000ULL

/* Half a second at @rate on @cpus CPUs that threads in scope keep busy; @visits and @wakes a
 * second; @turns of 100 samples. */
static struct rate_seen half_a_second(unsigned int rate, unsigned int cpus, uint64_t visits,
				      uint64_t wakes, unsigned int turns)
{
	uint64_t samples = rate * cpus / 2;

	return (struct rate_seen){.ns = 500 * MS,
				  .run_ns = 500 * MS * cpus,
				  .visits = visits / 2,
				  .wakes = wakes / 2,
				  .samples = samples,
				  .turns = samples * turns / 100};
}

/* ... and @n waits for a CPU. */
static struct rate_seen waiting(struct rate_seen x, uint64_t n)
{
	x.cpu_waits = n / 2;
	return x;
}

static unsigned int next(unsigned int rate, bool first, struct rate_seen x)
{
	return rate_next(rate, first, &x);
}

/* However many requests it answers, a server of one thread that nobody in scope wakes. */
static void one_thread_alone(void **state)
{
	(void)state;
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 1, 75000, 0, 0)),
		SESSION_RATE_ALONE);
	assert_int_equal(
		next(SESSION_RATE_ALONE, false, half_a_second(SESSION_RATE_ALONE, 1, 75000, 0, 0)),
		SESSION_RATE_ALONE);
	/* A helper that wakes it a few times a second, and runs a little. */
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 1, 75000, 4, 3)),
		SESSION_RATE_ALONE);
	/* Helpers with timers, on the same CPU; and one that it wakes. */
	assert_int_equal(next(SESSION_RATE_LOW, true,
			      waiting(half_a_second(SESSION_RATE_LOW, 1, 75000, 12, 3), 170)),
			 SESSION_RATE_ALONE);
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 1, 75000, 170, 3)),
		SESSION_RATE_HIGH);
}

/* Nobody waits for another one's hand: their pauses meet, but not within their rounds. */
static void side_by_side(void **state)
{
	(void)state;
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 2, 75000, 0, 50)),
		SESSION_RATE_LOW);
	assert_int_equal(
		next(SESSION_RATE_ALONE, false, half_a_second(SESSION_RATE_ALONE, 2, 75000, 0, 50)),
		SESSION_RATE_LOW);
}

static void hand_over(void **state)
{
	(void)state;
	/* Ping-pong, rounds of 1.5 ms; and of 5 ms. */
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 1, 666, 1332, 60)),
		3996);
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 1, 200, 400, 60)),
		SESSION_RATE_LOW);
	/* A barrier of two threads, one edge in 2 ms of both. */
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 2, 500, 500, 50)),
		3000);
	/* A lock that always somebody waits for. */
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 2, 714, 714, 50)),
		SESSION_RATE_HIGH);
	/* One that another thread waits for occasionally. */
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 2, 1000, 30, 50)),
		SESSION_RATE_HIGH);
	/* Threads that share CPUs: a slice is 3 ms. */
	assert_int_equal(next(SESSION_RATE_LOW, true,
			      waiting(half_a_second(SESSION_RATE_LOW, 2, 75000, 0, 50), 666)),
			 SESSION_RATE_HIGH);
	/* Many edges, visits once a second: and the other way round. */
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 2, 1, 100000, 50)),
		SESSION_RATE_LOW);
	assert_int_equal(
		next(SESSION_RATE_LOW, true, half_a_second(SESSION_RATE_LOW, 2, 100000, 1, 50)),
		SESSION_RATE_LOW);
}

/* Ticks of 50 us would take a tenth of the time. */
static void expensive_ticks(void **state)
{
	struct rate_seen long_rounds = half_a_second(1000, 2, 50, 50, 50),
			 short_rounds = half_a_second(1000, 2, 200, 400, 50);

	(void)state;
	assert_int_equal(rate_low(0), SESSION_RATE_LOW);
	assert_int_equal(rate_low(2000), SESSION_RATE_LOW);
	assert_int_equal(rate_low(25000), SESSION_RATE_LOW);
	assert_int_equal(rate_low(40000), 1250);
	assert_int_equal(rate_low(200000), SESSION_RATE_LEAST);
	assert_int_equal(rate_light(0), SESSION_RATE_LEAST);
	assert_int_equal(rate_light(15000), SESSION_RATE_LEAST);
	assert_int_equal(rate_light(33000), 454);
	assert_int_equal(rate_light(200000), SESSION_RATE_LIGHT);
	long_rounds.tick_ns = short_rounds.tick_ns = 50000;
	assert_int_equal(next(SESSION_RATE_LEAST, true, long_rounds), SESSION_RATE_LEAST);
	assert_int_equal(next(SESSION_RATE_ALONE, false, long_rounds), SESSION_RATE_LEAST);
	/* Six samples a round, and then no fewer than elsewhere. */
	assert_int_equal(next(SESSION_RATE_LEAST, true, short_rounds), SESSION_RATE_LOW);
	long_rounds.tick_ns = 0;
	assert_int_equal(next(SESSION_RATE_LEAST, true, long_rounds), SESSION_RATE_LOW);
}

static void only_the_first_look_lowers(void **state)
{
	struct rate_seen nothing = {0};

	(void)state;
	assert_int_equal(
		next(SESSION_RATE_LOW, false, half_a_second(SESSION_RATE_LOW, 1, 100, 0, 0)),
		SESSION_RATE_LOW);
	assert_int_equal(next(3000, true, half_a_second(3000, 2, 400, 400, 50)), 3000);
	assert_int_equal(next(3000, false, half_a_second(3000, 2, 510, 5000, 50)),
			 3000); /* 2 % finer is not worth a new start */
	assert_int_equal(next(SESSION_RATE_LOW, true, nothing), SESSION_RATE_LOW);
	assert_int_equal(next(SESSION_RATE_ALONE, false, nothing), SESSION_RATE_ALONE);
	assert_false(rate_alone(&nothing));
}

/* It began as one thread and goes on as several. */
static void grows_when_others_come(void **state)
{
	(void)state;
	assert_int_equal(next(SESSION_RATE_ALONE, false,
			      half_a_second(SESSION_RATE_ALONE, 1, 666, 1332, 60)),
			 3996);
	assert_int_equal(
		next(SESSION_RATE_ALONE, false, half_a_second(SESSION_RATE_ALONE, 1, 10, 1332, 60)),
		SESSION_RATE_LOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_alone),
		cmocka_unit_test(side_by_side),
		cmocka_unit_test(hand_over),
		cmocka_unit_test(only_the_first_look_lowers),
		cmocka_unit_test(grows_when_others_come),
		cmocka_unit_test(expensive_ticks),
	};

	return cmocka_run_group_tests_name("session rate", tests, NULL, NULL);
}
