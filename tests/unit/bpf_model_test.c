// SPDX-License-Identifier: BSD-2-Clause
/* A discrete model of sampling, ledger and payments, with the ledger's own arithmetic (bpf/ledger.h): small programs of two threads on two
 * CPUs, whose causal profile is arithmetic. It has no kernel, no wake-up latency and no cost of anything, so what it misses is the method's
 * own error: samples come by chance, and what they stand for is booked late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#include "shared/abi.h"
#include "bpf/ledger.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STEP_NS 5000
#define US 1000LL
/* As user/session/session.c has them. */
#define THRESHOLD_NS 2000
#define BANK_NS (3000 * US)
#define BANK_AGE_NS (50000 * US)

/* What a thread does, over and over. */
enum what {
	LINE,	 /* work in the selected line, us */
	OTHER,	 /* other work, us */
	MEET,	 /* wait for all threads */
	LOCK,	 /* the one lock */
	UNLOCK,	 /* hand it to whoever waits */
	GIVE,	 /* one to semaphore n */
	TAKE,	 /* one from semaphore n */
	VISIT,
	AGAIN,
};

struct step {
	enum what what;
	double arg;
};

#define THREADS 2
#define SEMAPHORES 2

struct program {
	const char *name;
	double truth_50, truth_100; /* effect of the line being so much faster, percent */
	double bound;		    /* points that the model may be off */
	struct step steps[THREADS][8];
	int semaphores[SEMAPHORES];
};

/* Rounds of 2 ms, sampled every 0.25 ms. */
static const struct program programs[] = {
	{"turns", 30, 60, 1.5,
	 {{{TAKE, 0}, {LINE, 1200}, {GIVE, 1}, {VISIT, 0}, {AGAIN, 0}},
	  {{TAKE, 1}, {OTHER, 800}, {GIVE, 0}, {AGAIN, 0}}},
	 {1, 0}},
	{"side by side, then meet", 30, 60, 1.5,
	 {{{OTHER, 800}, {MEET, 0}, {LINE, 1200}, {MEET, 0}, {VISIT, 0}, {AGAIN, 0}},
	  {{MEET, 0}, {LINE, 1200}, {MEET, 0}, {AGAIN, 0}}},
	 {0}},
	{"barrier, longer", 4.5, 4.5, 1,
	 {{{LINE, 2000}, {MEET, 0}, {VISIT, 0}, {AGAIN, 0}},
	  {{OTHER, 1910}, {MEET, 0}, {AGAIN, 0}}},
	 {0}},
	{"barrier, shorter", 0, 0, 1,
	 {{{OTHER, 2000}, {MEET, 0}, {VISIT, 0}, {AGAIN, 0}},
	  {{LINE, 1910}, {MEET, 0}, {AGAIN, 0}}},
	 {0}},
	{"pipeline", 40, 40, 1.5,
	 {{{TAKE, 0}, {LINE, 2000}, {GIVE, 1}, {VISIT, 0}, {AGAIN, 0}},
	  {{TAKE, 1}, {OTHER, 1200}, {GIVE, 0}, {AGAIN, 0}}},
	 {8, 0}},
	{"in the lock", 50, 78.6, 2.5,
	 {{{LOCK, 0}, {LINE, 1400}, {UNLOCK, 0}, {OTHER, 600}, {VISIT, 0}, {AGAIN, 0}},
	  {{LOCK, 0}, {LINE, 1400}, {UNLOCK, 0}, {OTHER, 600}, {VISIT, 0}, {AGAIN, 0}}},
	 {0}},
	{"outside of a taken lock", 0, 0, 1.5,
	 {{{LOCK, 0}, {OTHER, 1400}, {UNLOCK, 0}, {LINE, 600}, {VISIT, 0}, {AGAIN, 0}},
	  {{LOCK, 0}, {OTHER, 1400}, {UNLOCK, 0}, {LINE, 600}, {VISIT, 0}, {AGAIN, 0}}},
	 {0}},
	{"independent", 30, 60, 1.5,
	 {{{OTHER, 800}, {LINE, 1200}, {VISIT, 0}, {AGAIN, 0}},
	  {{OTHER, 800}, {LINE, 1200}, {VISIT, 0}, {AGAIN, 0}}},
	 {0}},
};

struct thread {
	size_t at;
	s64 left;     /* of the work under way; 0: it begins */
	s64 local;    /* R1 - R3 */
	s64 unseen;   /* execution since the last sample */
	s64 tick;     /* until the next one */
	s64 hits, bank, unbooked;
	u64 seen, bank_at, blocked_at;
	enum what waits_for;
	int semaphore;
	bool blocked, paying;
};

struct model {
	const struct program *program;
	struct thread threads[THREADS];
	int semaphores[SEMAPHORES];
	struct thread *owner; /* of the lock */
	u64 now, visits, period, q16;
	s64 g;
	struct rng rng;
};

static s64 next_tick(struct model *m)
{
	return (s64)(-log(1 - rng_unit(&m->rng)) * (double)m->period);
}

static void block(struct model *m, struct thread *t, enum what why, int semaphore)
{
	t->blocked = true;
	t->waits_for = why;
	t->semaphore = semaphore;
	t->blocked_at = m->now;
	t->unbooked = ledger_pending(t->hits, t->seen, t->unseen);
}

/* R3, as bpf/thread.h has it. */
static void wake(struct model *m, struct thread *w, const struct thread *k)
{
	s64 bank = ledger_bank_left(w->bank, m->now - w->bank_at, BANK_AGE_NS);

	s64 local_k = k->local + ledger_pending(k->hits, k->seen, k->unseen);

	w->local += ledger_wake(w->local + w->unbooked, local_k, (s64)(m->now - w->blocked_at), bank, BANK_NS, &w->bank);
	w->bank_at = m->now;
	w->blocked = false;
	w->paying = false;
}

static struct thread *waiting(struct model *m, enum what why, int semaphore)
{
	for (size_t i = 0; i < THREADS; i++)
		if (m->threads[i].blocked && m->threads[i].waits_for == why && m->threads[i].semaphore == semaphore)
			return &m->threads[i];
	return NULL;
}

/* R1. */
static void sample(struct model *m, struct thread *t, bool in_line)
{
	s64 weight = t->unseen, earned = in_line ? ledger_hit((u64)weight, m->q16) : 0;

	t->tick = next_tick(m);
	t->unseen = 0;
	t->seen += (u64)weight;
	t->hits += earned;
	t->local += earned;
	if (t->local > m->g)
		m->g = t->local;
}

/* Works for up to @budget; returns what is left of that. */
static s64 work(struct model *m, struct thread *t, const struct step *s, s64 budget)
{
	s64 ran;

	if (t->left == 0)
		t->left = (s64)(s->arg * US);
	ran = t->left < budget ? t->left : budget;
	t->left -= ran;
	t->unseen += ran;
	t->tick -= ran;
	if (t->tick <= 0)
		sample(m, t, s->what == LINE);
	if (t->left == 0)
		t->at++;
	return budget - ran;
}

/* Meets, locks and semaphores take no time. A thread that blocks in LOCK or TAKE has what it wants when it is woken. */
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
	case TAKE:
		if (m->semaphores[(int)s->arg])
			m->semaphores[(int)s->arg]--;
		else
			block(m, t, TAKE, (int)s->arg);
		break;
	case VISIT:
		m->visits++;
		break;
	default:
		t->at = 0;
	}
}

/* R2: who owes does nothing else. */
static bool pays(struct model *m, struct thread *t)
{
	s64 owes = m->g - t->local;

	if (owes <= 0 || (!t->paying && owes < THRESHOLD_NS)) {
		t->paying = false;
		return false;
	}
	t->paying = true;
	t->local += owes < STEP_NS ? owes : STEP_NS;
	return true;
}

/* Effective time per visit (R8), in ns. */
static double period_at(const struct program *p, double speedup, u64 sampling_ns, u64 length_ns)
{
	struct model m = {.program = p, .period = sampling_ns, .q16 = (u64)(speedup * 65536)};

	rng_seed(&m.rng, 4);
	memcpy(m.semaphores, p->semaphores, sizeof(m.semaphores));
	for (size_t i = 0; i < THREADS; i++)
		m.threads[i].tick = next_tick(&m);
	for (; m.now < length_ns; m.now += STEP_NS)
		for (size_t i = 0; i < THREADS; i++) {
			struct thread *t = &m.threads[i];
			s64 budget = t->blocked || pays(&m, t) ? 0 : STEP_NS;

			while (budget > 0 && !t->blocked) {
				const struct step *s = &p->steps[i][t->at];

				if (s->what == LINE || s->what == OTHER)
					budget = work(&m, t, s, budget);
				else
					synchronize(&m, t, s);
			}
		}
	return (double)(length_ns - (u64)m.g) / (double)m.visits;
}

static void predictions_come_true(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *p = &programs[i];
		double base = period_at(p, 0, 250 * US, 2000000 * US);
		double half = 100 * (1 - period_at(p, 0.5, 250 * US, 8000000 * US) / base);
		double full = 100 * (1 - period_at(p, 1, 250 * US, 8000000 * US) / base);

		printf("%-26s 50 %%: %5.1f (%4.1f)  100 %%: %5.1f (%4.1f)\n", p->name, half, p->truth_50, full, p->truth_100);
		if (fabs(half - p->truth_50) > p->bound || fabs(full - p->truth_100) > p->bound)
			fail_msg("%s: %.1f at 50 %%, %.1f at 100 %%, not %.1f and %.1f", p->name, half, full, p->truth_50, p->truth_100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predictions_come_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
