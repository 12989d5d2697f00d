/* SPDX-License-Identifier: BSD-2-Clause */
/* A session at work on a child of the test, which is this program: opened, forked, let go, driven
 * through experiments on one of the functions below, and ended. */
#pragma once

#include "base/clock.h"
#include "base/error.h" /* before cmocka, whose macro fail() would hit it */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "program/code/map.h"
#include "points/points.h"
#include "experiment/session/session.h"
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

#define REQUIRE_FEATURE(name, what)                                             \
	do {                                                                    \
		REQUIRE_BPF();                                                  \
		if (!feature_usable(name, NULL)) {                              \
			print_message("skipped: no " what " on this kernel\n"); \
			skip();                                                 \
		}                                                               \
	} while (0)

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

/* Global, so that a probe finds it. */
__attribute__((noinline)) void driven_item_done(void);
__attribute__((noinline)) void driven_item_done(void)
{
	__asm__ volatile("");
}

static inline void *driven_producer(void *arg)
{
	for (;;) {
		produce();
		sem_post(&full);
		sem_wait(&empty);
	}
	return arg;
}

static inline void *driven_consumer(void *arg)
{
	for (;;) {
		sem_wait(&full);
		consume();
		driven_item_done();
		sem_post(&empty);
	}
	return arg;
}

static inline void *driven_short_lived(void *arg)
{
	consume();
	return arg;
}

/* Threads that wait for each other, are made and joined. */
static inline void driven_hand_over(void)
{
	pthread_t t;

	sem_init(&full, 0, 0);
	sem_init(&empty, 0, 0);
	pthread_create(&t, NULL, driven_producer, NULL);
	pthread_create(&t, NULL, driven_consumer, NULL);
	for (;;) {
		pthread_create(&t, NULL, driven_short_lived, NULL);
		pthread_join(t, NULL);
		usleep(1000);
	}
}

struct driven {
	const char *function; /* the selected one */
	struct session *session;
	struct code_map *code;
	pid_t pid;
	int go;
};

static inline void driven_open(struct driven *d, const struct session_options *o)
{
	struct code_scope scope = {.functions = true};
	struct error e = {.text = ""};

	d->function = "produce";
	if (code_map_open("/proc/self/exe", &scope, &d->code, &e) < 0 ||
	    session_open(o, &d->session, &e) < 0)
		fail_msg("%s", e.text);
}

/* A child in scope, which will do @body as soon as it may. */
static inline void driven_fork(struct driven *d, void (*body)(void))
{
	struct error e = {.text = ""};
	bool changed;
	int go[2];
	char c;

	assert_int_equal(pipe(go), 0);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		(void)close(go[1]);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &c, 1) < 0)
			_exit(1);
		body();
		_exit(1);
	}
	(void)close(go[0]);
	d->go = go[1];
	if (session_attach(d->session, d->pid, &e) < 0 ||
	    code_map_refresh(d->code, 0, d->pid, &changed, &e) < 0 ||
	    session_set_code(d->session, d->code, &e) < 0)
		fail_msg("%s", e.text);
}

static inline void driven_go(struct driven *d)
{
	assert_int_equal(write(d->go, "g", 1), 1);
	(void)close(d->go);
	(void)usleep(100000);
}

static inline void driven_stop(struct driven *d)
{
	(void)kill(d->pid, SIGKILL);
	(void)waitpid(d->pid, NULL, 0);
	session_close(d->session);
	code_map_close(d->code);
}

/* On produce. @speedup below 0: slowed by that. */
static inline void driven_begin(struct driven *d, double speedup, struct backend_totals *before)
{
	struct abi_interval iv[ABI_MAX_INTERVALS];
	struct backend_setup setup = {.intervals = iv,
				      .speedup = speedup > 0 ? speedup : 0,
				      .slow = speedup < 0 ? -speedup : 0};

	assert_int_equal(session_backend.intervals(d->session, d->function, iv, &setup.n_intervals),
			 0);
	assert_int_equal(session_backend.begin(d->session, &setup), 0);
	assert_int_equal(session_backend.snapshot(d->session, before), 0);
}

static inline void driven_end(struct driven *d, struct backend_totals *after,
			      struct profile_experiment *owed)
{
	assert_int_equal(session_backend.end(d->session), 0);
	assert_int_equal(session_backend.snapshot(d->session, after), 0);
	assert_int_equal(session_backend.owed(d->session, owed), 0);
}

static inline void driven_experiment(struct driven *d, double speedup,
				     struct backend_totals *before, struct backend_totals *after,
				     struct profile_experiment *owed)
{
	driven_begin(d, speedup, before);
	(void)usleep(500000);
	driven_end(d, after, owed);
}

/* Of the whole child. */
static inline uint64_t driven_cpu_ns(const struct driven *d)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(d->pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* An experiment without speedup and one with: G follows the one thread that hits, and the other is
 * credited, since it waits in every round. */
static inline void driven_books_balance(struct driven *d, bool paying)
{
	struct backend_totals a, b;
	struct profile_experiment owed;

	driven_experiment(d, 0, &a, &b, &owed);
	assert_int_equal(b.growth, a.growth);
	assert_int_equal(b.paid, a.paid);
	assert_true(b.selected_samples > a.selected_samples);
	driven_experiment(d, 0.5, &a, &b, &owed);
	assert_true(b.hits > a.hits);
	assert_true(b.hit_ns > a.hit_ns);
	assert_true(b.growth > a.growth);
	/* What asking costs beyond a sample's share is the asker's own delay: half a percent in a
	 * virtual machine. */
	assert_true(b.growth - a.growth <=
		    b.hit_ns - a.hit_ns + (b.hit_ns - a.hit_ns) / 50 + NSEC_PER_MSEC);
	assert_true(b.credited > a.credited);
	if (paying)
		assert_true(b.payments > a.payments);
	assert_true(owed.threads >= 2);
	assert_int_equal(owed.imbalance, 0);
}

/* Nothing was counted that should not be. */
static inline void driven_no_complaint(struct driven *d)
{
	char *text = session_counters(d->session);

	assert_non_null(text);
	if (strstr(text, "slot") || strstr(text, "books"))
		fail_msg("%s", text);
	free(text);
}
