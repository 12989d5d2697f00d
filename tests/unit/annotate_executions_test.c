// SPDX-License-Identifier: BSD-2-Clause
/* Rates of places in a made-up program, from windows of it as probes would have them: the program
 * goes on far more slowly where it has them.
 * Long: left out where few tests run. */
#include "annotate/executions.h"
#include "base/cleanup.h"
#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A program that is one phase after the other, again and again. In a phase it goes through nested
 * loops, the inner ones with more passes. */
#define PHASES 2
#define DEPTH 5
#define PLACES (PHASES * DEPTH)
#define HIT_S 4e-6
#define WINDOW_S 0.05

struct program {
	double step_s[PHASES];	 /* of one pass of the innermost loop */
	uint64_t passes[PHASES]; /* of each loop, in one of the loop around it */
	double executed[PLACES]; /* in one pass of the whole */
	double takes_s;		 /* that takes, without probes */
};

struct at {
	unsigned int phase;
	uint64_t done[DEPTH]; /* passes of each loop; the outermost has one */
};

static void make(struct program *p)
{
	p->takes_s = 0;
	for (unsigned int k = 0; k < PHASES; k++) {
		double n = 1;

		for (unsigned int d = 0; d < DEPTH; d++) {
			n *= d ? (double)p->passes[k] : 1;
			p->executed[k * DEPTH + d] = n;
		}
		p->takes_s += n * p->step_s[k];
	}
}

/* Where the program is at a moment that is uniform in its time. */
static struct at begin(const struct program *p, struct rng *r)
{
	double when = rng_unit(r) * p->takes_s;
	struct at at = {0};

	for (; at.phase + 1 < PHASES; at.phase++) {
		double takes = p->executed[at.phase * DEPTH + DEPTH - 1] * p->step_s[at.phase];

		if (when < takes)
			break;
		when -= takes;
	}
	for (unsigned int d = 1; d < DEPTH; d++)
		at.done[d] = rng_below(r, p->passes[at.phase]);
	return at;
}

/* The innermost loop's next pass, which may be the first of other loops. Returns how many hits it
 * was. */
static unsigned int step(const struct program *p, struct at *at, const uint32_t *levels,
			 uint32_t level, uint64_t *hits)
{
	unsigned int d = DEPTH - 1, n = 0;

	while (d > 0 && ++at->done[d] >= p->passes[at->phase])
		at->done[d--] = 0;
	if (d == 0)
		at->phase = (at->phase + 1) % PHASES;
	for (; d < DEPTH; d++)
		if (levels[at->phase * DEPTH + d] >= level) {
			hits[at->phase * DEPTH + d]++;
			n++;
		}
	return n;
}

static void window(const struct program *p, struct rng *r, const uint32_t *levels,
		   struct executions_window *w)
{
	uint64_t *hits = calloc(PLACES, sizeof(*hits));
	struct at at = begin(p, r);

	assert_non_null(hits);
	for (w->cpu_s = 0; w->cpu_s < WINDOW_S;)
		w->cpu_s += HIT_S * step(p, &at, levels, w->level, hits) + p->step_s[at.phase];
	w->hits = hits;
}

/* The greatest relative difference of a rate from the true one, and of one from it in its errors.
 */
static double worst_of(const struct program *p, int windows, double *ret_in_errors)
{
	double rough[PLACES], rates[PLACES], errors[PLACES], worst = 0;
	struct executions_input in = {.n_places = PLACES};
	struct executions_window *all;
	uint32_t levels[PLACES], n;
	struct rng r;

	rng_seed(&r, 7);
	for (size_t s = 0; s < PLACES; s++)
		rough[s] = p->executed[s] / p->takes_s;
	n = executions_levels(rough, PLACES, 8000, 8, levels);
	assert_true(n > 2);
	all = calloc(n * (size_t)windows, sizeof(*all));
	assert_non_null(all);
	for (size_t i = 0; i < n * (size_t)windows; i++) {
		all[i].level = (uint32_t)(i % n);
		window(p, &r, levels, &all[i]);
	}
	in.windows = all;
	in.n_windows = n * (size_t)windows;
	in.levels = levels;
	assert_int_equal(executions_estimate(&in, rates, errors), 0);
	*ret_in_errors = 0;
	for (size_t s = 0; s < PLACES; s++) {
		double off = fabs(rates[s] / rough[s] - 1);

		print_message("place %zu, level %u: %.3g of %.3g +-%.0f %%\n", s, levels[s],
			      rates[s], rough[s], 100 * errors[s]);
		worst = fmax(worst, off);
		*ret_in_errors = fmax(*ret_in_errors, off / errors[s]);
	}
	for (size_t i = 0; i < in.n_windows; i++)
		free((void *)(uintptr_t)all[i].hits);
	free(all);
	return worst;
}

static void nested_loops(void **state)
{
	struct program p = {.step_s = {2e-9, 2e-9}, .passes = {12, 12}};
	double in_errors;

	(void)state;
	make(&p);
	assert_true(worst_of(&p, 40, &in_errors) < 0.2);
	assert_true(in_errors < 4);
}

/* Phases of 0.4 ms that last equally long and differ by a factor of 30 in what is executed. A
 * window of the first levels sees one of them only. */
static void phases_are_weighted(void **state)
{
	struct program p = {.step_s = {2e-9, 60e-9}, .passes = {21, 9}};
	double in_errors;

	(void)state;
	make(&p);
	assert_true(worst_of(&p, 60, &in_errors) < 0.35);
	assert_true(in_errors < 4);
}

static void levels_by_rates(void **state)
{
	const double rates[] = {1e8, 10, 500, 4e4, 7e3, 0};
	uint32_t levels[6];

	(void)state;
	assert_int_equal(executions_levels(rates, 6, 8000, 8, levels), 3);
	assert_int_equal(levels[0], 0);
	assert_int_equal(levels[3], 1);
	assert_int_equal(levels[1], 2);
	assert_int_equal(levels[2], 2);
	assert_int_equal(levels[4], 2);
	assert_int_equal(levels[5], 2);
	/* One is there at least. */
	assert_int_equal(executions_levels(rates, 1, 8000, 8, levels), 1);
	assert_int_equal(levels[0], 0);
}

static void nothing_was_hit(void **state)
{
	const uint64_t hits[2] = {0};
	const uint32_t levels[2] = {0};
	const struct executions_window w = {.cpu_s = 0.05, .hits = hits};
	const struct executions_input in = {&w, 1, levels, 2};
	double rates[2], errors[2];

	(void)state;
	assert_int_equal(executions_estimate(&in, rates, errors), -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_loops),
		cmocka_unit_test(phases_are_weighted),
		cmocka_unit_test(levels_by_rates),
		cmocka_unit_test(nothing_was_hit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
