// SPDX-License-Identifier: BSD-2-Clause
/* The ledger's arithmetic (bpf/ledger.h), compiled natively. The oracle of each case is DESIGN's
 * rule, worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>

#include "bpf_native.h"
#include "bpf/ledger.h"

#define MS 1000000LL

static void hit_is_share_of_weight(void **state)
{
	(void)state;
	assert_int_equal(ledger_earned(1000000, 65536), 1000000);
	assert_int_equal(ledger_earned(1000000, 65536 / 4), 250000);
	assert_int_equal(ledger_earned(1000000, 0), 0);
	/* The longest period and full speed must not overflow: 2^47 ns is 39 hours. */
	assert_int_equal(ledger_earned(1ULL << 47, 65536), 1LL << 47);
}

static void lumps_book_all_that_is_earned(void **state)
{
	s64 kept = 0, booked = 0, once = 0;

	(void)state;
	assert_int_equal(ledger_quanta(25000, 0, &kept), 25000);
	assert_int_equal(kept, 0);
	for (int i = 1; i <= 1000; i++) {
		s64 now = ledger_quanta(25000, 90000, &kept);

		assert_true(now == 0 || now == 90000);
		booked += now;
		assert_int_equal(booked + kept, i * 25000LL);
	}
	/* More than a quantum at once: as many as there are. */
	kept = 80000;
	assert_int_equal(ledger_quanta(200000, 90000, &kept), 270000);
	assert_int_equal(kept, 10000);
	/* Threads of a single sample are booked what they earn, on average over where they may
	 * begin. */
	for (s64 first = 0; first < 90000; first += 10) {
		kept = first;
		once += ledger_quanta(25000, 90000, &kept);
	}
	assert_int_equal(once / 9000, 25000);
}

static void wake_takes_the_later_clock(void **state)
{
	s64 unused_wait;

	(void)state;
	/* K is 3 ms ahead in local; W was blocked long enough: W gets K's local. */
	assert_int_equal(ledger_wake(0, 3 * MS, 5 * MS, 0, 0, &unused_wait), 3 * MS);
	/* W was blocked for 1 ms only: it gets that, and owes the rest. */
	assert_int_equal(ledger_wake(0, 3 * MS, 1 * MS, 0, 0, &unused_wait), 1 * MS);
	/* K is behind: the event happens later in virtual time, so W is no longer ahead. */
	assert_int_equal(ledger_wake(3 * MS, 1 * MS, 5 * MS, 0, 0, &unused_wait), -2 * MS);
	assert_int_equal(ledger_wake(2 * MS, 2 * MS, 5 * MS, 0, 0, &unused_wait), 0);
}

static void unused_blocked_time_is_kept(void **state)
{
	s64 unused_wait = 0;

	(void)state;
	/* Nothing to inherit: all of it is kept, up to the limit. */
	assert_int_equal(ledger_wake(0, 0, 2 * MS, 0, 3 * MS, &unused_wait), 0);
	assert_int_equal(unused_wait, 2 * MS);
	assert_int_equal(ledger_wake(0, 0, 2 * MS, unused_wait, 3 * MS, &unused_wait), 0);
	assert_int_equal(unused_wait, 3 * MS);
	/* A quantum of 4 ms after a wait of 1 ms: answered by the wait and what was unused. */
	assert_int_equal(ledger_wake(0, 4 * MS, 1 * MS, unused_wait, 3 * MS, &unused_wait), 4 * MS);
	assert_int_equal(unused_wait, 0);
	/* Past the knee: more is asked than is blocked, in every round: none stays unused. */
	assert_int_equal(ledger_wake(0, 4 * MS, 1 * MS, unused_wait, 3 * MS, &unused_wait), 1 * MS);
	assert_int_equal(unused_wait, 0);
	/* Without any kept it is the plain rule. */
	assert_int_equal(ledger_wake(0, 0, 2 * MS, 0, 0, &unused_wait), 0);
	assert_int_equal(unused_wait, 0);
}

static void unused_wait_is_forgotten(void **state)
{
	(void)state;
	assert_int_equal(ledger_unused_wait_left(3 * MS, 0, 50 * MS), 3 * MS);
	assert_uint_in_range(ledger_unused_wait_left(3 * MS, 25 * MS, 50 * MS), 1.49 * MS,
			     1.51 * MS);
	assert_int_equal(ledger_unused_wait_left(3 * MS, 50 * MS, 50 * MS), 0);
	assert_int_equal(ledger_unused_wait_left(3 * MS, UINT64_MAX, 50 * MS), 0);
	assert_int_equal(ledger_unused_wait_left(-1, 0, 50 * MS), 0);
	assert_int_equal(ledger_unused_wait_left(3 * MS, 0, 0), 0);
}

static void stopped_time_is_no_waiting(void **state)
{
	(void)state;
	assert_int_equal(ledger_waited(10 * MS, 15 * MS, 0), 5 * MS);
	assert_int_equal(ledger_waited(10 * MS, 15 * MS, 2 * MS), 3 * MS);
	assert_int_equal(ledger_waited(10 * MS, 15 * MS, 9 * MS), 0);
	/* The account began afresh meanwhile. */
	assert_int_equal(ledger_waited(10 * MS, 15 * MS, -2 * MS), 5 * MS);
	assert_int_equal(ledger_waited(15 * MS, 10 * MS, 0), 0);
}

/* The waker has paid, so its clock is G. */
static void a_wait_for_a_level_thread_is_credited_up_to_its_length(void **state)
{
	s64 unused_wait;

	(void)state;
	assert_int_equal(
		ledger_wake(2 * MS, 3 * MS, ledger_waited(10 * MS, 15 * MS, 0), 0, 0, &unused_wait),
		1 * MS);
	assert_int_equal(
		ledger_wake(2 * MS, 9 * MS, ledger_waited(10 * MS, 15 * MS, 0), 0, 0, &unused_wait),
		5 * MS);
	/* It paid a part before it waited: what is left of the wait answers the rest. */
	assert_int_equal(ledger_wake(2 * MS + 2 * MS, 9 * MS,
				     ledger_waited(10 * MS, 15 * MS, 2 * MS), 0, 0, &unused_wait),
			 3 * MS);
}

static void cpu_edge_takes_the_cpus_clock(void **state)
{
	(void)state;
	assert_int_equal(ledger_cpu_edge(0, 3 * MS, 5 * MS), 3 * MS);
	assert_int_equal(ledger_cpu_edge(0, 3 * MS, 1 * MS), 1 * MS);
	assert_int_equal(ledger_cpu_edge(3 * MS, 1 * MS, 5 * MS), -2 * MS);
}

static void foreign_time_is_pause_up_to_g(void **state)
{
	(void)state;
	assert_int_equal(ledger_cpu_advance(1 * MS, 1 * MS, 5 * MS), 2 * MS);
	assert_int_equal(ledger_cpu_advance(1 * MS, 9 * MS, 5 * MS), 5 * MS);
}

static void buckets_are_quarter_octaves(void **state)
{
	(void)state;
	assert_int_equal(ledger_bucket(0), 0);
	assert_int_equal(ledger_bucket(4), 8);
	assert_int_equal(ledger_bucket(5), 9);
	assert_int_equal(ledger_bucket(7), 11);
	assert_int_equal(ledger_bucket(8), 12);
	assert_int_equal(ledger_bucket(1ULL << 20), 80);
	assert_int_equal(ledger_bucket((1ULL << 20) + (3ULL << 18)), 83);
	assert_int_equal(ledger_bucket(UINT64_MAX), ABI_PAUSE_LATENCY_BUCKETS - 1);
	for (u64 ns = 4; ns < 1ULL << 31; ns = ns * 9 / 8 + 1) {
		u32 b = ledger_bucket(ns);
		u64 low = (1ULL << (b / 4)) + (((u64)b % 4) << (b / 4)) / 4,
		    high = low + (1ULL << (b / 4)) / 4;

		assert_true(ns >= low && ns <= high);
	}
}

static void unseen_costs_follow_the_seen_ones(void **state)
{
	const struct abi_unseen hit = {.ns = 8000, .beside_ns = 5000, .slope_q8 = 5 * 128},
				none = {0}, steady = {.ns = 7000};

	(void)state;
	assert_int_equal(ledger_unseen(&hit, 5000), 8000);
	assert_int_equal(ledger_unseen(&hit, 7000), 13000);
	assert_int_equal(ledger_unseen(&hit, 4000), 5500); /* it was calibrated in a slow moment */
	assert_int_equal(ledger_unseen(&hit, 100), 2000);  /* too little to be true */
	assert_int_equal(ledger_unseen(&hit, 500000), 33000); /* something else came in between */
	/* Nothing goes with it. */
	assert_int_equal(ledger_unseen(&steady, 0), 7000);
	assert_int_equal(ledger_unseen(&steady, 100000), 7000);

	assert_int_equal(ledger_asking(6000, 5000, 1, &hit), 14000);
	assert_int_equal(ledger_asking(12000, 10000, 2, &hit),
			 28000); /* two asked, at the calibrated speed */
	assert_int_equal(ledger_asking(6000, 5000, 1, &none), 6000); /* never calibrated */
}

static void unbooked_earnings_are_the_share_of_hits(void **state)
{
	(void)state;
	assert_int_equal(ledger_expected(1000, 0, 0), 0); /* no sample yet */
	assert_int_equal(ledger_expected(1000, 0, 5000), 0);
	assert_int_equal(ledger_expected(1000, 5000, 5000), 1000);
	assert_int_equal(ledger_expected(1000, 1000, 4000), 250);
	assert_int_equal(ledger_expected(-1000, 5000, 5000),
			 0); /* stopped for longer than it ran */
	assert_int_equal(ledger_expected(INT64_MAX, LEDGER_SEEN_NS, LEDGER_SEEN_NS),
			 LEDGER_UNSEEN_NS);
}

static void what_may_be_earned_is_not_paid_yet(void **state)
{
	(void)state;
	assert_int_equal(ledger_deferrable(1000, 1, 1000, 0), 0); /* nothing can be earned at 0 % */
	assert_int_equal(ledger_deferrable(1000, 0, 5000, 65536),
			 0); /* no sample was in the line */
	assert_int_equal(ledger_deferrable(1000, 1000, 4000, 32768),
			 500); /* twice 250, and no more than half of 1000 */
	assert_int_equal(ledger_deferrable(1000, 400, 4000, 32768), 200);
	assert_int_equal(ledger_deferrable(1000, 4000, 4000, 65536), 1000);
	assert_int_equal(ledger_deferrable(-1000, 4000, 4000, 65536), 0);
	assert_int_equal(ledger_deferrable(LEDGER_UNSEEN_NS, 4000, 4000, 65536), LEDGER_AHEAD_NS);
}

static void only_hits_make_g_grow(void **state)
{
	(void)state;
	assert_int_equal(ledger_growth(1000, 1500, 500, 0), 500);
	assert_true(ledger_growth(1000, 900, 500, 0) <= 0); /* it owed more than it earned */
	assert_int_equal(ledger_growth(1000, 1200, 500, 0), 200);
	assert_int_equal(ledger_growth(1000, 2500, 500, 1000),
			 500); /* 1000 ahead by edges are not booked by its holder's hit */
	assert_int_equal(ledger_growth(1000, 2500, 500, 700),
			 800); /* for 300 of it the thread was really stopped */
	assert_int_equal(ledger_growth(1000, 1700, 500, 1000),
			 500); /* others' hits have booked most of that */
	/* A CPU's clock that is ahead stays there, whatever runs. */
	assert_int_equal(ledger_cpu_advance(1200, 100, 1000), 1200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unbooked_earnings_are_the_share_of_hits),
		cmocka_unit_test(what_may_be_earned_is_not_paid_yet),
		cmocka_unit_test(only_hits_make_g_grow),
		cmocka_unit_test(hit_is_share_of_weight),
		cmocka_unit_test(lumps_book_all_that_is_earned),
		cmocka_unit_test(wake_takes_the_later_clock),
		cmocka_unit_test(unused_blocked_time_is_kept),
		cmocka_unit_test(unused_wait_is_forgotten),
		cmocka_unit_test(cpu_edge_takes_the_cpus_clock),
		cmocka_unit_test(foreign_time_is_pause_up_to_g),
		cmocka_unit_test(stopped_time_is_no_waiting),
		cmocka_unit_test(a_wait_for_a_level_thread_is_credited_up_to_its_length),
		cmocka_unit_test(unseen_costs_follow_the_seen_ones),
		cmocka_unit_test(buckets_are_quarter_octaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
