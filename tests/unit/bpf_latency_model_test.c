// SPDX-License-Identifier: BSD-2-Clause
/* A discrete model of latency points: the programs of tests/truth/programs/latency.c on two CPUs,
 * sampled by a few clocks with random periods, with the arithmetic of BPF's own ledger and smoothed
 * clocks (bpf/ledger.h, bpf/smooth.h). Without a kernel, percentiles must be what arithmetic says
 * but for the method's own error. Built plain: it simulates for long, and with sanitizers takes
 * five times as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf_native.h"
#include "bpf/clock.h"
#include "bpf/smooth.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_NS 4000
#define US 1000LL
#define PERIOD_NS (500 * US)
#define CLOCKS 6
#define LENGTH_NS (15000000 * US)
#define MAX_INTERVALS 10000
/* As user/experiment/session/session.c has them. */
#define THRESHOLD_NS 2000
#define UNUSED_WAIT_NS (3000 * US)
#define UNUSED_WAIT_AGE_NS (50000 * US)
/* Of programs/latency.c. */
#define FAST_NS (2500 * US)
#define SLOW_NS (12500 * US)
#define SERVE_NS (12000 * US)
#define MAKE_NS (8000 * US)
#define CLASS 20
#define WINDOW 2

struct thread {
	struct clock clock;
	s64 left, unseen;
	u64 blocked_at;
	bool blocked, paying, slow;
	s64 clocks[CLOCKS], periods[CLOCKS];
	struct smooth smooth;
};

struct begin {
	u64 ns;
	s64 local;
	struct smooth smooth;
	const struct thread *thread;
};

struct model {
	bool queue;
	char line;
	u64 now, q16;
	s64 g;
	struct thread threads[2];
	struct begin begins[WINDOW];
	unsigned int made, done, slow_at;
	struct smooth_share shares[SMOOTH_SHARES];
	double lengths[MAX_INTERVALS];
	size_t n;
	struct rng rng;
};

static s64 period(struct model *m)
{
	return (s64)(PERIOD_NS * CLOCKS * (0.75 + 0.5 * rng_unit(&m->rng)));
}

/* R1. */
static void sample(struct model *m, struct thread *t, bool in_line)
{
	s64 earned = in_line ? ledger_earned((u64)t->unseen, m->q16) : 0, by;

	t->unseen = 0;
	t->clock.local += earned;
	by = earned ? ledger_growth(m->g, t->clock.local, earned, t->clock.ahead) : 0;
	if (by > 0)
		m->g += by;
	smooth_sampled(&t->smooth, t->smooth.exec, in_line, earned, m->q16);
	t->smooth.exec = 0;
}

/* As bpf/latency.h has it. */
static void wake(struct model *m, struct thread *w, const struct thread *k)
{
	int level;
	s64 change = clock_wake(&w->clock, w->clock.local, k->clock.local, m->now - w->blocked_at,
				m->now, UNUSED_WAIT_NS, UNUSED_WAIT_AGE_NS, &level);

	w->clock.local += clock_clamp_ahead(&w->clock, change, m->g);
	w->blocked = w->paying = false;
	if (level)
		smooth_woken(&w->smooth, w->smooth.exec,
			     smooth_now(&k->smooth, k->smooth.exec, m->q16), m->q16, m->now);
}

static void block(struct model *m, struct thread *t)
{
	t->blocked = true;
	t->blocked_at = m->now;
}

static void mark(struct model *m, struct thread *t)
{
	smooth_visited(&t->smooth, t->smooth.exec, m->q16);
	t->smooth.exec = 0;
}

static void begins(struct model *m, struct thread *t, unsigned int request)
{
	mark(m, t);
	m->begins[request % WINDOW] = (struct begin){m->now, t->clock.local, t->smooth, t};
}

static void ends(struct model *m, struct thread *t, unsigned int request)
{
	const struct begin *b = &m->begins[request % WINDOW];
	s64 length;

	mark(m, t);
	length = (s64)(m->now - b->ns) - (t->clock.local - b->local) -
		 (t->smooth.ahead - b->smooth.ahead);
	length = smooth_length(&t->smooth, &b->smooth, b->ns, t == b->thread, length, m->q16,
			       m->shares, 1);
	assert_true(m->n < MAX_INTERVALS);
	m->lengths[m->n++] = (double)length;
}

static void serve_classes(struct model *m, struct thread *t)
{
	if (!t->slow && m->done % CLASS == m->slow_at) {
		t->slow = true;
		t->left = SLOW_NS;
		return;
	}
	t->slow = false;
	t->left = FAST_NS;
	ends(m, t, m->done++);
	if (m->done % CLASS == 0)
		m->slow_at = (unsigned int)rng_below(&m->rng, CLASS);
	begins(m, t, m->done);
}

static void make(struct model *m, struct thread *t, struct thread *server)
{
	t->left = MAKE_NS;
	begins(m, t, m->made++);
	if (server->blocked)
		wake(m, server, t);
	if (m->made - m->done == WINDOW)
		block(m, t);
}

static void serve_queue(struct model *m, struct thread *t, struct thread *maker)
{
	t->left = SERVE_NS;
	ends(m, t, m->done++);
	if (maker->blocked)
		wake(m, maker, t);
	if (m->made == m->done)
		block(m, t);
}

/* R2: who owes does nothing else. */
static bool pays(struct model *m, struct thread *t)
{
	s64 owes = m->g - t->clock.local;

	if (owes <= 0 || (!t->paying && owes < THRESHOLD_NS)) {
		t->paying = false;
		return false;
	}
	t->paying = true;
	t->clock.local += STEP_NS; /* as long as it is stopped */
	return true;
}

static bool ticks(struct thread *t)
{
	bool any = false;

	for (size_t i = 0; i < CLOCKS; i++) {
		t->clocks[i] -= STEP_NS;
		if (t->clocks[i] > 0)
			continue;
		t->clocks[i] += t->periods[i];
		any = true;
	}
	return any;
}

/* What each thread works on. */
static bool in_line(const struct model *m, size_t i)
{
	if (m->queue)
		return m->line == (i == 0 ? 'b' : 'a');
	return m->line == (i == 1 ? 'c' : m->threads[0].slow ? 'a' : 'b');
}

static void step(struct model *m, size_t i)
{
	struct thread *t = &m->threads[i], *other = &m->threads[1 - i];
	bool tick = ticks(t);

	if (t->blocked || pays(m, t))
		return;
	t->left -= STEP_NS;
	t->unseen += STEP_NS;
	t->smooth.exec += STEP_NS;
	if (tick)
		sample(m, t, in_line(m, i));
	if (t->left > 0)
		return;
	if (!m->queue && i == 0)
		serve_classes(m, t);
	else if (!m->queue)
		t->left = FAST_NS;
	else if (i == 0)
		make(m, t, other);
	else
		serve_queue(m, t, other);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void run(struct model *m, bool queue, char line, double speedup)
{
	rng_seed(&m->rng, 7);
	m->queue = queue;
	m->line = line;
	m->q16 = (u64)(speedup * 65536);
	m->now = m->made = m->done = m->slow_at = 0;
	m->g = 0;
	m->n = 0;
	memset(m->threads, 0, sizeof(m->threads));
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < CLOCKS; k++) {
			m->threads[i].periods[k] = period(m);
			m->threads[i].clocks[k] =
				(s64)rng_below(&m->rng, (u64)m->threads[i].periods[k]);
		}
		m->threads[i].left = queue ? i ? SERVE_NS : MAKE_NS : FAST_NS;
	}
	if (queue)
		block(m, &m->threads[1]);
	else
		begins(m, &m->threads[0], 0);
	for (; m->now < LENGTH_NS; m->now += STEP_NS)
		for (size_t i = 0; i < 2; i++)
			step(m, i);
	qsort(m->lengths, m->n, sizeof(*m->lengths), by_value);
}

static double quantile(const struct model *m, double q)
{
	return m->lengths[(size_t)(q * (double)m->n)];
}

static double truth(bool queue, char line, double speedup, double q)
{
	double rest = 1 - speedup, a = line == 'a' ? rest : 1, b = line == 'b' ? rest : 1;

	if (queue) {
		a *= SERVE_NS;
		b *= MAKE_NS;
		return a > b ? 2 * a - b : a;
	}
	return FAST_NS * b + (q > 0.95 ? SLOW_NS * a : 0);
}

/* Both percentiles of the bar, and what is between them, where noise shows first. */
static void percentiles_are_as_arithmetic_says(void **state)
{
	static const struct {
		const char *name;
		bool queue;
		char line;
	} cases[] = {{"classes/a", false, 'a'},
		     {"classes/b", false, 'b'},
		     {"classes/c", false, 'c'},
		     {"queue/a", true, 'a'},
		     {"queue/b", true, 'b'}};
	static const double quantiles[] = {0.5, 0.9, 0.99};
	struct model *m = calloc(1, sizeof(*m));

	(void)state;
	assert_non_null(m);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double base[3];

		memset(m->shares, 0, sizeof(m->shares));
		run(m, cases[i].queue, cases[i].line, 0);
		for (size_t k = 0; k < 3; k++)
			base[k] = quantile(m, quantiles[k]);
		for (double s = 0.25; s < 1; s += 0.25) {
			run(m, cases[i].queue, cases[i].line, s);
			for (size_t k = 0; k < 3; k++) {
				double wanted =
					100 *
					(1 - truth(cases[i].queue, cases[i].line, s, quantiles[k]) /
						     truth(cases[i].queue, cases[i].line, 0,
							   quantiles[k]));
				double got = 100 * (1 - quantile(m, quantiles[k]) / base[k]);

				printf("%s %.0f %% p%.0f: %.2f (%.2f)\n", cases[i].name, 100 * s,
				       100 * quantiles[k], got, wanted);
				if (fabs(got - wanted) > fmax(0.05 * fabs(wanted), 0.5))
					fail_msg("%s, p%.0f at %.0f %%: %.2f for %.2f",
						 cases[i].name, 100 * quantiles[k], 100 * s, got,
						 wanted);
			}
		}
	}
	free(m);
}

static void roots_are_rounded_down(void **state)
{
	static const u64 of[] = {
		0, 1, 2, 3, 4, 15, 16, 65535, 65536, 0xfffe0001 - 1, 0xfffe0001, 0xffffffff};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		u64 root = smooth_root(of[i]);

		assert_true(root * root <= of[i] && (root + 1) * (root + 1) > of[i]);
	}
}

/* Half of the intervals are in the line, half are not, and no guess is involved: what they are
 * stays. */
static void true_differences_stay(void **state)
{
	struct smooth_share of = {0};

	(void)state;
	for (unsigned int i = 0; i < 2000; i++) {
		u64 line = i % 2 ? 8000000 : 0, got = smooth_line(&of, 8000000, line, 0);

		assert_true(got <= line + 80000 && got + 80000 >= line);
	}
}

/* All have half of it, and guesses are off by a quarter: one number for all. */
static void guesses_are_evened_out(void **state)
{
	struct smooth_share of = {0};
	u64 us = 8000000 >> 10;

	(void)state;
	for (unsigned int i = 0; i < 2000; i++) {
		u64 got = smooth_line(&of, 8000000, i % 2 ? 6000000 : 2000000, 12 * us * us / 16);

		if (i > 100)
			assert_true(got > 3700000 && got < 4300000);
	}
}

static void nonsense_is_harmless(void **state)
{
	struct smooth_share of = {0};

	(void)state;
	assert_int_equal(smooth_line(&of, 0, 5, 5), 5);
	assert_int_equal(smooth_line(&of, SMOOTH_LONGEST, 5, UINT64_MAX), 5);
	for (unsigned int i = 0; i < 1000; i++) {
		assert_true(smooth_line(&of, 1, UINT64_MAX, UINT64_MAX) <= 1);
		assert_true(smooth_line(&of, SMOOTH_LONGEST - 1, UINT64_MAX, UINT64_MAX) <
			    SMOOTH_LONGEST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_as_arithmetic_says),
		cmocka_unit_test(roots_are_rounded_down),
		cmocka_unit_test(true_differences_stay),
		cmocka_unit_test(guesses_are_evened_out),
		cmocka_unit_test(nonsense_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
