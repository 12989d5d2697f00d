// SPDX-License-Identifier: BSD-2-Clause
/* R9: a wait that something outside ends is sampled and earns; one that a thread of the program
 * ends is not. One thread computes, another one waits.
 */
#include "tests/bpf/driven.h"

#include "base/waits.h"
#include "experiment/session/internal.h"
#include "cozbpf.skel.h" /* after abi.h */

#define SLEEP_US 3000
#define WAITS_WANTED 20 /* of some 150 in an experiment */

__attribute__((noinline)) static void wait_there(void)
{
	(void)usleep(SLEEP_US);
	__asm__ volatile("");
}

__attribute__((noinline)) static void wait_for_thread(void)
{
	sem_wait(&full);
	__asm__ volatile("");
}

static void *compute(void *arg)
{
	for (;;)
		produce();
	return arg;
}

static void *waker(void *arg)
{
	for (;;) {
		for (int i = 0; i < 10; i++)
			produce();
		sem_post(&full);
	}
	return arg;
}

static void sleeps(void)
{
	pthread_t made;

	pthread_create(&made, NULL, compute, NULL);
	for (;;)
		wait_there();
}

static void is_woken_by_a_thread(void)
{
	pthread_t made;

	sem_init(&full, 0, 0);
	pthread_create(&made, NULL, waker, NULL);
	for (;;)
		wait_for_thread();
}

static void start(struct driven *d, void (*body)(void), const char *selected)
{
	struct session_options o = {.config.payer = ABI_PAY_HOLD,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 1000,
				    .seed = 1,
				    .config.waits = WAITS_ALL};

	driven_open(d, &o);
	d->function = selected;
	session_calibrate(d->session);
	driven_fork(d, body);
	driven_go(d);
}

/* The samples since the last look that are waits of @kind in @function (NULL: in none): ns. */
static uint64_t waited(struct driven *d, unsigned int kind, const char *function)
{
	_cleanup_free_ struct backend_sample *all = NULL;
	uint64_t ns = 0;
	size_t n = 0;

	assert_int_equal(session_backend.samples(d->session, &all, &n), 0);
	for (size_t i = 0; i < n; i++) {
		const char *name = NULL, *of = NULL;

		if (ABI_CODE_WAIT(all[i].addr) != kind ||
		    session_backend.name(d->session, all[i].addr, &name, &of) < 0)
			continue;
		assert_true(all[i].wait);
		if (function ? of && strcmp(of, function) == 0 : !of)
			ns += all[i].ns;
	}
	return ns;
}

static void a_sleep_earns(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	struct driven d;
	double slept, growth;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, sleeps, "wait_there [timer]");
	(void)waited(&d, ABI_WAIT_TIMER, "wait_there");
	driven_experiment(&d, 0.5, &a, &b, &owed);
	slept = (double)(b.selected_ns - a.selected_ns);
	growth = (double)(b.growth - a.growth);
	print_message("%llu waits of %.1f ms, growth %.1f ms\n",
		      (unsigned long long)(b.waits - a.waits), slept / 1e6, growth / 1e6);
	assert_true(b.waits - a.waits >= WAITS_WANTED);
	assert_true(slept / (double)(b.waits - a.waits) >= SLEEP_US * 1e3);
	/* The first one is cut at the begin. */
	assert_true(growth > 0.4 * slept && growth < 0.6 * slept);
	assert_int_equal(owed.imbalance, 0);
	assert_true((double)waited(&d, ABI_WAIT_TIMER, "wait_there") >= 0.9 * slept);
	driven_stop(&d);
}

/* Nor does any other place, or what the program executes. */
static void only_the_selected_kind_earns(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, sleeps, "[disk]");
	driven_experiment(&d, 0.5, &a, &b, &owed);
	assert_int_equal(b.growth - a.growth, 0);
	assert_int_equal(b.waits - a.waits, 0);
	assert_true(waited(&d, ABI_WAIT_TIMER, "wait_there") > 0);
	driven_stop(&d);
}

static void a_wait_for_a_thread_does_not(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	uint64_t ns = 0;
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, is_woken_by_a_thread, "wait_for_thread [network]");
	driven_experiment(&d, 0.5, &a, &b, &owed);
	assert_true(b.credited - a.credited >= 0);
	assert_int_equal(b.waits - a.waits, 0);
	for (unsigned int kind = 1; kind < ABI_WAITS; kind++)
		ns += waited(&d, kind, "wait_for_thread");
	assert_int_equal(ns, 0);
	driven_stop(&d);
}

static void two_on_one_cpu(void)
{
	pthread_t made;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	pthread_create(&made, NULL, compute, NULL);
	(void)compute(NULL);
}

/* Each of them waits half of the time. */
static void a_wait_for_a_cpu_earns(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	struct driven d;
	double elapsed, growth;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, two_on_one_cpu, "[cpu]");
	(void)waited(&d, ABI_WAIT_CPU, NULL);
	driven_experiment(&d, 0.5, &a, &b, &owed);
	elapsed = (double)(b.time_ns - a.time_ns);
	growth = (double)(b.growth - a.growth);
	print_message("%llu waits, growth %.1f of %.1f ms\n",
		      (unsigned long long)(b.waits - a.waits), growth / 1e6, elapsed / 1e6);
	assert_true(b.waits - a.waits >= WAITS_WANTED);
	assert_true(growth > 0.15 * elapsed && growth < 0.35 * elapsed);
	assert_int_equal(owed.imbalance, 0);
	assert_true((double)waited(&d, ABI_WAIT_CPU, NULL) > 0.7 * elapsed);
	driven_stop(&d);
}

/* 1000 threads would grow it by a thousand times as much: no more than 80 % and 0.1 s. */
static void *sleeper(void *arg)
{
	for (;;)
		wait_there();
	return arg;
}

static void sleeps_always(void)
{
	pthread_t made;

	for (int i = 0; i < 4; i++)
		pthread_create(&made, NULL, sleeper, NULL);
	(void)sleeper(NULL);
}

static void the_global_delay_is_bounded(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, sleeps_always, "wait_there [timer]");
	driven_experiment(&d, 1, &a, &b, &owed);
	print_message("growth %.1f of %.1f ms\n", (double)(b.growth - a.growth) / 1e6,
		      (double)(b.time_ns - a.time_ns) / 1e6);
	assert_true(b.growth > a.growth);
	assert_true((double)(b.growth - a.growth) <=
		    0.81 * (double)(b.time_ns - a.time_ns) + 110e6);
	assert_int_equal(owed.imbalance, 0);
	driven_stop(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_earns),
		cmocka_unit_test(only_the_selected_kind_earns),
		cmocka_unit_test(a_wait_for_a_thread_does_not),
		cmocka_unit_test(a_wait_for_a_cpu_earns),
		cmocka_unit_test(the_global_delay_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
