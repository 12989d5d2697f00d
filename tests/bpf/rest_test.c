// SPDX-License-Identifier: BSD-2-Clause
/* Between bursts of experiments nothing is sampled, and what the global delay may grow by has a
 * bound in the kernel. */
#include "tests/bpf/driven.h"

#include "experiment/session/internal.h"
#include "cozbpf.skel.h" /* after abi.h */

#define REST_US 600000
#define AWAKE_US 200000

static void *compute(void *arg)
{
	for (;;)
		produce();
	return arg;
}

/* Two threads, which both execute produce() all the time. */
static void computes(void)
{
	pthread_t made;

	pthread_create(&made, NULL, compute, NULL);
	(void)compute(NULL);
}

static void start(struct driven *d)
{
	struct session_options o = {.config.payer = ABI_PAY_HOLD,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 1000,
				    .seed = 1};

	driven_open(d, &o);
	d->function = "produce";
	session_calibrate(d->session);
	driven_fork(d, computes);
	driven_go(d);
}

/* The execution that samples since the last call stand for, ns; *ret_n: how many they are. */
static uint64_t sampled(struct driven *d, uint64_t *ret_n)
{
	_cleanup_free_ struct backend_sample *all = NULL;
	uint64_t ns = 0;
	size_t n = 0;

	*ret_n = 0;
	assert_int_equal(session_backend.samples(d->session, &all, &n), 0);
	for (size_t i = 0; i < n; i++) {
		ns += all[i].ns;
		*ret_n += all[i].count;
	}
	return ns;
}

static void nothing_is_sampled_at_rest(void **state)
{
	struct driven d;
	uint64_t n, ns, since;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d);
	(void)usleep(AWAKE_US);
	(void)sampled(&d, &n);
	assert_true(n > 50);
	assert_int_equal(session_backend.rest(d.session, true), 0);
	(void)sampled(&d, &n);
	(void)usleep(REST_US);
	(void)sampled(&d, &n);
	assert_int_equal(n, 0);
	since = clock_monotonic_ns();
	assert_int_equal(session_backend.rest(d.session, false), 0);
	(void)usleep(AWAKE_US);
	ns = sampled(&d, &n);
	since = clock_monotonic_ns() - since;
	print_message("%llu samples, %.0f ms, in %.0f ms\n", (unsigned long long)n,
		      (double)ns / 1e6, (double)since / 1e6);
	assert_true(n > 50);
	/* Two threads: the rest before is nobody's. */
	assert_true(ns < 2 * since + 20 * NSEC_PER_MSEC);
	driven_stop(&d);
}

/* An experiment as long as it likes: the global delay stops where it may go no further, and then
 * nobody is paused. */
static void the_global_delay_stops_at_its_bound(void **state)
{
	struct abi_interval intervals[ABI_MAX_INTERVALS];
	struct backend_setup setup = {
		.intervals = intervals, .speedup = 1, .most_growth_ns = 30 * NSEC_PER_MSEC};
	struct backend_totals a, b, c;
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d);
	(void)usleep(AWAKE_US);
	assert_int_equal(
		session_backend.intervals(d.session, "produce", intervals, &setup.n_intervals), 0);
	assert_int_equal(session_backend.begin(d.session, &setup), 0);
	assert_int_equal(session_backend.snapshot(d.session, &a), 0);
	(void)usleep(REST_US);
	assert_int_equal(session_backend.snapshot(d.session, &b), 0);
	(void)usleep(AWAKE_US);
	assert_int_equal(session_backend.end(d.session), 0);
	assert_int_equal(session_backend.snapshot(d.session, &c), 0);
	print_message("growth %.1f ms\n", (double)(b.growth - a.growth) / 1e6);
	assert_true(c.growth - a.growth <= setup.most_growth_ns);
	assert_true(c.growth - a.growth > setup.most_growth_ns / 2);
	assert_true(c.bounded);
	assert_true(c.paid - b.paid <= 2 * NSEC_PER_MSEC);
	/* The next one begins anew. */
	setup.speedup = 0;
	assert_int_equal(session_backend.begin(d.session, &setup), 0);
	assert_int_equal(session_backend.end(d.session), 0);
	assert_int_equal(session_backend.snapshot(d.session, &c), 0);
	assert_false(c.bounded);
	driven_stop(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_sampled_at_rest),
		cmocka_unit_test(the_global_delay_stops_at_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
