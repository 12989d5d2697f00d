/* SPDX-License-Identifier: BSD-2-Clause */
/* A runner on the simulated program, driven by the program's clock, and what it hands on. */
#pragma once

#include "experiment/runner.h"

#include "experiment_fake.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MAX_RECORDS 128

static const double grid[] = {0.25, 0.5, 0.75};

static struct fake fake;
static struct runner *runner;
static struct runner_options options;
static struct profile_experiment records[MAX_RECORDS];
static struct profile_point record_points[MAX_RECORDS][2];
static size_t n_records, n_last_points;
static int sink_returns;
static uint64_t next;

static inline int sink(void *arg, const struct profile_experiment *x,
		       const struct profile_point *points, size_t n_points)
{
	assert_ptr_equal(arg, &n_records);
	assert_true(n_records < MAX_RECORDS);
	n_last_points = n_points;
	for (size_t i = 0; i < n_points && i < 2; i++)
		record_points[n_records][i] = points[i];
	records[n_records++] = *x;
	return sink_returns;
}

static inline int set_up(void **state)
{
	static const char *const names[] = {"round"};
	static const enum profile_point_kind kinds[] = {PROFILE_THROUGHPUT};

	(void)state;
	fake_init(&fake);
	n_records = 0;
	sink_returns = 0;
	options = (struct runner_options){
		.seed = 1,
		.experiment_ns = 500 * MSEC,
		.cool_off_ns = 10 * MSEC,
		.max_experiment_ns = 8000 * MSEC,
		.min_visits = 5,
		.fixed_speedup = -1,
		.grid = grid,
		.n_grid = 3,
		.zero_share = 1.0 / 3,
		.point_names = names,
		.point_kinds = kinds,
		.n_points = 1,
	};
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	runner_free(runner);
	runner = NULL;
	return 0;
}

static inline void open_runner(void)
{
	assert_int_equal(runner_new(&options, &fake_ops, &fake, sink, &n_records, &runner), 0);
	next = fake.now;
}

/* Steps at the times that the runner asked for, until @until. */
static inline void run_until(uint64_t until)
{
	while (next <= until) {
		fake_advance(&fake, next);
		assert_int_equal(runner_step(runner, fake.now, &next), 0);
	}
	fake_advance(&fake, until);
}

/* Until an experiment is under way. */
static inline void run_to_begin(void)
{
	struct runner_status status;

	do {
		fake_advance(&fake, next);
		assert_int_equal(runner_step(runner, fake.now, &next), 0);
		runner_get_status(runner, &status);
	} while (!status.selected);
}
