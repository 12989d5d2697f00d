// SPDX-License-Identifier: BSD-2-Clause
/* --sync pthread at work on a real process, by probes on its C library: a child whose threads wait for each other, are made and joined. */
#include "base/clock.h"
#include "base/error.h" /* before cmocka, whose macro fail() would hit it */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "session/code_map.h"
#include "session/session.h"
#include "tests/bpf/require.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static sem_t full, empty;

__attribute__((noinline)) static void sync_produce(void)
{
	for (int i = 0; i < 200000; i++)
		sink += (uint64_t)i;
}

__attribute__((noinline)) static void sync_consume(void)
{
	for (int i = 0; i < 100000; i++)
		sink += (uint64_t)i;
}

static void *producer(void *arg)
{
	for (;;) {
		sync_produce();
		sem_post(&full);
		sem_wait(&empty);
	}
	return arg;
}

static void *consumer(void *arg)
{
	for (;;) {
		sem_wait(&full);
		sync_consume();
		sem_post(&empty);
	}
	return arg;
}

static void *short_lived(void *arg)
{
	sync_consume();
	return arg;
}

static void hand_over(void)
{
	pthread_t t;

	sem_init(&full, 0, 0);
	sem_init(&empty, 0, 0);
	pthread_create(&t, NULL, producer, NULL);
	pthread_create(&t, NULL, consumer, NULL);
	for (;;) {
		pthread_create(&t, NULL, short_lived, NULL);
		pthread_join(t, NULL);
		usleep(1000);
	}
}

/* With pauses, for which no sample must stand. */
static void work_and_rest(void)
{
	for (;;) {
		for (int i = 0; i < 20; i++)
			sync_produce();
		usleep(1000);
	}
}

struct driven {
	struct session *session;
	struct code_map *code;
	pid_t pid;
};

static void start(struct driven *d, enum abi_payer payer, const char *disabled, void (*body)(void))
{
	struct session_options o = {.payer = payer, .sync = ABI_SYNC_PTHREAD, .signo = SIGRTMAX - 3, .rate_hz = 2000, .seed = 1,
				    .disabled = disabled};
	struct code_scope scope = {.functions = true};
	struct error e = {.text = ""};
	bool changed;
	int go[2];
	char c;

	assert_int_equal(pipe(go), 0);
	if (code_map_open("/proc/self/exe", &scope, &d->code, &e) < 0 || session_open(&o, &d->session, &e) < 0)
		fail_msg("%s", e.text);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		(void)close(go[1]);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &c, 1) < 0)
			_exit(1);
		body();
	}
	(void)close(go[0]);
	if (session_attach(d->session, d->pid, &e) < 0 || code_map_refresh(d->code, d->pid, &changed, &e) < 0 ||
	    session_set_code(d->session, d->code, &e) < 0)
		fail_msg("%s", e.text);
	if (session_sync_libraries(d->session, &e) != 1)
		fail_msg("no C library: %s", e.text);
	assert_int_equal(write(go[1], "g", 1), 1);
	(void)close(go[1]);
	(void)usleep(100000);
}

static void stop(struct driven *d)
{
	(void)kill(d->pid, SIGKILL);
	(void)waitpid(d->pid, NULL, 0);
	session_close(d->session);
	code_map_close(d->code);
}

static void experiment(struct driven *d, double speedup, struct backend_totals *before, struct backend_totals *after,
		       struct backend_owed *owed)
{
	struct backend_interval iv[BACKEND_MAX_INTERVALS];
	struct backend_setup setup = {.intervals = iv, .speedup = speedup};

	assert_int_equal(session_backend.intervals(d->session, "sync_produce", iv, &setup.n_intervals), 0);
	assert_int_equal(session_backend.begin(d->session, &setup), 0);
	assert_int_equal(session_backend.snapshot(d->session, before), 0);
	(void)usleep(500000);
	assert_int_equal(session_backend.end(d->session), 0);
	assert_int_equal(session_backend.snapshot(d->session, after), 0);
	assert_int_equal(session_backend.owed(d->session, owed), 0);
}

static void books_balance(struct driven *d, bool paying)
{
	struct backend_totals a, b;
	struct backend_owed owed;

	experiment(d, 0, &a, &b, &owed);
	assert_int_equal(b.growth, a.growth);
	assert_int_equal(b.paid, a.paid);
	assert_true(b.selected_samples > a.selected_samples);
	experiment(d, 0.5, &a, &b, &owed);
	assert_true(b.hits > a.hits);
	assert_true(b.growth > a.growth);
	assert_true(b.growth - a.growth <= b.hit_ns - a.hit_ns + NSEC_PER_MSEC);
	/* The consumer waits for the producer in every round. */
	assert_true(b.credited > a.credited);
	if (paying)
		assert_true(b.payments > a.payments);
	assert_true(owed.threads >= 2);
	assert_int_equal(owed.imbalance, 0);
}

static void expect_no_complaint(struct driven *d)
{
	char *text = session_counters(d->session);

	assert_non_null(text);
	if (strstr(text, "slot") || strstr(text, "books"))
		fail_msg("%s", text);
	free(text);
}

static void hold_books_balance(void **state)
{
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	if (!feature_usable("task_work", NULL)) {
		print_message("skipped: no BPF task work on this kernel\n");
		skip();
	}
	start(&d, ABI_PAY_HOLD, NULL, hand_over);
	books_balance(&d, true);
	assert_true(session_exit_ns(d.session) > 0);
	expect_no_complaint(&d);
	stop(&d);
}

static void books_balance_without_the_scheduler(void **state)
{
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE, "task_work,send_signal_task,sched_switch,sched_waking,switch_raw", hand_over);
	books_balance(&d, false);
	expect_no_complaint(&d);
	stop(&d);
}

static uint64_t cpu_time_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* What the samples in the line stand for, against the CPU time of a thread that does nothing else. */
static void samples_stand_for_cpu_time(const char *disabled, double tolerance)
{
	struct backend_totals a, b;
	struct backend_owed owed;
	struct driven d;
	uint64_t cpu;
	double ratio;

	start(&d, ABI_PAY_NONE, disabled, work_and_rest);
	cpu = cpu_time_of(d.pid);
	experiment(&d, 0, &a, &b, &owed);
	cpu = cpu_time_of(d.pid) - cpu;
	ratio = (double)(b.selected_ns - a.selected_ns) / (double)cpu;
	stop(&d);
	print_message("%.3f of %.0f ms\n", ratio, (double)cpu / NSEC_PER_MSEC);
	assert_true(ratio > 1 - tolerance && ratio < 1 + tolerance);
}

static void time_is_exact_with_switches(void **state)
{
	(void)state;
	REQUIRE_BPF();
	if (!feature_usable("switch_raw", NULL)) {
		print_message("skipped: no raw tracepoints on this kernel\n");
		skip();
	}
	samples_stand_for_cpu_time(NULL, 0.1);
}

/* Some hundred samples: the error of their number is a few percent. */
static void time_is_estimated_without(void **state)
{
	(void)state;
	REQUIRE_BPF();
	samples_stand_for_cpu_time("switch_raw", 0.3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold_books_balance),
		cmocka_unit_test(books_balance_without_the_scheduler),
		cmocka_unit_test(time_is_exact_with_switches),
		cmocka_unit_test(time_is_estimated_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
