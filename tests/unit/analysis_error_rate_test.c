// SPDX-License-Identifier: BSD-2-Clause
/* How often is a verdict wrong, and how often is an effect found? Made-up profiles whose
 * experiments differ by chance only, or by chance and an effect. The chance has light or heavy
 * tails. With an argument, which says how many profiles of each kind are made, more kinds are.
 * Built plain: it simulates for long, and with sanitizers takes five times as long.
 * Long: left out where few tests run. */
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
#define VISITS 200.0 /* of an experiment at 0 %, on average */

static unsigned long n_profiles = 40;
static bool tables;

static double normal(struct rng *r)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += rng_unit(r);
	return sum;
}

/* Each draws the rate of one experiment's visits, relative to the others'. @spread is the
 * distribution's parameter. */
static double normal_rate(struct rng *r, double spread)
{
	return fmax(0, 1 + spread * normal(r));
}

static double lognormal_rate(struct rng *r, double spread)
{
	return exp(spread * normal(r));
}

static double pareto_rate(struct rng *r, double spread)
{
	return pow(1 - rng_unit(r), -1 / spread);
}

/* Bursts: most experiments see few visits, some see many. */
static double burst_rate(struct rng *r, double spread)
{
	return rng_unit(r) < spread ? 1 / spread : 0.02;
}

struct chance {
	const char *name;
	double (*rate)(struct rng *, double);
	double spread;
	bool bursts; /* too uneven for any verdict */
};

static const struct chance chances[] = {
	{"normal 2 %", normal_rate, 0.02, false},      {"normal 10 %", normal_rate, 0.10, false},
	{"lognormal 0.3", lognormal_rate, 0.3, false}, {"lognormal 1", lognormal_rate, 1, true},
	{"Pareto 3", pareto_rate, 3, false},	       {"Pareto 1.3", pareto_rate, 1.3, true},
	{"one in ten", burst_rate, 0.1, true},
};

struct plan {
	size_t lines, experiments, grid; /* the grid's speedups are evenly spaced up to 100 % */
	double effect;			 /* of the line "e", at 100 %; the others have none */
	const char *name;
};

/* A third at 0 %, the rest evenly over the grid. */
static void simulate(const struct plan *plan, const struct chance *c, struct rng *r,
		     struct profile *p)
{
	for (size_t i = 0; i < plan->experiments; i++) {
		size_t line = rng_below(r, plan->lines);
		double s = i % 3 == 0 ? 0
				      : (double)(1 + rng_below(r, plan->grid)) / (double)plan->grid;
		double effect = plan->effect != 0 && line == 0 ? plan->effect * s : 0;
		double visits = VISITS * c->rate(r, c->spread) / (1 - effect);
		char name[16];

		(void)snprintf(name, sizeof(name), "%c.c:%zu",
			       plan->effect != 0 && line == 0 ? 'e' : 'n', line + 1);
		sample_visits(p, name, s, (uint64_t)(LENGTH_MS * MS),
			      visits < 1e15 ? (uint64_t)(visits + rng_unit(r)) : (uint64_t)1e15);
	}
}

struct score {
	size_t lines, helps, hurts, flat, bursts; /* without an effect */
	size_t effects, found;			  /* lines with one; called with its sign */
	size_t against;				  /* verdicts that none of the intervals shares */
	size_t profiles, profiles_wrong;
};

/* Does an interval that is shown exclude 0 in the verdict's direction? Its numbers and effect +-
 * half its width. */
static bool agrees(const struct analysis_line *l)
{
	double sign = l->verdict == VERDICT_HELPS ? 1 : -1;

	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct analysis_change c = analysis_shown(l, k);

		if (sign * c.low > 0 && sign * c.high > 0 && sign * c.effect > (c.high - c.low) / 2)
			return true;
	}
	return false;
}

static void count(const struct analysis *a, double effect, struct score *s)
{
	size_t wrong = 0;

	for (size_t i = 0; i < a->points[0].n_lines; i++) {
		const struct analysis_line *l = &a->points[0].lines[i];
		bool called = l->verdict == VERDICT_HELPS || l->verdict == VERDICT_HURTS;

		if (called && !agrees(l))
			s->against++;
		if (*l->selected == 'e') {
			s->effects++;
			s->found += l->verdict == (effect > 0 ? VERDICT_HELPS : VERDICT_HURTS);
			continue;
		}
		s->lines++;
		s->helps += l->verdict == VERDICT_HELPS;
		s->hurts += l->verdict == VERDICT_HURTS;
		s->flat += l->verdict == VERDICT_NO_EFFECT;
		s->bursts += l->undecided == UNDECIDED_BURSTS;
		wrong += called;
	}
	s->profiles++;
	s->profiles_wrong += wrong > 0;
}

static struct score play(const struct plan *plan, const struct chance *c, uint64_t seed)
{
	struct score s = {0};

	for (uint64_t run = 0; run < n_profiles; run++) {
		struct profile p = {0};
		struct analysis a;
		struct rng r;

		rng_seed(&r, seed + run);
		simulate(plan, c, &r, &p);
		analyse(&p, run, &a);
		count(&a, plan->effect, &s);
		analysis_free(&a);
		profile_free(&p);
	}
	return s;
}

/* Wilson's 95 % interval of a share, in per cent. */
static void print_share(size_t some, size_t all)
{
	double n = (double)all, p = (double)some / n, z = 1.96,
	       half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
	double middle = (p + z * z / (2 * n)) / (1 + z * z / n);

	printf("%5.1f %% (%.1f..%.1f)", 100 * p, 100 * fmax(0, middle - half),
	       100 * (middle + half));
}

/* The rest is played for tables only. */
#define QUICK_PLANS 2

static void no_effect_is_rarely_called_one(void **state)
{
	static const struct plan plans[] = {
		{4, 120, 20, 0, "four lines, 120, fine"},
		{1, 24, 4, 0, "one line, 24, coarse"},
		{1, 120, 20, 0, "one line, 120, fine"},
		{4, 120, 4, 0, "four lines, 120, coarse"},
		{12, 120, 20, 0, "twelve lines, 120, fine"},
	};
	size_t n_plans = tables ? sizeof(plans) / sizeof(*plans) : QUICK_PLANS;

	(void)state;
	for (size_t i = 0; i < sizeof(chances) / sizeof(*chances); i++) {
		size_t lines = 0, wrong = 0, bursts = 0;

		for (size_t j = 0; j < n_plans; j++) {
			struct score s = play(&plans[j], &chances[i], 100000 * (i + 1) + 10000 * j);

			printf("%-13s %-24s lines: ", chances[i].name, plans[j].name);
			print_share(s.helps + s.hurts, s.lines);
			printf(" profiles: ");
			print_share(s.profiles_wrong, s.profiles);
			printf(" of %zu lines helps %zu, hurts %zu, no effect %zu, bursts %zu, "
			       "against their intervals %zu\n",
			       s.lines, s.helps, s.hurts, s.flat, s.bursts, s.against);
			(void)fflush(stdout);
			assert_int_equal(s.against, 0);
			lines += s.lines;
			wrong += s.helps + s.hurts;
			bursts += s.bursts;
		}
		if (wrong * 20 > lines)
			fail_msg(
				"%s: %zu of %zu lines without an effect were called helps or hurts",
				chances[i].name, wrong, lines);
		/* Where a few experiments hold most of the visits the reader is told to look for
		 * another point, and elsewhere is not. */
		if (chances[i].bursts ? bursts * 3 < lines : bursts * 10 > lines)
			fail_msg("%s: of %zu of %zu lines it is said that visits come in bursts",
				 chances[i].name, bursts, lines);
	}
}

/* Careful, not blind. What is found is as much as by Student's t alone, which was what verdicts
 * rested on before. */
static void effects_are_found(void **state)
{
	static const struct {
		struct plan plan;
		unsigned int per_cent[3][4]; /* by noise and effect; found at least, less what 30
						profiles leave to chance */
	} plans[] = {
		{{4, 120, 20, 0, "four lines, 120, fine"},
		 {{0, 80, 98, 75}, {0, 6, 68, 6}, {0, 0, 10, 0}}},
		{{1, 24, 4, 0, "one line, 24, coarse"},
		 {{0, 80, 98, 75}, {0, 6, 68, 6}, {0, 0, 10, 0}}},
		{{4, 120, 4, 0, "four lines, 120, coarse"}, {{0}}},
		{{12, 240, 20, 0, "twelve lines, 240, fine"}, {{0}}},
		{{4, 400, 20, 0, "four lines, 400, fine"}, {{0}}},
	};
	static const double effects[] = {0.02, 0.05, 0.10, -0.05}, noises[] = {0.02, 0.05, 0.10};
	size_t n_plans = tables ? sizeof(plans) / sizeof(*plans) : QUICK_PLANS;

	(void)state;
	n_profiles = tables ? n_profiles : n_profiles * 3 / 4;
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < n_plans; j++) {
			printf("noise %2.0f %% %-24s", 100 * noises[i], plans[j].plan.name);
			for (size_t k = 0; k < 4; k++) {
				struct chance c = {"normal", normal_rate, noises[i], false};
				struct plan plan = plans[j].plan;
				struct score s;

				plan.effect = effects[k];
				s = play(&plan, &c, 5000000 + 100000 * k + 20000 * j + 1000 * i);
				printf("  effect %3.0f: ", 100 * effects[k]);
				print_share(s.found, s.effects);
				(void)fflush(stdout);
				assert_int_equal(s.against, 0);
				if (s.found * 100 < plans[j].per_cent[i][k] * s.effects)
					fail_msg("%zu of %zu effects of %g points were found",
						 s.found, s.effects, 100 * effects[k]);
			}
			(void)putchar('\n');
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_effect_is_rarely_called_one),
		cmocka_unit_test(effects_are_found),
	};

	if (argc > 1) {
		n_profiles = strtoul(argv[1], NULL, 10);
		tables = true;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
