/* SPDX-License-Identifier: BSD-2-Clause */
/* A discrete model of threads that share CPUs under hold, with the ledger's own arithmetic
 * (bpf/ledger.h): a run queue, threads that sleep until a timer wakes them, threads that pay on
 * their CPU, and sleepers that sleep off what they owe (R6, pay_asleep in bpf/pay.h). As in
 * bpf_model_test.c there is no wake-up latency and no cost of anything. */
#pragma once

#include "bpf_native.h"
#include "bpf/clock.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define US 1000LL
#define STEP_NS (10 * US)
#define SAMPLING_NS (250 * US)
/* As user/experiment/session/session.c, bpf/pay.h and user/target/shim/pay.c have them. */
#define THRESHOLD_NS 2000
#define UNUSED_WAIT_NS (3000 * US)
#define UNUSED_WAIT_AGE_NS (50000 * US)
#define PAY_ASLEEP_NS (200 * US)
#define MAX_PAY_NS (10000 * US)
#define SPIN_BELOW_NS (80 * US)
/* The scheduler's: a turn; and what a thread that slept may be behind the others. */
#define SLICE_NS (2800 * US)
#define BEHIND_NS (SLICE_NS / 2)

/* Does the scheduler get a CPU at once from a thread that is held (hold_step), or only when it has
 * paid? A test may say so before it includes this.
 */
#ifndef HELD_GIVES_WAY
#define HELD_GIVES_WAY false
#endif

#define CPUS 2
#define THREADS 16

/* What a thread does, over and over. */
enum what {
	LINE,	/* work in the selected line, us */
	OTHER,	/* other work, us */
	ASLEEP, /* until a timer wakes it, us on average, half as much more or less */
	AWAY,	/* the same, and that wait is what the experiment shortens */
	TAKE,	/* a permit, of which there are two kinds: 0 and 1 */
	GIVE,
	VISIT, /* of progress point 0 or 1 */
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
	const struct step *first; /* what the first thread does instead; NULL: the same */
	int room;		  /* permits of kind 1 */
	int cpus;		  /* 0: CPUS */
	int point;		  /* the progress point that is judged */
	bool for_cpu;		  /* the experiment shortens the waiting for CPUs */
};

/* What the ledger did before it had the rule. */
enum without {
	NOTHING,
	PASSING_BY, /* a sleeper that comes by to go on sleeping leaves its clock to the CPU */
	AWAKE,	    /* one that slept off its debt also sleeps off what it owes for running */
	TO_THE_END, /* what is more than one payment is held */
	CAME_BY, /* R4 also holds between a thread that has just earned by a wait and the one that
		    it preempts */
	HELD_EARNS, /* of a wait for a CPU, what a thread was held on it earns like the rest */
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
	s64 held_mark;	 /* for how long threads had been held when it became runnable */
	u64 queued;	 /* its place among those who wait for a permit */
	int kind;	 /* of that permit */
	bool owes_sleep; /* woken by a timer, and what it owes since is to be slept */
	bool paying;	 /* on its CPU */
	bool unasked;	 /* a payment has ended; the next sample asks for the rest */
	bool in_shim;	 /* asleep for what it owes, or come by to go on with that */
	bool away;	 /* in a wait that is the target */
	bool came;	 /* it has just earned by such a wait */
	bool preempted;	 /* and has then taken a CPU from another thread */
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
	double shorter; /* of each selected wait, what is really taken off */
	int permits[2];
	u64 now, visits[2], q16, order;
	s64 g, held; /* on a CPU, on average */
	struct rng rng;
};

static int cpus_of(const struct program *p)
{
	return p->cpus ? p->cpus : CPUS;
}

static const struct step *step_of(const struct model *m, const struct thread *t)
{
	return t == m->threads && m->program->first ? &m->program->first[t->at]
						    : &m->program->steps[t->at];
}

static s64 next_tick(struct model *m)
{
	return (s64)(-log(1 - rng_unit(&m->rng)) * SAMPLING_NS);
}

static s64 owes(const struct model *m, const struct thread *t)
{
	return m->g - t->clock.local;
}

static void becomes_runnable(const struct model *m, struct thread *t)
{
	t->state = WAITS;
	t->runnable_at = m->now;
	t->held_mark = m->held;
}

static void wake(struct model *m, struct thread *w, const struct thread *k)
{
	int level;
	s64 change = clock_wake(&w->clock, w->clock.local, k->clock.local, m->now - w->blocked_at,
				m->now, UNUSED_WAIT_NS, UNUSED_WAIT_AGE_NS, &level);

	w->clock.local += clock_clamp_ahead(&w->clock, change, m->g);
	becomes_runnable(m, w);
	w->owes_sleep = false;
}

static struct thread *first_for_permit(struct model *m, int kind)
{
	struct thread *first = NULL;

	for (int i = 0; i < m->program->threads; i++) {
		struct thread *t = &m->threads[i];

		if (t->state == BLOCKED && t->kind == kind && (!first || t->queued < first->queued))
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
		becomes_runnable(m, t);
	else
		t->blocked_at = m->now;
	if (t->preempted && m->without != CAME_BY)
		t->preempted =
			false; /* the CPU keeps the clock of the thread that it was taken from */
	else if ((t->in_shim || t->owes_sleep) && m->without != PASSING_BY)
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

static void earn(struct model *m, struct thread *t, s64 earned)
{
	s64 by;

	t->clock.local += earned;
	by = earned ? ledger_growth(m->g, t->clock.local, earned, t->clock.ahead) : 0;
	if (by > 0)
		m->g += by;
}

/* wait_for_cpu in bpf/waiting.h. */
static void wait_for_cpu(struct model *m, struct thread *t)
{
	s64 waited = (s64)(m->now - t->runnable_at),
	    held = ledger_min(m->held - t->held_mark, waited);

	if (m->without == HELD_EARNS)
		held = 0;
	t->clock.local += clock_clamp_ahead(&t->clock, held, m->g);
	earn(m, t, ledger_earned((u64)(waited - held), m->q16));
}

/* R4, and what is asked of a thread that gets a CPU. */
static void enter(struct model *m, struct cpu *c, struct thread *t, bool preempts)
{
	s64 change;

	t->state = RUNS;
	t->preempted = t->came && preempts;
	t->came = false;
	t->unasked = false;
	c->runs = t;
	c->since = m->now;
	if (t->in_shim) {
		t->shim_waited += m->now - t->runnable_at;
		shim_extends(m, t);
		shim_goes_on(m, c);
		return;
	}
	if (m->program->for_cpu)
		wait_for_cpu(m, t);
	else if ((!t->preempted || m->without == CAME_BY) &&
		 clock_cpu_edge(t->clock.local, c->local, m->now - t->runnable_at, false, m->g,
				&change))
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

/* Must @c's thread give way to @next? */
static bool gives_way(const struct model *m, const struct cpu *c, const struct thread *next)
{
	const struct thread *t = c->runs;

	if (!HELD_GIVES_WAY && t->paying && owes(m, t) > 0)
		return false;
	return next->vruntime < t->vruntime &&
	       (m->now - c->since >= SLICE_NS || next->vruntime <= t->vruntime - BEHIND_NS);
}

/* Fair shares: next is the thread that had a CPU for the least time. */
static void schedule(struct model *m)
{
	bool changed = true;

	catch_up(m);
	for (int tries = 0; tries < 8 && changed; tries++) {
		changed = false;
		for (int i = 0; i < cpus_of(m->program); i++) {
			struct cpu *c = &m->cpus[i];
			struct thread *next = next_thread(m);
			bool preempts = c->runs;

			if (!next)
				return;
			if (c->runs && !gives_way(m, c, next))
				continue;
			if (c->runs)
				leave(m, c, WAITS);
			else if (c->since + STEP_NS < m->now)
				c->local = m->g; /* it was idle */
			enter(m, c, next, preempts);
			changed = true;
		}
	}
}

/* R1. */
static void sample(struct model *m, struct cpu *c, bool in_line)
{
	s64 earned = in_line ? ledger_earned((u64)c->unseen, m->q16) : 0;

	c->tick = next_tick(m);
	c->unseen = 0;
	c->runs->unasked = false;
	earn(m, c->runs, earned);
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
	case AWAY:
	case ASLEEP:
		t->away = s->what == AWAY;
		t->wakes_at = m->now + (u64)(s->arg * US * (0.5 + rng_unit(&m->rng)) *
					     (t->away ? 1 - m->shorter : 1));
		leave(m, c, SLEEPS);
		break;
	case TAKE:
		if (m->permits[(int)s->arg]) {
			m->permits[(int)s->arg]--;
			break;
		}
		t->queued = ++m->order;
		t->kind = (int)s->arg;
		leave(m, c, BLOCKED);
		break;
	case GIVE:
		other = first_for_permit(m, (int)s->arg);
		if (other)
			wake(m, other, t);
		else
			m->permits[(int)s->arg]++;
		break;
	case VISIT:
		m->visits[(int)s->arg]++;
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
	m->held += STEP_NS / cpus_of(m->program);
	t->clock.local += ledger_min(owes(m, t), STEP_NS);
	return true;
}

static void run(struct model *m, struct cpu *c)
{
	s64 budget = STEP_NS;

	c->runs->vruntime += STEP_NS;
	while (budget > 0 && c->runs && !pays(m, c)) {
		const struct step *s = step_of(m, c->runs);

		if (s->what == LINE || s->what == OTHER)
			budget = work(m, c, s, budget);
		else
			synchronize(m, c, s);
	}
}

/* A selected wait has ended: what R1 is for execution (CONTRIBUTING.md). */
static void earn_by_wait(struct model *m, struct thread *t)
{
	s64 earned = ledger_earned(m->now - t->blocked_at, m->q16);

	t->away = false;
	earn(m, t, earned);
	t->came = earned > 0;
}

static void timers(struct model *m)
{
	for (int i = 0; i < m->program->threads; i++) {
		struct thread *t = &m->threads[i];

		if (t->state != SLEEPS || m->now < t->wakes_at)
			continue;
		becomes_runnable(m, t);
		if (!t->in_shim || m->without == AWAKE)
			t->owes_sleep = true;
		if (t->away)
			earn_by_wait(m, t);
	}
}

/* Effective time per visit (R8), in ns, at a virtual speedup of @speedup, and with selected waits
 * really @shorter. */
static double period_at(const struct program *p, double speedup, double shorter, u64 length_ns,
			enum without without)
{
	struct model m = {.program = p,
			  .without = without,
			  .q16 = (u64)(speedup * 65536),
			  .shorter = shorter,
			  .permits = {p->permits, p->room}};

	rng_seed(&m.rng, 4);
	for (int i = 0; i < p->threads; i++)
		m.threads[i].state = WAITS;
	for (int i = 0; i < cpus_of(p); i++)
		m.cpus[i].tick = next_tick(&m);
	for (; m.now < length_ns; m.now += STEP_NS) {
		timers(&m);
		schedule(&m);
		for (int i = 0; i < cpus_of(p); i++)
			if (m.cpus[i].runs)
				run(&m, &m.cpus[i]);
	}
	return (double)(length_ns - (u64)m.g) / (double)m.visits[p->point];
}

/* In percent. */
static double effect(const struct program *p, double speedup, enum without without)
{
	return 100 * (1 - period_at(p, speedup, 0, 4000000 * US, without) /
				  period_at(p, 0, 0, 2000000 * US, NOTHING));
}
