// SPDX-License-Identifier: BSD-2-Clause
/* What two profiles say of a change, on programs whose answer is known. */
#include "analysis/compare.h"
#include "analysis_sample.h"
#include "base/cleanup.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#define VISIT_NS 5e6
#define VISITS 100
#define EXPERIMENTS 120
#define NOISE 0.02

/* Two thirds of a visit are a.c:1, the rest is b.c:2; @faster: by which share a.c:1 was really made
 * shorter. */
static double visit_ns(double faster, double a, double b)
{
	return VISIT_NS * ((1 - faster) * (1 - a) * 2 / 3 + (1 - b) / 3);
}

/* @wander: by how much the machine is now faster, now slower, over about the length of a run. */
static void simulate_on(struct profile *p, double faster, uint64_t seed, double wander)
{
	static const double speedups[] = {0, 0.25, 0, 0.5, 0.75, 1};
	struct rng r;

	double phase;

	rng_seed(&r, seed);
	phase = 2 * M_PI * rng_unit(&r);
	for (size_t i = 0; i < EXPERIMENTS; i++) {
		double speed = 1 + wander * sin(phase + 2 * M_PI * (double)i / EXPERIMENTS / 1.5);
		double s = speedups[rng_below(&r, 6)],
		       noise = 1 + NOISE * (rng_unit(&r) + rng_unit(&r) + rng_unit(&r) - 1.5);
		bool a = rng_below(&r, 3) < 2;

		(void)sample_visits(
			p, a ? "/s/a.c:1" : "/s/b.c:2", s,
			(uint64_t)(VISITS * noise * speed * visit_ns(faster, a ? s : 0, a ? 0 : s)),
			VISITS);
	}
}

static void simulate(struct profile *p, double faster, uint64_t seed)
{
	simulate_on(p, faster, seed, 0);
}

/* On a machine that takes so many times as long for everything. */
static void simulate_cpu(struct profile *p, double faster, uint64_t seed, double slower)
{
	static const char *const lines[] = {"/s/a.c:1", "/s/b.c:2"};
	const double ns[] = {(1 - faster) * 2e9, 1e9};

	simulate(p, faster, seed);
	for (size_t i = 0; i < p->n_experiments; i++) {
		struct profile_experiment *x = &p->experiments[i].x;

		x->duration = (uint64_t)((double)x->duration * slower);
		x->elapsed = (uint64_t)((double)x->elapsed * slower);
		x->executed_ns = (uint64_t)(VISITS * slower * visit_ns(faster, 0, 0));
	}
	p->samples = calloc(2, sizeof(*p->samples));
	for (; p->n_samples < 2; p->n_samples++)
		p->samples[p->n_samples] =
			(struct profile_samples){.location = strdup(lines[p->n_samples]),
						 .count = 1000,
						 .ns = (uint64_t)ns[p->n_samples]};
}

struct pair {
	struct profile before, after;
	struct analysis a, b;
	struct comparison c;
};

static void compare_pair(struct pair *p)
{
	analyse(&p->before, 1, &p->a);
	analyse(&p->after, 1, &p->b);
	compare(&p->before, &p->a, &p->after, &p->b, &p->c);
}

static void pair_free(struct pair *p)
{
	compare_free(&p->c);
	analysis_free(&p->a);
	analysis_free(&p->b);
	profile_free(&p->before);
	profile_free(&p->after);
}

static void what_was_predicted_comes_true(void **state)
{
	size_t held = 0, came_true = 0, differences = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		_cleanup_(pair_free) struct pair p = {0};
		struct promise s;

		simulate(&p.before, 0, 2 * seed);
		simulate(&p.after, 0.4, 2 * seed + 1);
		compare_pair(&p);
		assert_int_equal(p.c.n_points, 1);
		assert_int_equal(p.c.points[0].n_lines, 2);
		s = compare_promise(&p.c.points[0], "a.c:1", 0.4);
		held += p.c.points[0].gain.low <= 0.4 * 2 / 3 &&
			p.c.points[0].gain.high >= 0.4 * 2 / 3;
		came_true += s.outcome == PROMISE_CAME_TRUE;
		assert_true(fabs(s.predicted.effect - 0.4 * 2 / 3) < 0.02);
		/* Half of what was promised is not what was promised. */
		assert_int_equal(compare_promise(&p.c.points[0], "a.c:1", 0.8).outcome,
				 PROMISE_BROKEN);
		assert_int_equal(compare_promise(&p.c.points[0], "c.c:1", 0.4).outcome,
				 PROMISE_UNKNOWN);
		/* A shorter line is a smaller part of what is left, the other a larger one. */
		for (size_t i = 0; i < 2; i++) {
			const struct compare_line *l = &p.c.points[0].lines[i];
			double before = strcmp(l->after->selected, "/s/a.c:1") ? 1.0 / 3 : 2.0 / 3;
			double after = strcmp(l->after->selected, "/s/a.c:1")
					       ? 1 / (1 + 0.6 * 2)
					       : 0.6 * 2 / (1 + 0.6 * 2);

			assert_true(fabs(l->difference[3].effect - (after - before)) < 0.04);
			differences += l->difference[3].low < after - before &&
				       l->difference[3].high > after - before;
		}
	}
	assert_uint_in_range(held, 18, 20);
	assert_uint_in_range(came_true, 18, 20);
	assert_uint_in_range(differences, 38, 40);
}

/* The machine is a tenth slower after the change. */
static void other_lines_tell_the_machine_s_speed(void **state)
{
	_cleanup_(pair_free) struct pair p = {0};
	struct promise s;

	(void)state;
	simulate_cpu(&p.before, 0, 1, 1);
	simulate_cpu(&p.after, 0.4, 2, 1.1);
	compare_pair(&p);
	s = compare_promise(&p.c.points[0], "a.c:1", 0.4);
	assert_true(fabs(p.c.points[0].gain.effect - (1 - 1.1 * (1 - 0.4 * 2 / 3))) < 0.02);
	assert_true(s.corrected && fabs(s.gained.effect - 0.4 * 2 / 3) < 0.02);
	assert_int_equal(s.outcome, PROMISE_CAME_TRUE);
	/* Where nearly all of it is the changed line, the others tell nothing. */
	p.before.samples[0].ns = (uint64_t)1e12;
	s = compare_promise(&p.c.points[0], "a.c:1", 0.4);
	assert_true(!s.corrected && s.gained.effect == p.c.points[0].gain.effect);
}

/* Two runs on a machine that is not equally fast all the time are at two times. */
static void nor_where_the_machine_wanders(void **state)
{
	size_t wrong = 0;
	double widest = 0;

	(void)state;
	for (uint64_t seed = 200; seed < 240; seed++) {
		_cleanup_(pair_free) struct pair p = {0};

		simulate_on(&p.before, 0, 2 * seed, 0.03);
		simulate_on(&p.after, 0, 2 * seed + 1, 0.03);
		compare_pair(&p);
		wrong += p.c.points[0].gain.low > 0 || p.c.points[0].gain.high < 0;
		widest = fmax(widest, p.c.points[0].gain.high - p.c.points[0].gain.low);
	}
	assert_uint_in_range(wrong, 0, 4);
	assert_true(widest < 0.4);
}

static void equal_runs_do_not_differ(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (uint64_t seed = 100; seed < 130; seed++) {
		_cleanup_(pair_free) struct pair p = {0};
		bool any;

		simulate(&p.before, 0, 2 * seed);
		simulate(&p.after, 0, 2 * seed + 1);
		compare_pair(&p);
		any = p.c.points[0].gain.low > 0 || p.c.points[0].gain.high < 0;
		for (size_t i = 0; i < p.c.points[0].n_lines; i++)
			any |= p.c.points[0].lines[i].differs;
		wrong += any;
	}
	assert_uint_in_range(wrong, 0, 3);
}

/* Gives the line's samples the text that it has. */
static void add_source(struct profile *p, const char *line, const char *source)
{
	p->samples = reallocarray(p->samples, p->n_samples + 1, sizeof(*p->samples));
	p->samples[p->n_samples++] = (struct profile_samples){
		.location = strdup(line), .count = 1, .source = strdup(source)};
}

static void add_line(struct profile *p, const char *line, const char *function)
{
	for (size_t i = 0; i < 8; i++)
		sample_visits(p, line, i % 2 ? 0.5 : 0, (uint64_t)1e9, 100 + i)->x.function =
			strdup(function);
}

static void moved_lines_are_found_by_their_text(void **state)
{
	_cleanup_(pair_free) struct pair p = {0};
	const struct compare_point *point;

	(void)state;
	add_line(&p.before, "/s/a.c:10", "work");
	add_line(&p.before, "/s/a.c:12", "work");
	add_line(&p.before, "/s/a.c:20", "work");
	add_source(&p.before, "/s/a.c:10", "9\tx\n10\t\thot();\n");
	add_source(&p.before, "/s/a.c:12", "12\tsame();\n");
	add_source(&p.before, "/s/a.c:20", "20\tsame();\n");
	/* Two lines were put before it, so that another line has its number. */
	add_line(&p.after, "/s/a.c:10", "work");
	add_line(&p.after, "/s/a.c:12", "work");
	add_line(&p.after, "/s/a.c:14", "work");
	add_source(&p.after, "/s/a.c:10", "10\tnew();\n");
	add_source(&p.after, "/s/a.c:12", "12\thot(); \n");
	add_source(&p.after, "/s/a.c:14", "14\tsame();\n");
	compare_pair(&p);
	point = &p.c.points[0];
	assert_int_equal(point->n_lines, 1);
	assert_string_equal(point->lines[0].before->selected, "/s/a.c:10");
	assert_string_equal(point->lines[0].after->selected, "/s/a.c:12");
}

static void little_says_little(void **state)
{
	_cleanup_(pair_free) struct pair p = {0};

	(void)state;
	(void)sample_visits(&p.before, "/s/a.c:1", 0, (uint64_t)1e9, 100);
	(void)sample_visits(&p.after, "/s/a.c:1", 0, (uint64_t)5e8, 100);
	compare_pair(&p);
	assert_int_equal(p.c.n_points, 1);
	assert_true(fabs(p.c.points[0].gain.effect - 0.5) < 1e-9 && isnan(p.c.points[0].gain.low));
	assert_int_equal(compare_promise(&p.c.points[0], "a.c:1", 0.5).outcome, PROMISE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_predicted_comes_true),
		cmocka_unit_test(equal_runs_do_not_differ),
		cmocka_unit_test(nor_where_the_machine_wanders),
		cmocka_unit_test(other_lines_tell_the_machine_s_speed),
		cmocka_unit_test(moved_lines_are_found_by_their_text),
		cmocka_unit_test(little_says_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
