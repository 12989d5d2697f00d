/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs of two threads on two CPUs, for the model in bpf_model_test.c, and the effects of their
 * lines by arithmetic. */
#pragma once

#include "bpf_native.h"

#include <stdbool.h>

/* What a thread does, over and over. */
enum what {
	LINE,	/* work in the selected line, us */
	OTHER,	/* other work, us */
	MEET,	/* wait for all threads */
	LOCK,	/* the one lock */
	UNLOCK, /* hand it to a thread that waits */
	GIVE,	/* one to semaphore n */
	QUEUE,	/* have a kernel worker give it, WORKER_US later: nobody pauses that (R10) */
	TAKE,	/* one from semaphore n */
	SPIN,	/* like TAKE, but look again and again */
	TASK,	/* all tasks of a batch, each so many us in the line, for any thread that comes: the
		   last one to end goes on, others wait for the next batch */
	BATCH,	/* the next n tasks */
	MOVE,	/* go on on CPU n, and take it from who is there */
	VISIT,
	AGAIN,
};

struct step {
	enum what what;
	double arg;
};

#define THREADS 2
#define SEMAPHORES 2
#define WORKER_US 500

/* With which clock a worker wakes. */
enum worker_clock {
	AS_QUEUED, /* R10 */
	OUTSIDE,   /* none: an event outside of the scope */
	LEVEL,	   /* with the global delay */
};

struct program {
	const char *name;
	double truth_50, truth_100; /* effect of the line being so much faster, percent */
	double bound;		    /* points that the model may be off */
	double slope; /* effect of a little, percent per whole speedup; below 0: not known, since
			 threads spin */
	struct step steps[THREADS][8];
	int semaphores[SEMAPHORES];
	bool wanders; /* from CPU to CPU, when it is woken; else each thread has one of its own */
	u64 period;   /* us between the samples of a CPU; 0: 250 */
	enum worker_clock worker;
};

/* Rounds of 2 ms; those that wander have rounds shorter than a sampling period. */
static const struct program programs[] = {
	{"turns",
	 30,
	 60,
	 1.5,
	 60,
	 {{{TAKE, 0}, {LINE, 1200}, {GIVE, 1}, {VISIT, 0}, {AGAIN, 0}},
	  {{TAKE, 1}, {OTHER, 800}, {GIVE, 0}, {AGAIN, 0}}},
	 {1, 0}},
	{"side by side, then meet",
	 30,
	 60,
	 2,
	 60,
	 {{{OTHER, 800}, {MEET, 0}, {LINE, 1200}, {MEET, 0}, {VISIT, 0}, {AGAIN, 0}},
	  {{MEET, 0}, {LINE, 1200}, {MEET, 0}, {AGAIN, 0}}},
	 {0}},
	{"barrier, longer",
	 4.5,
	 4.5,
	 1,
	 100,
	 {{{LINE, 2000}, {MEET, 0}, {VISIT, 0}, {AGAIN, 0}},
	  {{OTHER, 1910}, {MEET, 0}, {AGAIN, 0}}},
	 {0}},
	{"barrier, shorter",
	 0,
	 0,
	 1,
	 0,
	 {{{OTHER, 2000}, {MEET, 0}, {VISIT, 0}, {AGAIN, 0}},
	  {{LINE, 1910}, {MEET, 0}, {AGAIN, 0}}},
	 {0}},
	{"pipeline",
	 40,
	 40,
	 1.5,
	 100,
	 {{{TAKE, 0}, {LINE, 2000}, {GIVE, 1}, {VISIT, 0}, {AGAIN, 0}},
	  {{TAKE, 1}, {OTHER, 1200}, {GIVE, 0}, {AGAIN, 0}}},
	 {8, 0}},
	{"in the lock",
	 50,
	 78.6,
	 2.5,
	 100,
	 {{{LOCK, 0}, {LINE, 1400}, {UNLOCK, 0}, {OTHER, 600}, {VISIT, 0}, {AGAIN, 0}},
	  {{LOCK, 0}, {LINE, 1400}, {UNLOCK, 0}, {OTHER, 600}, {VISIT, 0}, {AGAIN, 0}}},
	 {0}},
	{"outside of a taken lock",
	 0,
	 0,
	 1.5,
	 0,
	 {{{LOCK, 0}, {OTHER, 1400}, {UNLOCK, 0}, {LINE, 600}, {VISIT, 0}, {AGAIN, 0}},
	  {{LOCK, 0}, {OTHER, 1400}, {UNLOCK, 0}, {LINE, 600}, {VISIT, 0}, {AGAIN, 0}}},
	 {0}},
	{"before a lock",
	 35,
	 40,
	 3,
	 70,
	 {{{LOCK, 0}, {OTHER, 600}, {UNLOCK, 0}, {LINE, 1400}, {VISIT, 0}, {AGAIN, 0}},
	  {{LOCK, 0}, {OTHER, 600}, {UNLOCK, 0}, {LINE, 1400}, {VISIT, 0}, {AGAIN, 0}}},
	 {0}},
	{"short turns",
	 33.3,
	 66.7,
	 2.5,
	 66.7,
	 {{{TAKE, 0}, {LINE, 200}, {GIVE, 1}, {VISIT, 0}, {AGAIN, 0}},
	  {{TAKE, 1}, {OTHER, 100}, {GIVE, 0}, {AGAIN, 0}}},
	 {1, 0},
	 .wanders = true,
	 .period = 1000},
	{"short turns, both in it",
	 33.3,
	 66.7,
	 2.5,
	 66.7,
	 {{{TAKE, 0}, {LINE, 150}, {OTHER, 50}, {GIVE, 1}, {VISIT, 0}, {AGAIN, 0}},
	  {{TAKE, 1}, {LINE, 50}, {OTHER, 50}, {GIVE, 0}, {AGAIN, 0}}},
	 {1, 0},
	 .wanders = true,
	 .period = 1000},
	{"side by side, short rounds",
	 30,
	 60,
	 5.5,
	 60,
	 {{{OTHER, 200}, {MEET, 0}, {LINE, 300}, {MEET, 0}, {VISIT, 0}, {AGAIN, 0}},
	  {{MEET, 0}, {LINE, 300}, {MEET, 0}, {AGAIN, 0}}},
	 {0},
	 .period = 500},
	{"shared tasks",
	 30,
	 60,
	 2,
	 60,
	 {{{TASK, 75}, {OTHER, 800}, {VISIT, 0}, {BATCH, 32}, {AGAIN, 0}},
	  {{TASK, 75}, {OTHER, 800}, {VISIT, 0}, {BATCH, 32}, {AGAIN, 0}}},
	 {0}},
	{"turns of 20 ms, who waits spins",
	 30,
	 60,
	 4.5,
	 -1,
	 {{{SPIN, 0}, {LINE, 12000}, {GIVE, 1}, {VISIT, 0}, {AGAIN, 0}},
	  {{SPIN, 1}, {OTHER, 8000}, {GIVE, 0}, {AGAIN, 0}}},
	 {1, 0},
	 .period = 500},
	{"independent, rounds of 1.7 ms",
	 25,
	 50,
	 2.5,
	 50,
	 {{{OTHER, 850}, {LINE, 850}, {VISIT, 0}, {AGAIN, 0}},
	  {{OTHER, 850}, {LINE, 850}, {VISIT, 0}, {AGAIN, 0}}},
	 {0},
	 .period = 500},
	{"independent, rounds of 1 ms",
	 25,
	 50,
	 3.5,
	 50,
	 {{{OTHER, 500}, {LINE, 500}, {VISIT, 0}, {AGAIN, 0}},
	  {{OTHER, 500}, {LINE, 500}, {VISIT, 0}, {AGAIN, 0}}},
	 {0},
	 .period = 500},
	{"turns by a worker",
	 24,
	 48,
	 1.5,
	 48,
	 {{{TAKE, 0}, {LINE, 1200}, {QUEUE, 1}, {VISIT, 0}, {AGAIN, 0}},
	  {{TAKE, 1}, {OTHER, 800}, {GIVE, 0}, {AGAIN, 0}}},
	 {1, 0}},
	/* The line is beside the worker as well, and there a faster one gains nothing. */
	{"beside a worker",
	 25,
	 50,
	 2,
	 50,
	 {{{TAKE, 0}, {LINE, 1000}, {QUEUE, 1}, {LINE, 400}, {VISIT, 0}, {AGAIN, 0}},
	  {{TAKE, 1}, {OTHER, 500}, {GIVE, 0}, {AGAIN, 0}}},
	 {1, 0}},
	/* Who meets once in a hundred rounds, for microseconds, goes on with what it has. */
	{"chance meetings at a lock",
	 49.5,
	 98.9,
	 3,
	 99,
	 {{{LOCK, 0}, {OTHER, 10}, {UNLOCK, 0}, {LINE, 990}, {VISIT, 0}, {AGAIN, 0}},
	  {{LOCK, 0}, {OTHER, 10}, {UNLOCK, 0}, {OTHER, 900}, {AGAIN, 0}}},
	 {0}},
	/* Whose CPU is taken for a moment, in each round, is no later for what the other one did
	   before. */
	{"a thread that comes by",
	 49.5,
	 99,
	 3,
	 99,
	 {{{LINE, 2000}, {VISIT, 0}, {AGAIN, 0}},
	  {{OTHER, 1980}, {MOVE, 0}, {OTHER, 20}, {MOVE, 1}, {AGAIN, 0}}},
	 {0}},
	/* Which window begins where in a round is no matter. */
	{"independent, rounds of 100 ms",
	 25,
	 50,
	 2,
	 50,
	 {{{OTHER, 50000}, {LINE, 50000}, {VISIT, 0}, {AGAIN, 0}},
	  {{OTHER, 50000}, {LINE, 50000}, {VISIT, 0}, {AGAIN, 0}}},
	 {0}},
	{"independent",
	 30,
	 60,
	 1.5,
	 60,
	 {{{OTHER, 800}, {LINE, 1200}, {VISIT, 0}, {AGAIN, 0}},
	  {{OTHER, 800}, {LINE, 1200}, {VISIT, 0}, {AGAIN, 0}}},
	 {0}},
};
