// SPDX-License-Identifier: BSD-2-Clause
/* The programs at work on a real process: a child with threads whose hot loops, wake-ups and exits make every program run. */
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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t sink;
static sem_t full, empty;

__attribute__((noinline)) static void produce(void)
{
	for (int i = 0; i < 200000; i++)
		sink += (uint64_t)i;
}

__attribute__((noinline)) static void consume(void)
{
	for (int i = 0; i < 100000; i++)
		sink += (uint64_t)i;
}

/* Global, so that the probe finds it. */
__attribute__((noinline)) void drive_item_done(void);
__attribute__((noinline)) void drive_item_done(void)
{
	__asm__ volatile("");
}

static void *producer(void *arg)
{
	for (;;) {
		produce();
		sem_post(&full);
		sem_wait(&empty);
	}
	return arg;
}

static void *consumer(void *arg)
{
	for (;;) {
		sem_wait(&full);
		consume();
		drive_item_done();
		sem_post(&empty);
	}
	return arg;
}

static void *short_lived(void *arg)
{
	consume();
	return arg;
}

static void child(int go)
{
	pthread_t t;
	char c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &c, 1) < 0)
		_exit(1);
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

struct driven {
	struct session *session;
	struct code_map *code;
	pid_t pid;
};

static void start(struct driven *d, enum abi_payer payer, const char *disabled)
{
	struct session_options o = {.payer = payer, .signo = SIGRTMAX - 3, .rate_hz = 1000, .seed = 1, .disabled = disabled, .slows = true};
	struct code_scope scope = {.functions = true};
	struct session_site site = {0};
	size_t point;
	struct elf_symbol sym;
	struct error e = {.text = ""};
	int go[2];
	bool changed;

	assert_int_equal(pipe(go), 0);
	if (code_map_open("/proc/self/exe", &scope, &d->code, &e) < 0 || session_open(&o, &d->session, &e) < 0)
		fail_msg("%s", e.text);
	session_calibrate(d->session);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		(void)close(go[1]);
		child(go[0]);
	}
	(void)close(go[0]);
	if (session_attach(d->session, d->pid, &e) < 0)
		fail_msg("%s", e.text);
	site.object = code_map_main(d->code);
	assert_int_equal(elf_object_find_function(site.object, "drive_item_done", &sym), 0);
	site.vaddr = sym.addr;
	if (session_new_point(d->session, "item", &point, &e) < 0 ||
	    session_attach_sites(d->session, point, false, &site, 1, &e) < 0 || code_map_refresh(d->code, d->pid, &changed, &e) < 0 ||
	    session_set_code(d->session, d->code, &e) < 0)
		fail_msg("%s", e.text);
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

/* @speedup below 0: slowed by that. */
static void experiment(struct driven *d, double speedup, struct backend_totals *before, struct backend_totals *after,
		       struct backend_owed *owed)
{
	struct backend_interval iv[BACKEND_MAX_INTERVALS];
	struct backend_setup setup = {.intervals = iv, .speedup = speedup > 0 ? speedup : 0, .slow = speedup < 0 ? -speedup : 0};

	assert_int_equal(session_backend.intervals(d->session, "produce", iv, &setup.n_intervals), 0);
	assert_int_equal(session_backend.begin(d->session, &setup), 0);
	assert_int_equal(session_backend.snapshot(d->session, before), 0);
	(void)usleep(500000);
	assert_int_equal(session_backend.end(d->session), 0);
	assert_int_equal(session_backend.snapshot(d->session, after), 0);
	assert_int_equal(session_backend.owed(d->session, owed), 0);
}

static void samples_name_the_hot_function(void **state)
{
	struct backend_sample *s;
	uint64_t in_produce = 0, all = 0;
	struct driven d;
	size_t n;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE, NULL);
	(void)usleep(300000);
	assert_int_equal(session_backend.samples(d.session, &s, &n), 0);
	for (size_t i = 0; i < n; i++) {
		const char *line, *function;

		if (session_backend.name(d.session, s[i].addr, &line, &function) < 0)
			continue;
		all += s[i].count;
		if (strcmp(line, "produce") == 0)
			in_produce += s[i].count;
	}
	free(s);
	stop(&d);
	assert_true(all > 20);
	assert_true(in_produce * 10 > all * 3); /* about two thirds of the pair's work */
}

static void books_balance(struct driven *d, bool paying)
{
	struct backend_totals a, b;
	struct backend_owed owed;

	experiment(d, 0, &a, &b, &owed);
	assert_true(b.points[0].visits > a.points[0].visits);
	assert_true(b.points[0].last_ns >= b.points[0].first_ns && b.points[0].first_ns >= a.time_ns - NSEC_PER_MSEC);
	assert_int_equal(b.growth, a.growth);
	assert_int_equal(b.paid, a.paid);
	assert_true(b.selected_samples > a.selected_samples);
	assert_true(b.busy_ns > a.busy_ns);

	experiment(d, 0.5, &a, &b, &owed);
	assert_true(b.hits > a.hits);
	assert_true(b.hit_ns > a.hit_ns);
	/* G follows the one thread that hits: all hits and nothing else raise it. */
	assert_true(b.growth > a.growth);
	assert_true(b.growth - a.growth <= b.hit_ns - a.hit_ns + NSEC_PER_MSEC);
	/* The consumer waits for the producer in every round: it is credited by wake edges. */
	assert_true(b.credited > a.credited);
	if (paying)
		assert_true(b.payments > a.payments);
	assert_true(owed.threads >= 2);
	assert_true(owed.imbalance == 0);
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
	start(&d, ABI_PAY_HOLD, NULL);
	books_balance(&d, true);
	stop(&d);
}

/* Slowed by half, each sample stops its own thread for half of what it stands for, and nobody else for anything. */
static void slowing_charges_nobody(void **state)
{
	struct backend_totals a, b;
	struct backend_owed owed;
	uint64_t hit, paid;
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	if (!feature_usable("task_work", NULL)) {
		print_message("skipped: no BPF task work on this kernel\n");
		skip();
	}
	start(&d, ABI_PAY_HOLD, NULL);
	experiment(&d, -0.5, &a, &b, &owed);
	hit = b.hit_ns - a.hit_ns;
	paid = b.paid - a.paid;
	assert_int_equal(b.growth, a.growth);
	assert_true(b.hits > a.hits + 20);
	/* What they stand for, rounded for each. */
	assert_true(hit <= (b.selected_ns - a.selected_ns) / 2 && hit + (b.hits - a.hits) >= (b.selected_ns - a.selected_ns) / 2);
	/* A payment is a step of the clock longer than what was owed; what is owed at the end was not paid. */
	if (paid + owed.owed + 50000 < hit || paid > hit + hit / 10 + (b.payments - a.payments) * 5000)
		fail_msg("paid %llu, hits %llu, owed %llu", (unsigned long long)paid, (unsigned long long)hit, (unsigned long long)owed.owed);
	assert_int_equal(b.credited, a.credited);
	assert_int_equal(b.rq_credited, a.rq_credited);
	assert_int_equal(owed.imbalance, 0);
	/* The next one speeds up again. */
	experiment(&d, 0.5, &a, &b, &owed);
	assert_true(b.growth > a.growth);
	stop(&d);
}

static void books_balance_without_payer(void **state)
{
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE, "task_work,send_signal_task");
	books_balance(&d, false);
	stop(&d);
}

static void exits_are_stamped_and_slots_released(void **state)
{
	struct driven d;
	char *text;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE, NULL);
	(void)usleep(100000);
	assert_true(session_exit_ns(d.session) > 0);
	text = session_counters(d.session);
	assert_non_null(text);
	if (strstr(text, "slot") || strstr(text, "books"))
		fail_msg("%s", text);
	free(text);
	stop(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_name_the_hot_function),
		cmocka_unit_test(hold_books_balance),
		cmocka_unit_test(slowing_charges_nobody),
		cmocka_unit_test(books_balance_without_payer),
		cmocka_unit_test(exits_are_stamped_and_slots_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
