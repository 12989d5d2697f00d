// SPDX-License-Identifier: BSD-2-Clause
/* Phase correction: programs whose lines run in some phases only, played step by step.
 * Built plain: it simulates for long, and with sanitizers takes twenty times as long. */
#include "analysis/analysis.h"
#include "analysis_sample.h"

#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#define MS 1000000ULL
#define EXPERIMENT_MS 500
#define COOL_OFF_MS 10

/* One thread that waits for nothing. */
struct phase {
	const char *line;
	unsigned int ms;      /* how long it lasts */
	double share;	      /* of it that is spent in the line; the rest is in no line */
	double visit_ms;      /* from visit to visit */
	unsigned int flight;  /* requests under way */
	const char *everyone; /* a line that has the rest, or NULL */
};

struct play {
	const struct phase *phases;
	size_t n;
	struct rng rng;
	const char *fixed; /* only this line is tried, or NULL */
	double noise;	   /* of an experiment's length */
	bool latency;
};

static const struct phase *phase_at(const struct play *play, unsigned int ms)
{
	unsigned int cycle = 0;
	size_t i = 0;

	for (size_t k = 0; k < play->n; k++)
		cycle += play->phases[k].ms;
	for (ms %= cycle; ms >= play->phases[i].ms; i++)
		ms -= play->phases[i].ms;
	return &play->phases[i];
}

/* The share of the time that @line has there. */
static double share_of(const struct phase *phase, const char *line)
{
	if (strcmp(phase->line, line) == 0)
		return phase->share;
	return phase->everyone && strcmp(phase->everyone, line) == 0 ? 1 - phase->share : 0;
}

static void add_samples(struct profile *p, const char *line, uint64_t ns)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (strcmp(p->samples[i].location, line) == 0) {
			p->samples[i].ns += ns;
			p->samples[i].count += ns / MS;
			return;
		}
	p->samples = reallocarray(p->samples, p->n_samples + 1, sizeof(*p->samples));
	assert_non_null(p->samples);
	p->samples[p->n_samples++] =
		(struct profile_samples){.location = strdup(line), .count = ns / MS, .ns = ns};
}

/* One experiment that begins at @ms, with samples a millisecond apart. */
static void play_experiment(struct play *play, struct profile *p, unsigned int ms)
{
	static const double grid[] = {0, 0, 0.25, 0.5, 0.75, 1};
	const struct phase *at = phase_at(play, ms);
	const char *line = play->fixed					      ? play->fixed
			   : at->everyone && rng_unit(&play->rng) > at->share ? at->everyone
									      : at->line;
	double speedup = grid[rng_below(&play->rng, 6)], effective = 0, samples = 0, visits = 0,
	       flight = 0;
	struct profile_run_experiment *x;
	struct profile_point *point;

	for (unsigned int i = 0; i < EXPERIMENT_MS; i++) {
		const struct phase *now = phase_at(play, ms + i);
		double share = share_of(now, line);

		effective += 1 - speedup * share;
		samples += rng_unit(&play->rng) < share;
		visits += 1 / now->visit_ms;
		flight += now->flight * (1 - speedup * share);
	}
	effective *= 1 + play->noise * 3.4 * (rng_unit(&play->rng) - 0.5);
	x = sample_experiment(p, line, speedup, (uint64_t)(effective * (double)MS) + 1);
	x->x.elapsed = EXPERIMENT_MS * MS;
	x->x.period_ns = MS;
	x->x.selected_samples = (uint64_t)samples;
	x->x.selected_ns = x->x.selected_samples * MS;
	point = sample_point(x, play->latency ? PROFILE_LATENCY : PROFILE_THROUGHPUT, "p");
	point->delta = point->departures = point->arrivals = (uint64_t)lround(visits);
	point->difference = lround(flight / fmax(effective, 1));
}

/* A run of @seconds, added to what @p has. */
static void play_run(struct play *play, unsigned int seconds, struct profile *p)
{
	for (unsigned int ms = 0; ms < seconds * 1000; ms += EXPERIMENT_MS + COOL_OFF_MS)
		play_experiment(play, p, ms);
	p->runtime_ns += seconds * 1000 * MS;
	for (unsigned int ms = 0; ms < seconds * 1000; ms++) {
		const struct phase *now = phase_at(play, ms);

		add_samples(p, now->line, (uint64_t)(now->share * (double)MS));
		if (now->everyone)
			add_samples(p, now->everyone, (uint64_t)((1 - now->share) * (double)MS));
	}
}

/* In the order of their locations, as profile_find_samples wants them. */
static void sort_samples(struct profile *p)
{
	for (size_t i = 1; i < p->n_samples; i++)
		for (size_t j = i;
		     j && strcmp(p->samples[j - 1].location, p->samples[j].location) > 0; j--) {
			struct profile_samples s = p->samples[j];

			p->samples[j] = p->samples[j - 1];
			p->samples[j - 1] = s;
		}
}

static void analyse_play(struct play *play, unsigned int seconds, uint64_t seed, struct profile *p,
			 struct analysis *a)
{
	rng_seed(&play->rng, seed);
	play_run(play, seconds, p);
	sort_samples(p);
	analyse(p, seed, a);
}

/* The line's effects are @whole times the speedup, within @off and their intervals. */
static void expect_effect(const struct analysis *a, const char *line, double whole, double off)
{
	const struct analysis_line *l = sample_line(a, line);

	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		const struct analysis_change *c = &l->curve.at[k];
		double truth = whole * analysis_curve_speedups[k];

		if (!(fabs(c->effect - truth) <= off))
			fail_msg("%s at %g: %.4f (%.4f to %.4f) for %.4f, %zu experiments, share "
				 "%.3f",
				 line, analysis_curve_speedups[k], c->effect, c->low, c->high,
				 truth, l->experiments, l->allow.presence.share);
	}
}

/* The same on average over ten runs of two minutes; the truth lies in most intervals. */
static void expect_mean(const struct phase phases[2], const char *line, double whole, double off)
{
	enum { RUNS = 10 };
	struct play play = {.phases = phases, .n = 2};
	double sum[ANALYSIS_CURVE_POINTS] = {0};
	size_t covered = 0;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct profile p = {0};
		struct analysis a;

		analyse_play(&play, 120, seed, &p, &a);
		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
			const struct analysis_change *c = &sample_line(&a, line)->curve.at[k];
			double truth = whole * analysis_curve_speedups[k];

			sum[k] += c->effect / RUNS;
			covered += c->low <= truth && truth <= c->high;
		}
		analysis_free(&a);
		profile_free(&p);
	}
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		if (!(fabs(sum[k] - whole * analysis_curve_speedups[k]) <= off))
			fail_msg("%s at %g: %.4f for %.4f", line, analysis_curve_speedups[k],
				 sum[k], whole * analysis_curve_speedups[k]);
	if (covered < RUNS * ANALYSIS_CURVE_POINTS * 8 / 10)
		fail_msg("%s: the truth lies in %zu of %d intervals", line, covered,
			 RUNS * ANALYSIS_CURVE_POINTS);
}

static void halves(void **state)
{
	static const struct phase phases[] = {{"a.c:1", 5000, 1, 2, 1, NULL},
					      {"b.c:1", 5000, 1, 2, 1, NULL}};
	struct play play = {.phases = phases, .n = 2};
	struct profile p = {0};
	struct analysis a;

	(void)state;
	analyse_play(&play, 120, 1, &p, &a);
	expect_effect(&a, "a.c:1", 0.5, 0.03);
	expect_effect(&a, "b.c:1", 0.5, 0.03);
	assert_true(fabs(sample_line(&a, "a.c:1")->allow.presence.share - 0.5) < 0.05);
	assert_int_equal(sample_line(&a, "a.c:1")->verdict, VERDICT_HELPS);
	analysis_free(&a);
	profile_free(&p);
}

/* A phase that is a tenth, and phases that come once, with twice as many visits a second in one. */
static void unequal_phases(void **state)
{
	static const struct phase tenth[] = {{"a.c:1", 1000, 1, 2, 1, NULL},
					     {"b.c:1", 9000, 1, 2, 1, NULL}};
	static const struct phase once[] = {{"a.c:1", 30000, 0.8, 2, 1, NULL},
					    {"b.c:1", 90000, 1, 4, 1, NULL}};

	(void)state;
	expect_mean(tenth, "a.c:1", 0.1, 0.015);
	expect_mean(tenth, "b.c:1", 0.9, 0.03);
	expect_mean(once, "a.c:1", 0.2, 0.015);
	expect_mean(once, "b.c:1", 0.75, 0.03);
}

/* A line that is everywhere alike gets neither a factor nor its noise, beside lines that get one.
 */
static void everywhere(void **state)
{
	static const struct phase phases[] = {{"a.c:1", 5000, 0.5, 2, 1, "c.c:1"},
					      {"b.c:1", 5000, 0.5, 2, 1, "c.c:1"}};
	struct play play = {.phases = phases, .n = 2, .noise = 0.02};
	size_t factors = 0, runs = 20;

	(void)state;
	for (uint64_t seed = 1; seed <= runs; seed++) {
		struct profile p = {0};
		struct analysis a;
		const struct analysis_line *c;

		analyse_play(&play, 60, seed, &p, &a);
		c = sample_line(&a, "c.c:1");
		expect_effect(&a, "c.c:1", 0.5, 0.06);
		factors += c->allow.presence.factor != 1 || c->allow.presence.error != 0;
		analysis_free(&a);
		profile_free(&p);
	}
	if (factors > 2)
		fail_msg("%zu of %zu runs corrected a line that is everywhere", factors, runs);
}

/* With one line fixed its experiments are the whole run: there is nothing to correct. */
static void fixed_line(void **state)
{
	static const struct phase phases[] = {{"a.c:1", 5000, 1, 2, 1, NULL},
					      {"b.c:1", 5000, 1, 2, 1, NULL}};
	struct play play = {.phases = phases, .n = 2, .fixed = "a.c:1"};
	struct profile p = {0};
	struct analysis a;

	(void)state;
	analyse_play(&play, 300, 5, &p, &a);
	expect_effect(&a, "a.c:1", 0.5, 0.1);
	assert_true(sample_line(&a, "a.c:1")->allow.presence.factor > 0.9);
	analysis_free(&a);
	profile_free(&p);
}

/* Two runs, of which the line is in one: its samples are of the time of both. */
static void merged_runs(void **state)
{
	static const struct phase first[] = {{"a.c:1", 1000, 1, 2, 1, NULL}},
				  second[] = {{"b.c:1", 1000, 1, 2, 1, NULL}};
	struct play play = {.phases = first, .n = 1};
	struct profile p = {0};
	struct analysis a;

	(void)state;
	rng_seed(&play.rng, 6);
	play_run(&play, 40, &p);
	play.phases = second;
	play_run(&play, 40, &p);
	analyse(&p, 1, &a);
	expect_effect(&a, "a.c:1", 0.5, 0.03);
	expect_effect(&a, "b.c:1", 0.5, 0.03);
	analysis_free(&a);
	profile_free(&p);
}

/* By Little's law: of six requests that are under way in the one phase and two in the other, as
 * long, three in four are of the first one's time. */
static void latencies(void **state)
{
	static const struct phase phases[] = {{"a.c:1", 5000, 1, 2, 6, NULL},
					      {"b.c:1", 5000, 1, 2, 2, NULL}};
	struct play play = {.phases = phases, .n = 2, .latency = true};
	struct profile p = {0};
	struct analysis a;

	(void)state;
	analyse_play(&play, 240, 7, &p, &a);
	expect_effect(&a, "a.c:1", 0.75, 0.08);
	expect_effect(&a, "b.c:1", 0.25, 0.08);
	analysis_free(&a);
	profile_free(&p);
}

/* Without what tells it (a profile by Coz, or of an older version) nothing is changed. */
static void unknown(void **state)
{
	static const struct phase phases[] = {{"a.c:1", 5000, 1, 2, 1, NULL},
					      {"b.c:1", 5000, 1, 2, 1, NULL}};
	struct play play = {.phases = phases, .n = 2};
	struct profile p = {0};
	struct analysis a;

	(void)state;
	rng_seed(&play.rng, 8);
	play_run(&play, 60, &p);
	sort_samples(&p);
	for (size_t i = 0; i < p.n_samples; i++)
		p.samples[i].ns = 0;
	analyse(&p, 1, &a);
	assert_true(sample_line(&a, "a.c:1")->allow.presence.factor == 1);
	assert_true(sample_line(&a, "a.c:1")->curve.at[1].effect > 0.4);
	analysis_free(&a);
	profile_free(&p);
}

/* How often the truth lies within the interval, over many runs of a minute. */
static void intervals_cover(void **state)
{
	static const struct phase phases[] = {{"a.c:1", 3000, 0.7, 2, 1, "c.c:1"},
					      {"b.c:1", 6000, 0.6, 3, 1, NULL}};
	static const struct {
		const char *line;
		double whole;
	} truths[] = {{"a.c:1", 0.7 / 3}, {"b.c:1", 0.4}, {"c.c:1", 0.1}};
	struct play play = {.phases = phases, .n = 2, .noise = 0.03};
	size_t covered = 0, cells = 0;
	double width = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct profile p = {0};
		struct analysis a;

		analyse_play(&play, 90, seed, &p, &a);
		for (size_t i = 0; i < 3; i++)
			for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
				const struct analysis_change *c =
					&sample_line(&a, truths[i].line)->curve.at[k];
				double truth = truths[i].whole * analysis_curve_speedups[k];

				covered += c->low <= truth && truth <= c->high;
				width += isfinite(c->high - c->low) ? c->high - c->low : 0;
				cells++;
			}
		analysis_free(&a);
		profile_free(&p);
	}
	print_message("%zu of %zu intervals hold, half-width %.3f on average\n", covered, cells,
		      width / (double)cells / 2);
	if (covered * 100 < cells * 90)
		fail_msg("the truth lies within %zu of %zu intervals", covered, cells);
	if (width / (double)cells / 2 > 0.06)
		fail_msg("half-width %.4f", width / (double)cells / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves),      cmocka_unit_test(unequal_phases),
		cmocka_unit_test(everywhere),  cmocka_unit_test(fixed_line),
		cmocka_unit_test(merged_runs), cmocka_unit_test(latencies),
		cmocka_unit_test(unknown),     cmocka_unit_test(intervals_cover),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
