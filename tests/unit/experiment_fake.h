/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulated program, its ledger and its clock, behind the calls that experiments make.
 *
 * Two threads run all the time. The first makes a round of round_ns, ROUND_NS unless a test says
 * else, half in line A, half in line C, and then visits the progress point; the second is in line B
 * and nobody waits for it. So s % off A or C takes s/2 % off the period, and s % off B nothing. */
#pragma once

#include "kernel/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MSEC 1000000ULL
#define ROUND_NS (MSEC / 2)
#define TICK_NS MSEC

#define LINE_A "src/a.c:10"
#define LINE_B "src/b.c:20"
#define LINE_C "src/a.c:30"
/* A third thread waits there for wait_share of the time, for wait_ns each time. Nobody waits for
 * it. */
#define LINE_W "src/w.c:40 [disk]"
#define LINE_CPU "[cpu]"

struct fake_code {
	uint64_t lo, hi;
	const char *line, *function;
	int error; /* of name() */
};

static const struct fake_code fake_code[] = {
	{0x1000, 0x1100, LINE_A, "alpha", 0}, {0x2000, 0x2100, LINE_B, "beta", 0},
	{0x3000, 0x3100, LINE_C, NULL, 0},    {0x4000, 0x4100, LINE_W, "wait", 0},
	{0x3200, 0x3300, LINE_C, "gamma", 0}, {0x8000, 0x8100, NULL, NULL, -ENODATA},
	{0x5000, 0x5100, LINE_CPU, NULL, 0},  {0x10000, 0x80000, LINE_B, "beta", 0},
};

#define N_FAKE_CODE (sizeof(fake_code) / sizeof(*fake_code))

struct fake {
	uint64_t now;
	char calls[4096]; /* one letter a call: b e r(est) s(napshot) o d(rain) n(ame) i(ntervals)
			   */
	char fails;	  /* the letter of the call that fails, with -EIO */
	bool idle;	  /* the program sleeps */
	bool unloaded;	  /* no line has code */
	const char *gone; /* this line has none */
	bool running;	  /* between begin and end */
	bool resting;	  /* nothing is sampled */
	size_t names;	  /* calls of name() */
	const char *changing;	    /* the line that 0xa000 is now; NULL: none */
	struct backend_setup setup; /* of the last begin; intervals is our copy */
	struct abi_interval intervals[ABI_MAX_INTERVALS];
	struct backend_totals totals;
	double visits, growth; /* as totals, with fractions */
	double ticks[3];       /* not yet drained, of A, B, C */
	uint64_t round_ns;
	double wait_share, waited;
	uint64_t wait_ns,
		tick_weight_ns; /* what a wait takes, and what a sample of a line stands for */
	struct backend_sample extra[4]; /* more to drain at the next call */
	size_t n_extra;
};

static inline int fake_call(struct fake *f, char c)
{
	size_t n = strlen(f->calls);

	if (n + 1 < sizeof(f->calls))
		f->calls[n] = c;
	return f->fails == c ? -EIO : 0;
}

static inline char fake_selected(const struct fake *f)
{
	if (!f->running)
		return 0;
	return f->intervals[0].lo == 0x1000 ? 'A' : f->intervals[0].lo == 0x2000 ? 'B' : 'C';
}

/* Lets the program run until @now. */
static inline void fake_advance(struct fake *f, uint64_t now)
{
	double ns = now > f->now ? (double)(now - f->now) : 0;
	double s = f->running ? f->setup.speedup : 0;
	/* Shares of the wall clock: the first thread's running, G's growth. The second thread's
	 * hits stop the first. */
	double first = fake_selected(f) == 'B' ? 1 - s : 1;
	double rise = fake_selected(f) == 'B' ? s : s / 2;

	f->now += (uint64_t)ns;
	f->totals.time_ns = f->now;
	if (f->idle)
		return;
	f->visits += ns * first / (double)f->round_ns;
	f->growth += ns * rise;
	if (f->resting)
		ns = 0;
	f->ticks[0] += ns * first / 2 / TICK_NS;
	f->ticks[1] += ns / TICK_NS;
	f->waited += ns * f->wait_share;
	f->ticks[2] += ns * first / 2 / TICK_NS;
	f->totals.points[0].visits = (uint64_t)f->visits;
	f->totals.growth = (uint64_t)f->growth;
}

static inline int fake_begin(void *b, const struct backend_setup *s)
{
	struct fake *f = b;
	int err = fake_call(f, 'b');

	if (err < 0)
		return err;
	f->setup = *s;
	memcpy(f->intervals, s->intervals, s->n_intervals * sizeof(*s->intervals));
	f->setup.intervals = f->intervals;
	f->running = true;
	return 0;
}

static inline int fake_snapshot(void *b, struct backend_totals *ret)
{
	struct fake *f = b;
	int err = fake_call(f, 's');

	if (err < 0)
		return err;
	*ret = f->totals;
	return 0;
}

static inline int fake_end(void *b)
{
	struct fake *f = b;

	f->running = false;
	return fake_call(f, 'e');
}

static inline int fake_rest(void *b, bool rests)
{
	struct fake *f = b;
	int err = fake_call(f, 'r');

	if (err < 0)
		return err;
	f->resting = rests;
	return 0;
}

static inline int fake_samples(void *b, struct backend_sample **ret, size_t *ret_n)
{
	static const uint64_t addresses[3] = {0x1010, 0x2020, 0x3030};
	struct fake *f = b;
	struct backend_sample *list;
	size_t n = 0;
	int err = fake_call(f, 'd');

	if (err < 0)
		return err;
	list = calloc(4 + f->n_extra + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < 3; i++) {
		uint64_t count = (uint64_t)f->ticks[i];

		if (count > 0)
			list[n++] = (struct backend_sample){.addr = addresses[i],
							    .count = count,
							    .ns = count * f->tick_weight_ns};
		f->ticks[i] -= (double)count;
	}
	if (f->wait_ns && f->waited >= (double)f->wait_ns) {
		uint64_t waits = (uint64_t)f->waited / f->wait_ns;

		list[n++] = (struct backend_sample){
			.addr = 0x4010, .count = waits, .ns = waits * f->wait_ns, .wait = true};
		f->waited -= (double)(waits * f->wait_ns);
	}
	for (size_t i = 0; i < f->n_extra; i++)
		list[n++] = f->extra[i];
	f->n_extra = 0;
	*ret = list;
	*ret_n = n;
	return 0;
}

static inline int fake_owed(void *b, struct profile_experiment *ret)
{
	struct fake *f = b;
	int err = fake_call(f, 'o');

	if (err < 0)
		return err;
	ret->owed = 123;
	ret->threads = 2;
	return 0;
}

static inline int fake_name(void *b, uint64_t addr, const char **ret_line,
			    const char **ret_function)
{
	struct fake *f = b;
	int err = fake_call(f, 'n');

	f->names++;
	if (err < 0)
		return err;
	if (f->changing && addr == 0xa000) {
		*ret_line = f->changing;
		return 1;
	}
	for (size_t i = 0; i < N_FAKE_CODE; i++) {
		const struct fake_code *c = &fake_code[i];

		if (addr < c->lo || addr >= c->hi)
			continue;
		if (c->error < 0)
			return c->error;
		*ret_line = c->line;
		*ret_function = c->function;
		return 0;
	}
	return -ENOENT;
}

/* As a user may write it: the whole name or what follows a slash in it. */
static inline bool fake_matches(const char *written, const char *line)
{
	const char *slash = strrchr(line, '/');

	return strcmp(written, line) == 0 || (slash && strcmp(written, slash + 1) == 0);
}

static inline int fake_intervals(void *b, const char *line, struct abi_interval *ret, size_t *ret_n)
{
	struct fake *f = b;
	int err = fake_call(f, 'i');
	size_t n = 0;

	if (err < 0)
		return err;
	if (f->unloaded || (f->gone && strcmp(line, f->gone) == 0))
		return -ENOENT;
	for (size_t i = 0; i < N_FAKE_CODE; i++) {
		const struct fake_code *c = &fake_code[i];

		if (!c->line)
			continue;
		/* "either" stands for two lines, as a bare file name can. */
		if (fake_matches(line, c->line) ||
		    (strcmp(line, "either") == 0 && strcmp(c->line, LINE_C) != 0 &&
		     strcmp(c->line, LINE_W) != 0))
			ret[n++] = (struct abi_interval){c->lo, c->hi};
	}
	if (n == 0)
		return -ENOENT;
	*ret_n = n;
	return 0;
}

static const struct backend_ops fake_ops = {
	.begin = fake_begin,
	.snapshot = fake_snapshot,
	.end = fake_end,
	.rest = fake_rest,
	.samples = fake_samples,
	.owed = fake_owed,
	.name = fake_name,
	.intervals = fake_intervals,
};

static inline void fake_init(struct fake *f)
{
	*f = (struct fake){.now = 1000 * MSEC, .round_ns = ROUND_NS, .tick_weight_ns = TICK_NS};
	f->totals.time_ns = f->now;
	f->totals.n_points = 1;
}
