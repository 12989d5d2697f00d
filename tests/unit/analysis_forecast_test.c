// SPDX-License-Identifier: BSD-2-Clause
/* Is "undecided (6 s)" true? Made-up profiles whose experiments differ by chance, and by effects of
 * which most are none or small. Of each undecided line the run goes on for the time that was told;
 * then it is decided as often as was said. Built plain: it simulates for long. */
#include "analysis/analysis.h"
#include "analysis_sample.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#define MS 1000000.0
#define LENGTH_MS 500.0
#define VISITS 2000.0 /* of an experiment at 0 %, on average */
#define GRID 4
#define PROFILES 25
/* Four in five are said; lines that were lucky are those that have a time. */
#define DECIDED 0.7
/* Longer ones are not waited for here. */
#define LONGEST 8.0

static double normal(struct rng *r)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += rng_unit(r);
	return sum;
}

struct plan {
	const char *name;
	size_t lines, experiments;
	double spread;	   /* of an experiment's rate of visits, relative */
	bool heavy;	   /* a lognormal one */
	double effects[6]; /* at 100 %, of lines in turn */
};

static void simulate(const struct plan *plan, struct rng *r, size_t first, size_t n,
		     struct profile *p)
{
	for (size_t i = first; i < first + n; i++) {
		size_t line = rng_below(r, plan->lines);
		double s = i % 3 == 0 ? 0 : (double)(1 + rng_below(r, GRID)) / GRID;
		double effect = plan->effects[line % 6] * s;
		double rate = plan->heavy ? exp(plan->spread * normal(r))
					  : fmax(0, 1 + plan->spread * normal(r));
		char name[16];

		(void)snprintf(name, sizeof(name), "l.c:%zu", line + 1);
		sample_visits(p, name, s, (uint64_t)(LENGTH_MS * MS),
			      (uint64_t)(VISITS * rate / (1 - effect) + rng_unit(r)));
	}
}

struct score {
	size_t told, decided, untold, lines;
};

/* One line of one profile. The same profile goes on, for just that time. */
static void go_on(const struct plan *plan, const struct profile *p, struct rng *r,
		  const struct analysis_line *line, double run_s, struct score *s)
{
	struct profile longer = {0};
	size_t more = (size_t)ceil(line->missing_s / run_s * (double)plan->experiments);
	struct analysis a;

	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_run_experiment *x = &p->experiments[i];

		sample_visits(&longer, x->x.selected, x->x.speedup, x->x.duration,
			      x->points[0].delta);
	}
	simulate(plan, r, plan->experiments, more, &longer);
	analyse(&longer, 1, &a);
	s->told++;
	s->decided += sample_line(&a, line->selected)->verdict != VERDICT_UNDECIDED;
	analysis_free(&a);
	profile_free(&longer);
}

static void play(const struct plan *plan, uint64_t seed, struct score *s)
{
	double run_s = (double)plan->experiments * LENGTH_MS / 1000;
	struct profile p = {0};
	struct analysis a;
	struct rng r;

	rng_seed(&r, seed);
	simulate(plan, &r, 0, plan->experiments, &p);
	analyse(&p, 1, &a);
	s->lines += a.points[0].n_lines;
	for (size_t i = 0; i < a.points[0].n_lines; i++) {
		const struct analysis_line *line = &a.points[0].lines[i];

		if (line->verdict != VERDICT_UNDECIDED)
			continue;
		if (line->missing_s <= LONGEST * run_s)
			go_on(plan, &p, &r, line, run_s, s);
		else
			s->untold++;
	}
	analysis_free(&a);
	profile_free(&p);
}

static void what_is_told_comes_true(void **state)
{
	static const struct plan plans[] = {
		{"four lines, 2 %", 4, 60, 0.02, false, {0.2, 0, 0.02, 0.01}},
		{"four lines, 4 %", 4, 120, 0.04, false, {0.1, 0, 0.03, 0.01}},
		{"twelve lines, 3 %", 12, 150, 0.03, false, {0.1, 0, 0, 0.01, 0, 0.02}},
		{"four lines, lognormal", 4, 120, 0.05, true, {0.5, 0, 0.1, 0}},
		{"nothing helps, 2 %", 8, 120, 0.02, false, {0}},
	};
	struct score all = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		struct score s = {0};

		for (uint64_t run = 0; run < PROFILES; run++)
			play(&plans[i], 1000 * (i + 1) + run, &s);
		printf("%-22s of %4zu lines %4zu had a time, %4zu had none; decided by then: %.0f "
		       "%%\n",
		       plans[i].name, s.lines, s.told, s.untold,
		       100 * (double)s.decided / (double)s.told);
		all.told += s.told;
		all.decided += s.decided;
		all.untold += s.untold;
	}
	assert_true((double)all.decided >= DECIDED * (double)all.told);
	/* A line that nothing is said of would be no mistake. */
	assert_true(all.told > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_comes_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
