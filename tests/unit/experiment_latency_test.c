// SPDX-License-Identifier: BSD-2-Clause
/* What a latency point measured goes from the backend to the sink with its experiment, and nowhere
 * else. */
#include "experiment/books.h"
#include "experiment/runner.h"

#include "experiment_fake.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct fake fake;
static struct backend_ops ops;
static int answer;	 /* what the backend says */
static uint64_t counted; /* it measures 1, 2, 3... intervals */
static size_t sunk;

static int measure(void *b, size_t index, struct profile_latency **ret)
{
	struct profile_latency *l;

	assert_ptr_equal(b, &fake);
	if (answer < 0)
		return answer;
	if (index != 1)
		return 0;
	/* Not while the experiment runs. */
	assert_false(fake.running);
	*ret = l = calloc(1, sizeof(*l));
	assert_non_null(l);
	*l = (struct profile_latency){.sum_ns = -5,
				      .unmatched = 1,
				      .unended = 2,
				      .crossed = 3,
				      .lost = 4,
				      .in_flight_begin = 6,
				      .in_flight_end = 7,
				      .buckets = calloc(2, sizeof(*l->buckets)),
				      .n_buckets = 2};
	assert_non_null(l->buckets);
	l->buckets[0] = (struct profile_bucket){10, ++counted};
	l->buckets[1] = (struct profile_bucket){1000, 9};
	return 0;
}

static int sink(void *arg, const struct profile_experiment *x, const struct profile_point *points,
		size_t n_points)
{
	const struct profile_latency *l = points[1].latency;

	(void)arg;
	(void)x;
	assert_int_equal(n_points, 3);
	assert_null(points[0].latency);
	assert_null(points[2].latency);
	assert_non_null(l);
	assert_true(l->sum_ns == -5 && l->unmatched == 1 && l->unended == 2 && l->crossed == 3 &&
		    l->lost == 4 && l->in_flight_begin == 6 && l->in_flight_end == 7);
	assert_int_equal(l->n_buckets, 2);
	assert_int_equal(l->buckets[0].bucket, 10);
	assert_int_equal(l->buckets[0].count, ++sunk);
	assert_int_equal(l->buckets[1].count, 9);
	return 0;
}

static struct runner *open_runner(void)
{
	static const char *const names[] = {"round", "request", "coz"};
	static const enum profile_point_kind kinds[] = {PROFILE_THROUGHPUT, PROFILE_LATENCY,
							PROFILE_LATENCY};
	static const struct runner_options o = {.experiment_ns = 100 * MSEC,
						.fixed_line = LINE_A,
						.fixed_speedup = 0.5,
						.point_names = names,
						.point_kinds = kinds,
						.n_points = 3};
	struct runner *r;

	fake_init(&fake);
	fake.totals.n_points = 3;
	ops = fake_ops;
	ops.latency = measure;
	answer = 0;
	counted = sunk = 0;
	assert_int_equal(runner_new(&o, &ops, &fake, sink, NULL, &r), 0);
	return r;
}

/* The error that ends it, or 0 after @ns. */
static int run_for(struct runner *r, uint64_t ns)
{
	uint64_t until = fake.now + ns, next = fake.now;
	int err = 0;

	while (next <= until && err == 0) {
		fake_advance(&fake, next);
		err = runner_step(r, fake.now, &next);
	}
	return err;
}

static void each_experiment_has_its_own(void **state)
{
	struct runner *r = open_runner();

	(void)state;
	assert_int_equal(run_for(r, 1000 * MSEC), 0);
	assert_true(sunk >= 3);
	assert_int_equal(runner_finish(r, fake.now + 50 * MSEC), 0);
	assert_true(counted - sunk <= 1); /* the last one was too short */
	runner_free(r);
}

static void a_failure_ends_the_run(void **state)
{
	struct runner *r = open_runner();

	(void)state;
	answer = -EIO;
	assert_int_equal(run_for(r, 1000 * MSEC), -EIO);
	assert_int_equal(sunk, 0);
	runner_free(r);
}

static void without_such_points(void **state)
{
	struct profile_point p = {.kind = PROFILE_LATENCY,
				  .latency = calloc(1, sizeof(*p.latency))};

	(void)state;
	/* What an earlier experiment left goes. */
	assert_int_equal(books_latency(&fake_ops, &fake, 1, &p), 0);
	assert_null(p.latency);
	ops = fake_ops;
	ops.latency = measure;
	answer = 0;
	p.kind = PROFILE_THROUGHPUT;
	assert_int_equal(books_latency(&ops, &fake, 1, &p), 0);
	assert_null(p.latency);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_experiment_has_its_own),
		cmocka_unit_test(a_failure_ends_the_run),
		cmocka_unit_test(without_such_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
