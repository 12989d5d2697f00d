// SPDX-License-Identifier: BSD-2-Clause
/* A discrete model of more threads than CPUs under hold, with the ledger's own arithmetic (bpf/ledger.h): a run queue, threads that sleep until a
 * timer wakes them, threads that pay on their CPU, and sleepers that sleep off what they owe (R6, pay_asleep in bpf/pay.h). As in
 * bpf_model_test.c there is no wake-up latency and no cost of anything.
 * Built plain: it simulates for long, and with sanitizers takes five times as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf_native.h"
#include "bpf/clock.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define US 1000LL
#define STEP_NS (10 * US)
#define SAMPLING_NS (250 * US)
/* As user/session/session.c, bpf/pay.h and user/shim/pay.c have them. */
#define THRESHOLD_NS 2000
#define UNUSED_WAIT_NS (3000 * US)
#define UNUSED_WAIT_AGE_NS (50000 * US)
#define PAY_ASLEEP_NS (200 * US)
#define MAX_PAY_NS (10000 * US)
#define SPIN_BELOW_NS (80 * US)
/* The scheduler's: a turn; and what a thread that slept may be behind the others. */
#define SLICE_NS (2800 * US)
#define BEHIND_NS (SLICE_NS / 2)

#define CPUS 2
#define THREADS 16

/* What a thread does, over and over. */
enum what {
	LINE,	/* work in the selected line, us */
	OTHER,	/* other work, us */
	ASLEEP, /* until a timer wakes it, us on average, half as much more or less */
	TAKE,	/* a permit */
	GIVE,
	VISIT,
	AGAIN,
};

struct step {
	enum what what;
	double arg;
};

struct program {
	const char *name;
	int threads, permits;
	double truth_50, truth_100; /* effect of the line being so much faster, percent */
	double bound;		    /* points that the model may be off */
	struct step steps[8];
};

/* As the truth suite has them (tests/truth/cases.py): 8 threads that share 3 permits, say, and sleep for 1 ms with one. */
static const struct program programs[] = {
	{"independent", 8, 0, 25, 50, 1.5, {{OTHER, 850}, {LINE, 850}, {VISIT, 0}, {AGAIN, 0}}},
	{"lock taken, inside", 16, 1, 31.2, 62.5, 1.5, {{TAKE, 0}, {OTHER, 3000}, {LINE, 5000}, {GIVE, 0}, {OTHER, 500}, {VISIT, 0}, {AGAIN, 0}}},
	{"lock taken, outside", 4, 1, 0, 0, 1, {{TAKE, 0}, {OTHER, 8000}, {GIVE, 0}, {LINE, 500}, {VISIT, 0}, {AGAIN, 0}}},
	{"lock free, outside", 8, 1, 45, 80, 2.5, {{TAKE, 0}, {OTHER, 500}, {GIVE, 0}, {LINE, 4500}, {VISIT, 0}, {AGAIN, 0}}},
	{"permits, inside", 4, 2, 12.5, 25, 2, {{TAKE, 0}, {LINE, 3000}, {ASLEEP, 9000}, {GIVE, 0}, {OTHER, 300}, {VISIT, 0}, {AGAIN, 0}}},
	{"cpus, inside", 8, 4, 35, 70, 2.5, {{TAKE, 0}, {LINE, 3500}, {GIVE, 0}, {OTHER, 1500}, {VISIT, 0}, {AGAIN, 0}}},
	{"asleep, outside", 8, 3, 45, 80, 4.5, {{TAKE, 0}, {OTHER, 500}, {ASLEEP, 1000}, {GIVE, 0}, {LINE, 4500}, {VISIT, 0}, {AGAIN, 0}}},
	{"asleep, inside", 8, 3, 5, 10, 1.5, {{TAKE, 0}, {LINE, 500}, {ASLEEP, 1000}, {GIVE, 0}, {OTHER, 4500}, {VISIT, 0}, {AGAIN, 0}}},
	{"asleep for long, outside", 16, 16, 45, 78.8, 9, {{TAKE, 0}, {OTHER, 500}, {ASLEEP, 8000}, {GIVE, 0}, {LINE, 4500}, {VISIT, 0}, {AGAIN, 0}}},
};

/* What the ledger did before it had the rule. */
enum without {
	NOTHING,
	PASSING_BY, /* a sleeper that comes by to go on sleeping leaves its clock to the CPU */
	AWAKE,	    /* one that slept off its debt also sleeps off what it owes for running */
	TO_THE_END, /* what is more than one payment is held */
};

enum state {
	RUNS,	 /* on a CPU */
	WAITS,	 /* for one */
	BLOCKED, /* for a permit */
	SLEEPS,
};

struct thread {
	enum state state;
	size_t at;
	s64 left; /* of the work under way; 0: it begins */
	struct clock clock;
	s64 vruntime;
	u64 blocked_at, runnable_at, wakes_at;
	u64 queued;	 /* its place among those who wait for a permit */
	bool owes_sleep; /* woken by a timer, and what it owes since is to be slept */
	bool paying;	 /* on its CPU */
	bool unasked;	 /* a payment has ended; the next sample asks for the rest */
	bool in_shim;	 /* asleep for what it owes, or come by to go on with that */
	u64 shim_from, shim_waited;
	s64 shim_until; /* after shim_from */
};

struct cpu {
	struct thread *runs;
	s64 local;
	s64 unseen; /* execution since the last sample */
	s64 tick;   /* until the next one */
	u64 since;
};

struct model {
	const struct program *program;
	enum without without;
	struct thread threads[THREADS];
	struct cpu cpus[CPUS];
	int permits;
	u64 now, visits, q16, order;
	s64 g;
	struct rng rng;
};

static s64 next_tick(struct model *m)
{
	return (s64)(-log(1 - rng_unit(&m->rng)) * SAMPLING_NS);
}

static s64 owes(const struct model *m, const struct thread *t)
{
	return m->g - t->clock.local;
}

static void wake(struct model *m, struct thread *w, const struct thread *k)
{
	int level;
	s64 change =
		clock_wake(&w->clock, w->clock.local, k->clock.local, m->now - w->blocked_at, m->now, UNUSED_WAIT_NS, UNUSED_WAIT_AGE_NS, &level);

	w->clock.local += clock_clamp_ahead(&w->clock, change, m->g);
	w->runnable_at = m->now;
	w->state = WAITS;
	w->owes_sleep = false;
}

static struct thread *first_for_permit(struct model *m)
{
	struct thread *first = NULL;

	for (int i = 0; i < m->program->threads; i++) {
		struct thread *t = &m->threads[i];

		if (t->state == BLOCKED && (!first || t->queued < first->queued))
			first = t;
	}
	return first;
}

/* As bpf/edges.h has it. */
static void leave(struct model *m, struct cpu *c, enum state state)
{
	struct thread *t = c->runs;

	t->state = state;
	if (state == WAITS)
		t->runnable_at = m->now;
	else
		t->blocked_at = m->now;
	if ((t->in_shim || t->owes_sleep) && m->without != PASSING_BY)
		c->local = ledger_cpu_advance(c->local, m->now - c->since, m->g);
	else
		c->local = t->clock.local;
	c->runs = NULL;
	c->since = m->now;
}

/* Sleeps what is left of the payment; little is spun off instead. */
static void shim_goes_on(struct model *m, struct cpu *c)
{
	struct thread *t = c->runs;
	s64 left = t->shim_until - (s64)(m->now - t->shim_from);

	if (left < SPIN_BELOW_NS)
		return;
	t->wakes_at = m->now + (u64)left;
	leave(m, c, SLEEPS);
}

/* pay_extend: the debt has grown meanwhile. */
static void shim_extends(struct model *m, struct thread *t)
{
	s64 owed = ledger_min(owes(m, t), MAX_PAY_NS);

	if (owed > t->shim_until)
		t->shim_until = owed;
	if (owes(m, t) > MAX_PAY_NS && m->without != TO_THE_END)
		t->owes_sleep = true;
}

static void shim_ends(struct model *m, struct thread *t)
{
	s64 d = (s64)(m->now - t->shim_from), over = t->clock.local + d - m->g;

	if (over > 0)
		d -= ledger_min(over, (s64)t->shim_waited);
	t->clock.local += d;
	t->in_shim = false;
	t->unasked = true;
}

/* Returns whether what @c's thread owes is slept off. */
static bool pay_asleep(struct model *m, struct cpu *c)
{
	struct thread *t = c->runs;

	if (!t->owes_sleep)
		return false;
	t->owes_sleep = owes(m, t) > MAX_PAY_NS && m->without != TO_THE_END;
	if (owes(m, t) < PAY_ASLEEP_NS)
		return false;
	t->in_shim = true;
	t->shim_from = m->now;
	t->shim_waited = 0;
	t->shim_until = ledger_min(owes(m, t), MAX_PAY_NS);
	shim_goes_on(m, c);
	return true;
}

/* R4, and what is asked of a thread that gets a CPU. */
static void enter(struct model *m, struct cpu *c, struct thread *t)
{
	s64 change;

	t->state = RUNS;
	t->unasked = false;
	c->runs = t;
	c->since = m->now;
	if (t->in_shim) {
		t->shim_waited += m->now - t->runnable_at;
		shim_extends(m, t);
		shim_goes_on(m, c);
		return;
	}
	if (clock_cpu_edge(t->clock.local, c->local, m->now - t->runnable_at, false, m->g, &change))
		t->clock.local += clock_clamp_ahead(&t->clock, change, m->g);
	if (t->owes_sleep && owes(m, t) < PAY_ASLEEP_NS && m->without != AWAKE)
		t->owes_sleep = false;
	if (owes(m, t) >= THRESHOLD_NS)
		(void)pay_asleep(m, c);
}

static struct thread *next_thread(struct model *m)
{
	struct thread *next = NULL;

	for (int i = 0; i < m->program->threads; i++) {
		struct thread *t = &m->threads[i];

		if (t->state == WAITS && (!next || t->vruntime < next->vruntime))
			next = t;
	}
	return next;
}

/* Having slept is no claim to more than BEHIND_NS. */
static void catch_up(struct model *m)
{
	s64 mean = 0;
	int n = 0;

	for (int i = 0; i < m->program->threads; i++)
		if (m->threads[i].state <= WAITS) {
			mean += m->threads[i].vruntime;
			n++;
		}
	for (int i = 0; n && i < m->program->threads; i++)
		if (m->threads[i].state == WAITS && m->threads[i].vruntime < mean / n - BEHIND_NS)
			m->threads[i].vruntime = mean / n - BEHIND_NS;
}

/* Must @c's thread give way to @next? Held, it does not: hold spins in the kernel. */
static bool gives_way(const struct model *m, const struct cpu *c, const struct thread *next)
{
	const struct thread *t = c->runs;

	if (t->paying && owes(m, t) > 0)
		return false;
	return next->vruntime < t->vruntime && (m->now - c->since >= SLICE_NS || next->vruntime <= t->vruntime - BEHIND_NS);
}

/* Fair shares: whoever had a CPU for least is next. */
static void schedule(struct model *m)
{
	bool changed = true;

	catch_up(m);
	for (int tries = 0; tries < 8 && changed; tries++) {
		changed = false;
		for (int i = 0; i < CPUS; i++) {
			struct cpu *c = &m->cpus[i];
			struct thread *next = next_thread(m);

			if (!next)
				return;
			if (c->runs && !gives_way(m, c, next))
				continue;
			if (c->runs)
				leave(m, c, WAITS);
			else if (c->since < m->now)
				c->local = m->g; /* it was idle */
			enter(m, c, next);
			changed = true;
		}
	}
}

/* R1. */
static void sample(struct model *m, struct cpu *c, bool in_line)
{
	s64 earned = in_line ? ledger_earned((u64)c->unseen, m->q16) : 0, by;

	c->tick = next_tick(m);
	c->unseen = 0;
	c->runs->unasked = false;
	c->runs->clock.local += earned;
	by = earned ? ledger_growth(m->g, c->runs->clock.local, earned, c->runs->clock.ahead) : 0;
	if (by > 0)
		m->g += by;
}

/* Works for up to @budget; returns what is left of that. */
static s64 work(struct model *m, struct cpu *c, const struct step *s, s64 budget)
{
	struct thread *t = c->runs;
	s64 ran;

	if (t->left == 0)
		t->left = (s64)(s->arg * US);
	ran = t->left < budget ? t->left : budget;
	t->left -= ran;
	c->unseen += ran;
	c->tick -= ran;
	if (c->tick <= 0)
		sample(m, c, s->what == LINE);
	if (t->left == 0)
		t->at++;
	return budget - ran;
}

static void synchronize(struct model *m, struct cpu *c, const struct step *s)
{
	struct thread *t = c->runs, *other;

	t->at++;
	switch (s->what) {
	case ASLEEP:
		t->wakes_at = m->now + (u64)(s->arg * US * (0.5 + rng_unit(&m->rng)));
		leave(m, c, SLEEPS);
		break;
	case TAKE:
		if (m->permits) {
			m->permits--;
			break;
		}
		t->queued = ++m->order;
		leave(m, c, BLOCKED);
		break;
	case GIVE:
		other = first_for_permit(m);
		if (other)
			wake(m, other, t);
		else
			m->permits++;
		break;
	case VISIT:
		m->visits++;
		break;
	default:
		t->at = 0;
	}
}

/* R2: does @c's thread stop for what it owes? */
static bool pays(struct model *m, struct cpu *c)
{
	struct thread *t = c->runs;

	if (t->in_shim) {
		if ((s64)(m->now - t->shim_from) < t->shim_until)
			return true;
		shim_ends(m, t);
	}
	if (t->unasked || owes(m, t) < (t->paying ? 1 : THRESHOLD_NS)) {
		t->paying = false;
		return false;
	}
	if (pay_asleep(m, c))
		return true;
	t->paying = true;
	t->clock.local += ledger_min(owes(m, t), STEP_NS);
	return true;
}

static void run(struct model *m, struct cpu *c)
{
	s64 budget = STEP_NS;

	c->runs->vruntime += STEP_NS;
	while (budget > 0 && c->runs && !pays(m, c)) {
		const struct step *s = &m->program->steps[c->runs->at];

		if (s->what == LINE || s->what == OTHER)
			budget = work(m, c, s, budget);
		else
			synchronize(m, c, s);
	}
}

static void timers(struct model *m)
{
	for (int i = 0; i < m->program->threads; i++) {
		struct thread *t = &m->threads[i];

		if (t->state != SLEEPS || m->now < t->wakes_at)
			continue;
		t->state = WAITS;
		t->runnable_at = m->now;
		if (!t->in_shim || m->without == AWAKE)
			t->owes_sleep = true;
	}
}

/* Effective time per visit (R8), in ns. */
static double period_at(const struct program *p, double speedup, u64 length_ns, enum without without)
{
	struct model m = {.program = p, .without = without, .q16 = (u64)(speedup * 65536), .permits = p->permits};

	rng_seed(&m.rng, 4);
	for (int i = 0; i < p->threads; i++)
		m.threads[i].state = WAITS;
	for (int i = 0; i < CPUS; i++)
		m.cpus[i].tick = next_tick(&m);
	for (; m.now < length_ns; m.now += STEP_NS) {
		timers(&m);
		schedule(&m);
		for (int i = 0; i < CPUS; i++)
			if (m.cpus[i].runs)
				run(&m, &m.cpus[i]);
	}
	return (double)(length_ns - (u64)m.g) / (double)m.visits;
}

static double effect(const struct program *p, double speedup, enum without without)
{
	return 100 * (1 - period_at(p, speedup, 4000000 * US, without) / period_at(p, 0, 2000000 * US, NOTHING));
}

static void predictions_come_true(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *p = &programs[i];
		double half = effect(p, 0.5, NOTHING), full = effect(p, 1, NOTHING);

		printf("%-26s 50 %%: %5.1f (%4.1f)  100 %%: %5.1f (%4.1f)\n", p->name, half, p->truth_50, full, p->truth_100);
		if (fabs(half - p->truth_50) > p->bound || fabs(full - p->truth_100) > p->bound)
			fail_msg("%s: %.1f at 50 %%, %.1f at 100 %%, not %.1f and %.1f", p->name, half, full, p->truth_50, p->truth_100);
	}
}

/* What each of the rules for sleepers is good for: without it, a prediction is off by so much. */
static void what_the_rules_are_for(void **state)
{
	static const struct {
		enum without without;
		size_t program;
		double speedup, off;
	} cases[] = {
		{PASSING_BY, 6, 1, 20},
		{AWAKE, 6, 0.5, 3},
		{TO_THE_END, 8, 1, 15},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct program *p = &programs[cases[i].program];
		double seen = effect(p, cases[i].speedup, cases[i].without);
		double truth = cases[i].speedup < 1 ? p->truth_50 : p->truth_100;

		printf("%-26s without rule %d: %5.1f (%4.1f)\n", p->name, (int)cases[i].without, seen, truth);
		assert_true(fabs(seen - truth) > cases[i].off);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predictions_come_true),
		cmocka_unit_test(what_the_rules_are_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
