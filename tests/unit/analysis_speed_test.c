// SPDX-License-Identifier: BSD-2-Clause
/* Programs on machines that are now slow, now fast: what is taken out of their times, and when
 * nothing must be. */
#include "analysis/analysis.h"
#include "analysis_sample.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#define MS 1000000.0
#define HELPFUL "a.c:1"
#define FLAT "a.c:2"
#define VISITS 100
#define ROUND (5 * MS)
#define EXPERIMENTS 60

/* What a thread executes in a visit beside its work. */
enum kind { WORKS, SPINS, COOLS, BURNS, NOT_RECORDED };

/* A visit takes @ns and @paused beside, in which who waits for it waits on; the machine takes @slow
 * times as long as it mostly does. */
static void add(struct profile *p, const char *line, double speedup, double ns, double paused,
		double slow, enum kind kind)
{
	uint64_t effective = (uint64_t)(VISITS * ns * slow);
	struct profile_run_experiment *x;
	double work = 3 * MS * slow;

	sample_timed(p, line, speedup, effective, VISITS + 1, effective);
	x = &p->experiments[p->n_experiments - 1];
	x->x.elapsed = (uint64_t)(VISITS * (ns + paused) * slow);
	x->points[0].last_ns = x->points[0].first_ns + x->x.elapsed;
	if (kind == SPINS)
		work = (2 * ns + paused) * slow; /* two CPUs are always busy */
	if (kind == COOLS)
		work = 2 * ROUND * slow *
		       pow(1 + paused / ns,
			   0.08); /* two threads, whose caches are colder after a pause */
	if (kind == BURNS)
		work += 0.2 * ns *
			slow; /* another thread does something else for a fifth of the time */
	x->x.executed_ns = kind == NOT_RECORDED ? 0 : (uint64_t)(VISITS * work);
}

/* The machine's speed is drawn anew for each experiment, by up to a fifth. @lines: of the two the
 * first, the second, or both. @pauses: of a round, what they take at 100 %. */
static struct analysis analysed(struct profile *p, enum kind kind, int lines, double pauses,
				uint64_t seed)
{
	struct analysis a;
	struct rng r;

	rng_seed(&r, seed);
	for (int i = 0; i < EXPERIMENTS; i++) {
		bool helpful = lines == 1 || (lines == 3 && rng_below(&r, 2) == 0);
		double s = rng_unit(&r) < 0.35 ? 0 : 0.25 * (double)(1 + rng_below(&r, 4));
		double own = 1 + 0.004 * (rng_unit(&r) - 0.5), slow = 1 + 0.2 * rng_unit(&r);

		add(p, helpful ? HELPFUL : FLAT, s, ROUND * (helpful ? 1 - fmin(s, 0.4) : 1) * own,
		    s * pauses * ROUND, slow, kind);
	}
	analyse(p, 7, &a);
	assert_int_equal(a.n_points, 1);
	return a;
}

static const struct analysis_line *line_of(const struct analysis *a, const char *name)
{
	for (size_t i = 0; i < a->points[0].n_lines; i++)
		if (strcmp(a->points[0].lines[i].selected, name) == 0)
			return &a->points[0].lines[i];
	fail();
	return NULL;
}

static double half_width(const struct analysis_line *l)
{
	return (l->curve.at[1].high - l->curve.at[1].low) / 2;
}

static void near_to(double got, double wanted, double by, const char *what)
{
	if (!(fabs(got - wanted) <= by))
		fail_msg("%s is %g, not %g +- %g", what, got, wanted, by);
}

static void end(struct analysis *a, struct profile *p)
{
	analysis_free(a);
	profile_free(p);
}

static void the_machine_is_taken_out(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct profile p = {0}, q = {0};
		struct analysis a = analysed(&p, WORKS, 3, 0, seed),
				raw = analysed(&q, NOT_RECORDED, 3, 0, seed);

		near_to(a.points[0].speed.slope, 1, 0.05, "the slope");
		assert_true(a.points[0].speed.before > 0.04 && a.points[0].speed.after < 0.004);
		for (size_t i = 0; i < ANALYSIS_CURVE_POINTS; i++) {
			near_to(line_of(&a, HELPFUL)->curve.at[i].effect,
				fmin(analysis_curve_speedups[i], 0.4), 0.01, "the effect");
			near_to(line_of(&a, FLAT)->curve.at[i].effect, 0, 0.005, "no effect");
		}
		assert_int_equal(line_of(&a, FLAT)->verdict, VERDICT_NO_EFFECT);
		assert_true(raw.points[0].speed.slope == 0 && isnan(raw.points[0].speed.before));
		assert_true(half_width(line_of(&a, FLAT)) < half_width(line_of(&raw, FLAT)) / 2);
		end(&a, &p);
		end(&raw, &q);
	}
}

/* Who spins while it waits executes as long as a visit takes: corrected for that, nothing would
 * have an effect. The same with a little of it. */
static void cpu_time_that_follows_the_wait_is_not(void **state)
{
	static const enum kind kinds[] = {SPINS, BURNS};

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct profile p = {0};
		struct analysis a = analysed(&p, kinds[seed % 2], 3, 0, seed);
		const struct analysis_line *l = line_of(&a, HELPFUL);

		assert_true(a.points[0].speed.slope == 0);
		near_to(l->curve.at[3].effect, 0.4, 0.06, "the effect");
		assert_true(l->curve.at[3].low > 0.2);
		end(&a, &p);
	}
}

/* Where nothing has an effect and nothing is paused, nothing shows whether CPU time would follow.
 */
static void without_an_effect_nothing_is_known(void **state)
{
	struct profile p = {0};
	struct analysis a = analysed(&p, WORKS, 2, 0, 3);

	(void)state;
	assert_true(a.points[0].speed.slope == 0);
	end(&a, &p);
}

/* Where nothing has an effect, the pauses show it: they make visits longer, and who spins meanwhile
 * executes more. */
static void pauses_show_who_spins(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct profile p = {0}, q = {0};
		struct analysis a = analysed(&p, WORKS, 2, 0.8, seed),
				spun = analysed(&q, SPINS, 2, 0.8, seed), alone;

		near_to(a.points[0].speed.slope, 1, 0.05, "the slope");
		assert_true(a.points[0].speed.after < 0.004);
		assert_int_equal(line_of(&a, FLAT)->verdict, VERDICT_NO_EFFECT);
		assert_true(half_width(line_of(&a, FLAT)) < half_width(line_of(&spun, FLAT)) / 2);
		assert_true(spun.points[0].speed.slope == 0);
		assert_true(spun.points[0].speed.spins);
		assert_false(a.points[0].speed.spins);
		/* Threads of which only one can execute at a time: who waits, waits. */
		for (size_t i = 0; i < q.n_experiments; i++) {
			q.experiments[i].x.paid = q.experiments[i].x.growth =
				q.experiments[i].x.elapsed / 2;
			q.experiments[i].x.executed_ns /= 2;
		}
		analyse(&q, 7, &alone);
		assert_false(alone.points[0].speed.spins);
		analysis_free(&alone);
		/* A thread that nobody waits for: nothing was there to be paused. */
		for (size_t i = 0; i < q.n_experiments; i++) {
			q.experiments[i].x.paid = 0;
			q.experiments[i].x.executed_ns *= 2;
		}
		analyse(&q, 7, &alone);
		assert_false(alone.points[0].speed.spins);
		analysis_free(&alone);
		end(&a, &p);
		end(&spun, &q);
	}
}

/* After a pause the same work takes a little longer. Of a few experiments it can look like more. */
static void little_more_cpu_time_is_no_spinning(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct profile p = {0};
		struct analysis a = analysed(&p, COOLS, 2, 1, seed);

		assert_false(a.points[0].speed.spins);
		end(&a, &p);
	}
}

/* Few experiments, one of each kind, one without visits: nothing to go by, and nothing that must
 * break. */
static void little_is_known_of_little(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	for (int i = 0; i < 4; i++)
		add(&p, HELPFUL, 0.25 * i, ROUND * (1 - 0.25 * i), 0, 1, WORKS);
	sample_visits(&p, HELPFUL, 1, (uint64_t)ROUND, 0);
	analyse(&p, 7, &a);
	assert_true(a.points[0].speed.slope == 0);
	end(&a, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_machine_is_taken_out),
		cmocka_unit_test(cpu_time_that_follows_the_wait_is_not),
		cmocka_unit_test(without_an_effect_nothing_is_known),
		cmocka_unit_test(pauses_show_who_spins),
		cmocka_unit_test(little_more_cpu_time_is_no_spinning),
		cmocka_unit_test(little_is_known_of_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
