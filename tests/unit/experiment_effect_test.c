// SPDX-License-Identifier: BSD-2-Clause
/* Whole runs on the simulated program, whose causal profile is arithmetic; and runs of one chosen
 * line. */
#include "experiment/runner.h"

#include "experiment_fake.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SPEEDUPS 4 /* 0, 25, 50, 75 % */

struct cell {
	double duration, visits;
	size_t experiments;
};

struct run {
	struct cell cells[3][SPEEDUPS];
	size_t n;
	uint64_t fingerprint;		 /* of the sequence of lines and speedups */
	const char *selected, *function; /* of the last one */
	double speedup;
};

static const double grid[] = {0.25, 0.5, 0.75};
static const char *const point_names[] = {"round"};
static const enum profile_point_kind point_kinds[] = {PROFILE_THROUGHPUT};

static struct fake fake;

static size_t line_index(const char *line)
{
	return strcmp(line, LINE_A) == 0 ? 0 : strcmp(line, LINE_B) == 0 ? 1 : 2;
}

static int sink(void *arg, const struct profile_experiment *x, const struct profile_point *points,
		size_t n_points)
{
	struct run *run = arg;
	size_t speedup = (size_t)(x->speedup * 4);
	struct cell *c = &run->cells[line_index(x->selected)][speedup];

	assert_int_equal(n_points, 1);
	c->duration += (double)x->duration;
	c->visits += (double)points[0].delta;
	c->experiments++;
	run->n++;
	run->fingerprint = (run->fingerprint + line_index(x->selected) * SPEEDUPS + speedup + 1) *
			   1099511628211ULL;
	run->selected = x->selected;
	run->function = x->function;
	run->speedup = x->speedup;
	return 0;
}

static struct runner_options defaults(uint64_t seed)
{
	return (struct runner_options){
		.seed = seed,
		.experiment_ns = 500 * MSEC,
		.cool_off_ns = 10 * MSEC,
		.max_experiment_ns = 8000 * MSEC,
		.min_visits = 5,
		.fixed_speedup = -1,
		.grid = grid,
		.n_grid = 3,
		.zero_share = 1.0 / 3,
		.point_names = point_names,
		.point_kinds = point_kinds,
		.n_points = 1,
	};
}

static struct runner *open_runner(const struct runner_options *o, struct run *run)
{
	struct runner *r;

	fake_init(&fake);
	*run = (struct run){0};
	assert_int_equal(runner_new(o, &fake_ops, &fake, sink, run, &r), 0);
	return r;
}

static void drive(struct runner *r, uint64_t ns)
{
	uint64_t until = fake.now + ns, next = fake.now;

	while (next <= until) {
		fake_advance(&fake, next);
		assert_int_equal(runner_step(r, fake.now, &next), 0);
		fake.calls[0] = 0;
		memset(fake.calls, 0, sizeof(fake.calls));
	}
}

static void run_whole(const struct runner_options *o, uint64_t ns, struct run *run)
{
	struct runner *r = open_runner(o, run);

	drive(r, ns);
	assert_int_equal(runner_finish(r, fake.now), 0);
	runner_free(r);
}

static void the_effects_are_the_program_s(void **state)
{
	struct runner_options o = defaults(5);
	struct run run;

	(void)state;
	run_whole(&o, 1000000 * MSEC, &run);
	for (size_t line = 0; line < 3; line++) {
		const struct cell *zero = &run.cells[line][0];

		for (size_t s = 1; s < SPEEDUPS; s++) {
			const struct cell *c = &run.cells[line][s];
			double effect =
				1 - (c->duration / c->visits) / (zero->duration / zero->visits);
			double truth = line == 1 ? 0 : (double)s / 4 / 2;

			assert_true(c->experiments > 10);
			assert_true(fabs(effect - truth) < 0.005);
		}
	}
}

/* Of 2 s of CPU time in each second, 1 s is B's, a half each A's and C's. While B is selected the
 * first thread is stopped for a share of the time: that must not draw B more often (57 % if the
 * experiment's own samples counted). */
static void lines_are_drawn_in_proportion_to_time(void **state)
{
	struct runner_options o = defaults(6);
	size_t per_line[3] = {0};
	size_t zeros = 0;
	struct run run;

	(void)state;
	run_whole(&o, 2000000 * MSEC, &run);
	for (size_t line = 0; line < 3; line++) {
		for (size_t s = 0; s < SPEEDUPS; s++)
			per_line[line] += run.cells[line][s].experiments;
		zeros += run.cells[line][0].experiments;
		/* Speedups are drawn apart from lines: each line has its share of zeros. */
		assert_true(fabs((double)run.cells[line][0].experiments / (double)per_line[line] -
				 1.0 / 3) < 0.06);
	}
	assert_true(run.n > 3800);
	assert_true(fabs((double)per_line[0] / (double)run.n - 0.25) < 0.03);
	assert_true(fabs((double)per_line[1] / (double)run.n - 0.50) < 0.03);
	assert_true(fabs((double)per_line[2] / (double)run.n - 0.25) < 0.03);
	assert_true(fabs((double)zeros / (double)run.n - 1.0 / 3) < 0.03);
}

static void a_seed_repeats_the_run(void **state)
{
	struct runner_options o = defaults(7), other = defaults(8);
	struct run a, b, c;

	(void)state;
	run_whole(&o, 60000 * MSEC, &a);
	run_whole(&o, 60000 * MSEC, &b);
	run_whole(&other, 60000 * MSEC, &c);
	assert_true(a.fingerprint == b.fingerprint);
	assert_true(a.fingerprint != c.fingerprint);
}

static void one_cell_can_be_run_alone(void **state)
{
	struct runner_options o = defaults(9);
	struct runner_status status;
	struct runner *r;
	struct run run;

	(void)state;
	o.fixed_line = "a.c:10";
	o.fixed_speedup = 0.5;
	r = open_runner(&o, &run);
	fake.idle = true; /* no sample is needed */
	drive(r, 0);
	assert_true(fake.running);
	fake.idle = false;
	drive(r, 60000 * MSEC);
	runner_get_status(r, &status);
	assert_int_equal(status.experiments, run.n);
	assert_int_equal(status.sums.tried, 1);
	assert_string_equal(status.selected, LINE_A);
	assert_true(status.speedup == 0.5);
	runner_free(r);
	assert_true(run.n > 100);
	assert_int_equal(run.cells[0][2].experiments, run.n);
	assert_string_equal(run.function, "alpha");
}

static void a_fixed_line_waits_for_its_object(void **state)
{
	struct runner_options o = defaults(10);
	struct runner *r;
	struct run run;

	(void)state;
	o.fixed_line = "a.c:30";
	r = open_runner(&o, &run);
	fake.unloaded = true;
	drive(r, 5000 * MSEC);
	assert_false(fake.running);
	assert_int_equal(run.n, 0);
	fake.unloaded = false;
	drive(r, 20 * MSEC);
	assert_true(fake.running);
	assert_int_equal(fake.setup.n_intervals, 2);
	assert_int_equal(fake.intervals[1].lo, 0x3200);
	drive(r, 5000 * MSEC);
	runner_free(r);
	assert_string_equal(run.selected, LINE_C);
	assert_string_equal(run.function, "gamma");
}

static void a_name_of_several_lines_is_kept_as_written(void **state)
{
	struct runner_options o = defaults(11);
	struct profile_samples *list;
	struct runner *r;
	struct run run;
	size_t n;

	(void)state;
	o.fixed_line = "either";
	o.fixed_speedup = 0;
	r = open_runner(&o, &run);
	drive(r, 2000 * MSEC);
	assert_string_equal(run.selected, "either");
	assert_null(run.function);
	/* The samples still have their own lines. */
	tally_list(runner_tally(r), &list, &n);
	assert_int_equal(n, 3);
	assert_string_equal(list[0].location, LINE_B);
	free(list);
	runner_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_effects_are_the_program_s),
		cmocka_unit_test(lines_are_drawn_in_proportion_to_time),
		cmocka_unit_test(a_seed_repeats_the_run),
		cmocka_unit_test(one_cell_can_be_run_alone),
		cmocka_unit_test(a_fixed_line_waits_for_its_object),
		cmocka_unit_test(a_name_of_several_lines_is_kept_as_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
