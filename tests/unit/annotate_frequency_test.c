// SPDX-License-Identifier: BSD-2-Clause
/* Frequencies of the blocks of random functions, from samples drawn by the model that they are estimated by: blocks execute as a walk through the
 * function has it, instructions take the cycles that they take at least, and some of them stall. */
#include "annotate/frequency.h"
#include "base/cleanup.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MOST_BLOCKS 24
#define IN_BLOCK 8
#define STEPS 200000

struct sample {
	struct flow f;
	struct classes c;
	double executed[MOST_BLOCKS];
	double samples[MOST_BLOCKS * IN_BLOCK], cycles[MOST_BLOCKS * IN_BLOCK];
};

/* Blocks that go on to the next one, and sometimes back or forth. */
static void make_flow(struct rng *r, struct flow *f)
{
	size_t n = 4 + rng_below(r, MOST_BLOCKS - 4);

	*f = (struct flow){.n_blocks = n, .n = n * IN_BLOCK};
	f->blocks = calloc(n, sizeof(*f->blocks));
	f->edges = calloc(2 * n + 1, sizeof(*f->edges));
	assert_true(f->blocks && f->edges);
	for (uint32_t b = 0; b < n; b++) {
		uint32_t next = b + 1 < n ? b + 1 : flow_exit(f);

		f->blocks[b] = (struct flow_block){.first = b * IN_BLOCK, .n = IN_BLOCK, .out = (uint32_t)f->n_edges};
		f->edges[f->n_edges++] = (struct flow_edge){b, next, FLOW_FALL};
		if (rng_below(r, 2) && b + 1 < n)
			f->edges[f->n_edges++] = (struct flow_edge){b, (uint32_t)rng_below(r, n), FLOW_TAKEN};
		f->blocks[b].n_out = (uint32_t)f->n_edges - f->blocks[b].out;
	}
	f->edges[f->n_edges++] = (struct flow_edge){flow_entry(f), 0, FLOW_FALL};
}

static void walk(struct rng *r, struct sample *s)
{
	double taken[MOST_BLOCKS];
	uint32_t at = 0;

	for (size_t b = 0; b < s->f.n_blocks; b++)
		taken[b] = rng_unit(r);
	for (int i = 0; i < STEPS || at; i++) {
		const struct flow_block *b = &s->f.blocks[at];
		uint32_t edge = b->out + (b->n_out > 1 && rng_unit(r) < taken[at]);

		s->executed[at]++;
		at = s->f.edges[edge].to;
		if (at == flow_exit(&s->f))
			at = 0;
		/* One that cannot come to its end. */
		if (i > 10 * STEPS)
			return;
	}
}

/* A normal deviate is near enough. */
static double poisson(struct rng *r, double mean)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += rng_unit(r);
	return fmax(0, floor(mean + sqrt(mean) * sum + 0.5));
}

/* @stalls: of ten instructions; @seen: samples for each cycle. */
static void draw(struct rng *r, struct sample *s, uint64_t stalls, double seen)
{
	for (size_t i = 0; i < s->f.n; i++) {
		double stall = rng_below(r, 10) < stalls ? 20 * rng_unit(r) : 0;

		s->cycles[i] = 0.25 * (double)(1 + rng_below(r, 8));
		s->samples[i] = poisson(r, s->executed[i / IN_BLOCK] * (s->cycles[i] + stall) * seen);
	}
}

/* The part of the executions, by their time, whose frequency is off by more than @most. */
static double part_off(const struct sample *s, double seen, double most)
{
	_cleanup_(frequency_free) struct frequency x = {0};
	double all = 0, off = 0;

	assert_int_equal(frequency_estimate(&s->f, &s->c, s->samples, s->cycles, &x), 0);
	for (size_t b = 0; b < s->f.n_blocks; b++) {
		double weight = 0, got = x.classes[s->c.blocks[b]] / seen;

		for (size_t i = b * IN_BLOCK; i < (b + 1) * IN_BLOCK; i++)
			weight += s->samples[i];
		all += weight;
		off += fabs(got - s->executed[b]) > most * s->executed[b] ? weight : 0;
	}
	return all > 0 ? off / all : 0;
}

/* On average, of many functions. */
static double average_off(uint64_t seed, uint64_t stalls, double seen, double most)
{
	double sum = 0;
	struct rng r;

	rng_seed(&r, seed);
	for (int i = 0; i < 100; i++) {
		struct sample s = {0};

		make_flow(&r, &s.f);
		walk(&r, &s);
		assert_int_equal(classes_of(&s.f, &s.c), 0);
		draw(&r, &s, stalls, seen);
		sum += part_off(&s, seen, most) / 100;
		classes_free(&s.c);
		flow_free(&s.f);
	}
	return sum;
}

static void frequencies_are_found(void **state)
{
	double none = average_off(1, 0, 0.01, 0.1), few = average_off(2, 2, 0.01, 0.15), thin = average_off(4, 1, 0.0005, 0.15);

	(void)state;
	if (none > 0.05 || few > 0.25 || thin > 0.4)
		fail_msg("off: %.3f without stalls, %.3f with some, %.3f with few samples", none, few, thin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frequencies_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
