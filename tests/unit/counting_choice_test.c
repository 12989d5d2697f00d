// SPDX-License-Identifier: BSD-2-Clause
/* Which place is counted where none was named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "kernel/counting/choice.h"

#include <math.h>
#include <string.h>

#define WINDOW (100 * NSEC_PER_MSEC)

static struct candidate judged(const struct choice_windows *w)
{
	struct candidate c = {.kind = CANDIDATE_CALL, .point = "x"};

	choice_judge(&c, w);
	return c;
}

/* As of passes that come at random: so many of @tries, each with the chance @of_1024. */
static uint64_t at_random(struct rng *rng, unsigned int tries, uint64_t of_1024)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < tries; i++)
		n += rng_below(rng, 1024) < of_1024;
	return n;
}

static void rates_are_of_all_windows(void **state)
{
	struct choice_windows w = {0};
	struct candidate c;

	(void)state;
	choice_add_window(&w, 10, WINDOW);
	choice_add_window(&w, 60, 6 * WINDOW); /* one that ended late is no burst */
	choice_add_window(&w, 0, 0);
	choice_add_window(&w, 30, 3 * WINDOW);
	c = judged(&w);
	assert_int_equal(c.passes, 100);
	assert_true(fabs(c.per_s - 100) < 1e-6);
	assert_true(c.scatter == 0);
	assert_string_equal(choice_evenness(&c), "even");
	assert_true(choice_serves(&c));
}

/* A rate of 1 to 400 in a window, from independent clients: at least 19 of 20 times it is even. */
static void chance_is_even(void **state)
{
	const uint64_t chances[] = {1, 4, 16, 64, 256, 400};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 4711);
	for (size_t k = 0; k < sizeof(chances) / sizeof(*chances); k++) {
		unsigned int uneven = 0;

		for (int turn = 0; turn < 200; turn++) {
			struct choice_windows w = {0};
			struct candidate c;

			for (int i = 0; i < 20; i++)
				choice_add_window(&w, at_random(&rng, 1024, chances[k]), WINDOW);
			c = judged(&w);
			uneven += strcmp(choice_evenness(&c), "even") != 0;
		}
		assert_true(uneven <= 10);
	}
}

static void bursts_are_seen(void **state)
{
	struct choice_windows start = {0}, waves = {0};
	struct candidate c;

	(void)state;
	/* Code of the start: two windows of 20. */
	for (int i = 0; i < 20; i++)
		choice_add_window(&start, i < 2 ? 200 : 0, WINDOW);
	c = judged(&start);
	assert_string_equal(choice_evenness(&c), "in bursts");
	assert_false(choice_serves(&c));
	/* Half as often again in every second window. */
	for (int i = 0; i < 20; i++)
		choice_add_window(&waves, i % 2 ? 400 : 1200, WINDOW);
	c = judged(&waves);
	assert_string_equal(choice_evenness(&c), "uneven");
	assert_true(choice_serves(&c));
}

static struct candidate call(const char *point, unsigned int rank, double per_s, double scatter)
{
	return (struct candidate){.kind = CANDIDATE_CALL,
				  .rank = rank,
				  .point = (char *)(uintptr_t)point,
				  .passes = (uint64_t)(2 * per_s),
				  .per_s = per_s,
				  .scatter = scatter};
}

#define CHECK_ORDER(all, ...)                                           \
	do {                                                            \
		static const char *const wanted[] = {__VA_ARGS__};      \
		const size_t n = sizeof(all) / sizeof(*(all));          \
                                                                        \
		assert_int_equal(n, sizeof(wanted) / sizeof(*wanted));  \
		choice_sort(all, n);                                    \
		for (size_t i = 0; i < n; i++)                          \
			assert_string_equal((all)[i].point, wanted[i]); \
	} while (0)

/* What serves comes first, by its rate, rank and evenness; then the rest. */
static void what_serves_comes_first(void **state)
{
	struct candidate all[] = {
		call("bursts", 0, 400, 3),	 call("seldom", 0, 3, 0),
		call("too often", 0, 300000, 0), call("often", 0, 46000, 0),
		call("waits", 3, 900, 0),	 call("uneven", 0, 300, 0.9),
	};

	(void)state;
	CHECK_ORDER(all, "often", "waits", "uneven", "too often", "seldom", "bursts");
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(choice_serves(&all[i]), i < 3);
}

/* Of calls that are passed alike, what sends a result is taken; a log that is written ten times a
 * second is not. */
static void results_before_requests_before_waits(void **state)
{
	struct candidate all[] = {
		call("syscall:epoll_wait", 3, 1100, 0.02), call("syscall:write", 0, 10, 0),
		call("syscall:recvfrom", 1, 812, 0.01),	   call("syscall:sendto", 0, 812, 0.01),
		call("syscall:openat", 2, 700, 0.01),
	};

	(void)state;
	CHECK_ORDER(all, "syscall:sendto", "syscall:recvfrom", "syscall:openat",
		    "syscall:epoll_wait", "syscall:write");
}

/* As of Node: an event loop that is woken by a write is no answer to a request. */
static void answers_before_wakeups(void **state)
{
	struct candidate all[] = {
		call("syscall:write", 0, 171, 0),
		call("syscall:writev", 0, 10981, 0.05),
		call("syscall:read", 1, 11100, 0.05),
	};

	(void)state;
	CHECK_ORDER(all, "syscall:writev", "syscall:read", "syscall:write");
}

/* As of redis, which looks at itself ten times a second, and of nginx, which writes a log. */
static void requests_before_timers(void **state)
{
	struct candidate redis[] = {
		call("syscall:openat", 2, 10, 0),
		call("syscall:read", 1, 46000, 0.01),
		call("syscall:epoll_wait", 3, 10300, 0.1),
		call("syscall:write", 0, 46000, 0.01),
	};
	struct candidate nginx[] = {
		call("syscall:writev", 0, 21000, 0.05),
		call("syscall:write", 0, 20, 0),
		call("syscall:recvfrom", 1, 21000, 0.05),
	};

	(void)state;
	CHECK_ORDER(redis, "syscall:write", "syscall:read", "syscall:epoll_wait", "syscall:openat");
	CHECK_ORDER(nginx, "syscall:writev", "syscall:recvfrom", "syscall:write");
}

/* A few passes are no rate. */
static void few_passes_say_nothing(void **state)
{
	struct choice_windows w = {0};
	struct candidate c;

	(void)state;
	for (int i = 0; i < 5; i++)
		choice_add_window(&w, 1, WINDOW);
	c = judged(&w);
	assert_true(fabs(c.per_s - 10) < 1e-6);
	assert_false(choice_serves(&c));
	c = judged(&(struct choice_windows){0});
	assert_true(c.per_s == 0 && c.scatter == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_of_all_windows),
		cmocka_unit_test(chance_is_even),
		cmocka_unit_test(bursts_are_seen),
		cmocka_unit_test(what_serves_comes_first),
		cmocka_unit_test(results_before_requests_before_waits),
		cmocka_unit_test(answers_before_wakeups),
		cmocka_unit_test(requests_before_timers),
		cmocka_unit_test(few_passes_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
