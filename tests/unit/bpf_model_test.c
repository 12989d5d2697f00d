// SPDX-License-Identifier: BSD-2-Clause
/* A discrete model of sampling, ledger and payments, with the ledger's own arithmetic
 * (bpf/ledger.h): small programs of two threads on two CPUs (bpf_model_programs.h), whose causal
 * profile is arithmetic. It has no kernel, no wake-up latency and no cost of anything, so what it
 * misses is the method's own error: samples come by the clock, and what they stand for is booked
 * late. Growth of G is booked hits and nothing else, in all of them. Built plain: it simulates for
 * long, and with sanitizers takes five times as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf_native.h"
#include "bpf_model_programs.h"
#include "bpf/clock.h"
#include "bpf/vector.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STEP_NS 5000
#define US 1000LL
/* As user/experiment/session/session.c has them. */
#define THRESHOLD_NS 2000
#define UNUSED_WAIT_NS (3000 * US)
#define UNUSED_WAIT_AGE_NS (50000 * US)
/* As user/experiment/session/events.c has them: on each CPU, of so many times the distance between
 * samples, more or less. */
#define CLOCKS 2
#define PERIOD_SPREAD 1.2
#define PERIOD 1.155
#define REDRAW_NS (500000 * US)
/* Rounds of one length to the nanosecond would fall in step with the clocks. */
#define UNEVEN 0.03

struct thread {
	size_t at;
	s64 left; /* of the work under way; 0: it begins */
	struct clock clock;
	u64 blocked_at;
	enum what waits_for;
	int semaphore, cpu;
	bool blocked, paying;
	struct abi_vector vector, taken_by;
	bool taken;   /* its CPU, by another thread, which had taken_by then */
	u64 ready_at; /* for a CPU; 0: it has one */
};

struct cpu {
	struct {
		double next, period;
	} clocks[CLOCKS];
	bool tick; /* one came; whoever executes next is sampled */
	int runs;  /* which thread; -1: none */
	u64 left_at;
	struct abi_vector vector;
};

#define CPUS 2

struct model {
	const struct program *program;
	struct thread threads[THREADS];
	int semaphores[SEMAPHORES];
	struct thread *owner; /* of the lock */
	struct {
		u64 due; /* 0: nothing is queued */
		s64 clock;
		struct abi_vector vector;
	} items[SEMAPHORES];
	int tasks, unended;
	struct cpu cpus[CPUS];
	u64 now, all_visits, period, q16;
	s64 g, hits;
	struct rng rng;
	int redraws;
	/* Of slopes, at the visits of the window: the time since its begin, and the line's entry.
	 */
	double visits, time, time2, entry, product;
	double over, under;	 /* of the lines that were fitted to windows */
	double executed, ticked; /* by all threads, and what ticks stood for of it */
};

#define WINDOW_NS (250000 * US)

static u64 window_of(const struct model *m)
{
	return 1 + m->now / (u64)WINDOW_NS;
}

static u64 age_of(const struct model *m)
{
	return m->now % (u64)WINDOW_NS;
}

/* As user/experiment/session/slopes.c has it. */
static void close_window(struct model *m)
{
	if (m->visits > 0) {
		m->over += m->product - m->entry * m->time / m->visits;
		m->under += m->time2 - m->time * m->time / m->visits;
	}
	m->visits = m->time = m->time2 = m->entry = m->product = 0;
}

static double uneven(struct model *m, double by)
{
	return 1 - by / 2 + by * rng_unit(&m->rng);
}

static void start_clock(struct model *m, int cpu, int n, double next)
{
	m->cpus[cpu].clocks[n].period =
		CLOCKS * (double)m->period * PERIOD * uneven(m, PERIOD_SPREAD);
	m->cpus[cpu].clocks[n].next = (double)m->now + next * m->cpus[cpu].clocks[n].period;
}

/* All, or one of each CPU. */
static void start_clocks(struct model *m, bool all)
{
	for (int i = 0; i < CPUS; i++)
		for (int j = 0; j < CLOCKS; j++)
			if (all || (m->redraws + i + j) % CLOCKS == 0)
				start_clock(m, i, j, all ? rng_unit(&m->rng) : 1);
	m->redraws++;
}

static void tick(struct model *m, struct cpu *c)
{
	c->tick = false;
	for (int i = 0; i < CLOCKS; i++) {
		if (c->clocks[i].next > (double)m->now)
			continue;
		c->clocks[i].next += c->clocks[i].period;
		c->tick = true;
	}
}

/* Between the ticks of a CPU, mean. */
static double spacing(const struct cpu *c)
{
	double frequency = 0;

	for (int i = 0; i < CLOCKS; i++)
		frequency += 1 / c->clocks[i].period;
	return 1 / frequency;
}

static void block(struct model *m, struct thread *t, enum what why, int semaphore)
{
	t->blocked = true;
	t->waits_for = why;
	t->semaphore = semaphore;
	t->blocked_at = m->now;
}

static s64 clock_of(const struct thread *t)
{
	return clock_expected(&t->clock, t->clock.exec);
}

static void wake_with(struct model *m, struct thread *w, s64 clock)
{
	int level;
	s64 change = clock_wake(&w->clock, clock_of(w), clock, m->now - w->blocked_at, m->now,
				UNUSED_WAIT_NS, UNUSED_WAIT_AGE_NS, &level);

	w->clock.local += clock_clamp_ahead(&w->clock, change, m->g);
	w->blocked = false;
	w->paying = false;
	w->ready_at = m->now;
}

static void wake(struct model *m, struct thread *w, const struct thread *k)
{
	u64 waited = m->now - w->blocked_at;

	wake_with(m, w, clock_of(k));
	vector_meet(&w->vector, &((struct thread *)(uintptr_t)k)->vector, waited, age_of(m),
		    window_of(m));
	/* Now and then to where its waker is, or to the other CPU. */
	if (m->program->wanders && rng_below(&m->rng, 4) == 0)
		w->cpu = k->cpu;
	else if (m->program->wanders && rng_below(&m->rng, 8) == 0)
		w->cpu = !w->cpu;
}

static struct thread *waiting(struct model *m, enum what why, int semaphore)
{
	for (size_t i = 0; i < THREADS; i++)
		if (m->threads[i].blocked && m->threads[i].waits_for == why &&
		    m->threads[i].semaphore == semaphore)
			return &m->threads[i];
	return NULL;
}

/* R1. */
static void sample(struct model *m, struct thread *t, bool in_line)
{
	s64 earned = in_line ? ledger_earned((u64)t->clock.exec, m->q16) : 0, by;

	clock_learn(&t->clock, (u64)t->clock.exec, earned);
	t->clock.exec = t->clock.deferrable = 0;
	t->clock.local += earned;
	by = ledger_growth(m->g, t->clock.local, earned, t->clock.ahead);
	if (by > 0)
		m->g += by;
	m->hits += earned;
}

/* Works for up to @budget; returns what is left of that. */
static s64 work(struct model *m, struct thread *t, const struct step *s, s64 budget)
{
	struct cpu *c = &m->cpus[t->cpu];
	s64 ran;

	if (s->what == SPIN)
		t->left = budget;
	else if (t->left == 0)
		t->left = (s64)(s->arg * US * uneven(m, UNEVEN));
	ran = t->left < budget ? t->left : budget;
	t->left -= ran;
	t->clock.exec += ran;
	m->executed += (double)ran;
	if (c->tick) {
		c->tick = false;
		sample(m, t, s->what == LINE || s->what == TASK);
		m->ticked += spacing(c);
		vector_enter(&t->vector, window_of(m));
		vector_add(&t->vector,
			   s->what == LINE || s->what == TASK ? ABI_ENTRY_FIRST : ABI_ENTRY_REST,
			   (u64)spacing(c));
	}
	if (t->left == 0 && s->what == TASK)
		t->at += --m->unended == 0;
	else if (t->left == 0 && s->what != SPIN)
		t->at++;
	return budget - ran;
}

/* Does @t have, or get, a task to work on? */
static bool has_task(struct model *m, struct thread *t)
{
	if (t->left)
		return true;
	if (!m->tasks) {
		block(m, t, TASK, 0);
		return false;
	}
	m->tasks--;
	return true;
}

/* Is what @t spins for there? It takes it. */
static bool ends_spinning(struct model *m, struct thread *t, const struct step *s)
{
	if (!m->semaphores[(int)s->arg])
		return false;
	m->semaphores[(int)s->arg]--;
	t->at++;
	return true;
}

static void run_workers(struct model *m)
{
	for (int i = 0; i < SEMAPHORES; i++) {
		struct thread *w = waiting(m, TAKE, i);

		if (!m->items[i].due || m->items[i].due > m->now)
			continue;
		m->items[i].due = 0;
		if (!w)
			m->semaphores[i]++;
		else if (m->program->worker == OUTSIDE)
			w->blocked = w->paying = false;
		else
			wake_with(m, w, m->program->worker == LEVEL ? m->g : m->items[i].clock);
		if (w)
			vector_meet(&w->vector, &m->items[i].vector, m->now - w->blocked_at,
				    age_of(m), window_of(m));
	}
}

static bool executes(const struct step *s)
{
	return s->what == LINE || s->what == OTHER || s->what == SPIN || s->what == TASK;
}

static void see_visit(struct model *m, struct thread *t)
{
	double time = (double)age_of(m), entry;

	vector_enter(&t->vector, window_of(m));
	entry = (double)t->vector.d[ABI_ENTRY_FIRST] * ABI_D_UNIT;
	m->visits++;
	m->time += time;
	m->time2 += time * time;
	m->entry += entry;
	m->product += time * entry;
}

/* @t goes on on CPU @n, at once: it takes it from whoever is there. */
static void take_cpu(struct model *m, struct thread *t, int n)
{
	struct cpu *c = &m->cpus[n];
	struct thread *w = c->runs < 0 ? NULL : &m->threads[c->runs];

	t->cpu = n;
	t->ready_at = m->now;
	if (w && w != t && !w->blocked && w->cpu == n) {
		w->taken = true;
		w->ready_at = m->now;
		vector_take(&w->taken_by, &t->vector, window_of(m));
		vector_take(&c->vector, &w->vector, window_of(m));
		c->left_at = m->now;
	}
	c->runs = (int)(t - m->threads);
}

/* Meets, locks and semaphores take no time. A thread that blocks in LOCK or TAKE has what it wants
 * when it is woken. */
static void synchronize(struct model *m, struct thread *t, const struct step *s)
{
	struct thread *other;

	t->at++;
	switch (s->what) {
	case MEET:
		other = waiting(m, MEET, 0);
		if (other)
			wake(m, other, t);
		else
			block(m, t, MEET, 0);
		break;
	case LOCK:
		if (m->owner)
			block(m, t, LOCK, 0);
		else
			m->owner = t;
		break;
	case UNLOCK:
		m->owner = waiting(m, LOCK, 0);
		if (m->owner)
			wake(m, m->owner, t);
		break;
	case GIVE:
		other = waiting(m, TAKE, (int)s->arg);
		if (other)
			wake(m, other, t);
		else
			m->semaphores[(int)s->arg]++;
		break;
	case QUEUE:
		m->items[(int)s->arg].due = m->now + WORKER_US * US;
		m->items[(int)s->arg].clock = clock_of(t);
		m->items[(int)s->arg].vector = t->vector;
		break;
	case TAKE:
		if (m->semaphores[(int)s->arg])
			m->semaphores[(int)s->arg]--;
		else
			block(m, t, TAKE, (int)s->arg);
		break;
	case BATCH:
		m->tasks = m->unended = (int)s->arg;
		while ((other = waiting(m, TASK, 0)))
			wake(m, other, t);
		break;
	case MOVE:
		take_cpu(m, t, (int)s->arg);
		break;
	case VISIT:
		m->all_visits++;
		see_visit(m, t);
		break;
	default:
		t->at = 0;
	}
}

/* R2: who owes does nothing else. */
static bool pays(struct model *m, struct thread *t)
{
	s64 owes;

	if (!t->paying)
		t->clock.deferrable =
			ledger_deferrable(t->clock.exec, t->clock.earned, t->clock.seen, m->q16);
	owes = m->g - t->clock.local - t->clock.deferrable;
	if (owes <= 0 || (!t->paying && owes < THRESHOLD_NS)) {
		t->paying = false;
		return false;
	}
	t->paying = true;
	t->clock.local += owes < STEP_NS ? owes : STEP_NS;
	return true;
}

/* The thread that is on CPU @n: until it blocks or leaves, then any other there. */
static struct thread *on_cpu(struct model *m, int n)
{
	struct cpu *c = &m->cpus[n];
	struct thread *t;

	if (c->runs >= 0 && !m->threads[c->runs].blocked && m->threads[c->runs].cpu == n)
		return &m->threads[c->runs];
	if (c->runs >= 0) {
		vector_take(&c->vector, &m->threads[c->runs].vector, window_of(m));
		c->left_at = m->now;
	}
	c->runs = -1;
	for (int i = 0; i < THREADS; i++)
		if (!m->threads[i].blocked && m->threads[i].cpu == n)
			c->runs = i;
	if (c->runs < 0)
		return NULL;
	t = &m->threads[c->runs];
	if (t->taken && c->left_at > t->ready_at)
		vector_resume(&t->vector, &c->vector, &t->taken_by, window_of(m));
	else if (t->ready_at && c->left_at > t->ready_at)
		vector_meet(&t->vector, &c->vector, m->now - t->ready_at, age_of(m), window_of(m));
	t->taken = false;
	return t;
}

static void run(struct model *m, int n)
{
	s64 budget = STEP_NS;
	struct thread *t;

	while (budget > 0 && (t = on_cpu(m, n)) && !pays(m, t)) {
		const struct step *s = &m->program->steps[t - m->threads][t->at];

		if ((s->what == TASK && !has_task(m, t)) ||
		    (s->what == SPIN && ends_spinning(m, t, s)))
			continue;
		if (executes(s))
			budget = work(m, t, s, budget);
		else
			synchronize(m, t, s);
	}
}

/* Runs @p for so long, its line faster by @speedup by pauses. */
static void run_program(struct model *ret, const struct program *p, double speedup, u64 length_ns)
{
	struct model m = {.program = p,
			  .period = (p->period ? p->period : 250) * US,
			  .q16 = (u64)(speedup * 65536)};

	rng_seed(&m.rng, 4);
	memcpy(m.semaphores, p->semaphores, sizeof(m.semaphores));
	m.tasks = m.unended = 32;
	for (int i = 0; i < CPUS; i++) {
		m.cpus[i].runs = -1;
		m.threads[i].cpu = i;
	}
	start_clocks(&m, true);
	for (u64 redraw = REDRAW_NS; m.now < length_ns; m.now += STEP_NS) {
		if (m.now >= redraw) {
			start_clocks(&m, false);
			redraw += REDRAW_NS;
		}
		if (age_of(&m) == 0)
			close_window(&m);
		run_workers(&m);
		for (int i = 0; i < CPUS; i++) {
			tick(&m, &m.cpus[i]);
			run(&m, i);
		}
	}
	if (m.g > m.hits)
		fail_msg("%s: G grew by %lld, hits were %lld", p->name, (long long)m.g,
			 (long long)m.hits);
	*ret = m;
}

/* Effective time per visit (R8), in ns. */
static double period_at(const struct program *p, double speedup, u64 length_ns)
{
	struct model m;

	run_program(&m, p, speedup, length_ns);
	return (double)(length_ns - (u64)m.g) / (double)m.all_visits;
}

/* The slope of each program's line, from one run at 0 %, in windows. */
static void slopes_are_derivatives(void **state)
{
	size_t checked = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *p = &programs[i];
		struct model m;
		double slope;

		run_program(&m, p, 0, 16000000 * US);
		slope = 100 * m.over / m.under * m.executed / m.ticked;
		printf("%-32s slope %5.1f (%4.1f)\n", p->name, slope, p->slope);
		if (p->slope < 0)
			continue;
		checked++;
		if (fabs(slope - p->slope) > 1.5)
			fail_msg("%s: %.1f, not %.1f", p->name, slope, p->slope);
	}
	assert_true(checked > 15);
}

static void predictions_come_true(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *p = &programs[i];
		double base = period_at(p, 0, 2000000 * US);
		double half = 100 * (1 - period_at(p, 0.5, 8000000 * US) / base);
		double full = 100 * (1 - period_at(p, 1, 8000000 * US) / base);

		printf("%-32s 50 %%: %5.1f (%4.1f)  100 %%: %5.1f (%4.1f)\n", p->name, half,
		       p->truth_50, full, p->truth_100);
		if (fabs(half - p->truth_50) > p->bound || fabs(full - p->truth_100) > p->bound)
			fail_msg("%s: %.1f at 50 %%, %.1f at 100 %%, not %.1f and %.1f", p->name,
				 half, full, p->truth_50, p->truth_100);
	}
}

static double effect_with(struct program p, enum worker_clock worker)
{
	p.worker = worker;
	return 100 * (1 - period_at(&p, 1, 4000000 * US) / period_at(&p, 0, 2000000 * US));
}

/* R10: what an event outside of the scope, or a level waker, would make of these programs. */
static void workers_wake_with_the_clock_of_who_queued(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *p = &programs[i];

		if (strcmp(p->name, "turns by a worker") == 0)
			assert_true(effect_with(*p, OUTSIDE) < p->truth_100 - 20);
		if (strcmp(p->name, "beside a worker") == 0)
			assert_true(effect_with(*p, LEVEL) > p->truth_100 + 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predictions_come_true),
		cmocka_unit_test(slopes_are_derivatives),
		cmocka_unit_test(workers_wake_with_the_clock_of_who_queued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
