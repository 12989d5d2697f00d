// SPDX-License-Identifier: BSD-2-Clause
/* Windows of slopes between experiments: when they are, what they tell, and what is drawn then. */
#include "experiment_run.h"

#include "profile/profile.h"

#include <stdlib.h>

static struct abi_place places[ABI_MAX_PLACES];
static size_t n_places;
static bool open, blind; /* blind: no visit is seen */
static bool waits;	 /* a thread waits in places, and for a CPU */
static size_t n_waits;	 /* windows that follow a place where it waits */
static uint64_t opened_ns, in_windows_ns;
static bool whole;	  /* one window is all of the run ... */
static uint64_t began_ns; /* ... which began then */
static uint64_t visits_before;
static size_t n_windows, selected[3]; /* experiments on A, B, C */

static void take_places(const struct abi_place *p, size_t n)
{
	memcpy(places, p, n * sizeof(*p));
	n_places = n;
}

static int window_follow(void *b, const struct abi_place *p, size_t n)
{
	(void)b;
	assert_true(open && whole);
	assert_true(n > n_places);
	take_places(p, n);
	return 0;
}

static int window_begin(void *b, const struct abi_place *p, size_t n, uint64_t since_ns)
{
	const struct fake *f = b;

	assert_false(open || f->running || f->resting);
	assert_int_equal(since_ns, whole ? began_ns : 0);
	take_places(p, n);
	for (size_t i = 0; i < n; i++) {
		/* Waiting for a CPU has no place. */
		assert_true(p[i].lo != 0x5000);
		n_waits += p[i].lo == 0x4000;
	}
	open = true;
	opened_ns = f->now;
	visits_before = f->totals.points[0].visits;
	return 0;
}

static int window_end(void *b)
{
	const struct fake *f = b;

	assert_true(open && !f->running);
	open = false;
	in_windows_ns += f->now - opened_ns;
	return 0;
}

/* Visits come from the first thread alone, which is in A and C half of the time each. */
static int window_slopes(void *b, size_t point, unsigned int class, struct backend_slopes *ret)
{
	const struct fake *f = b;
	uint64_t visits = f->totals.points[0].visits - visits_before;

	assert_int_equal(point, 0);
	assert_int_equal(class, 0);
	*ret = (struct backend_slopes){0};
	if (blind || !visits)
		return 0;
	ret->seen = ret->visits = visits;
	ret->time_ns = visits * (f->now - opened_ns) / 2;
	for (size_t i = 0; i < n_places; i++)
		if (places[i].lo == 0x1000 || places[i].lo == 0x3000)
			ret->place_ns[places[i].entry - ABI_ENTRY_FIRST] = ret->time_ns / 2;
	return 0;
}

static int begin_outside(void *b, const struct backend_setup *s)
{
	struct fake *f = b;
	int r;

	assert_false(open);
	r = fake_begin(b, s);
	if (r == 0)
		selected[fake_selected(f) - 'A']++;
	return r;
}

static int slopes_seen(void *arg, const struct profile_slopes *s)
{
	assert_ptr_equal(arg, &n_records);
	assert_string_equal(s->point, "round");
	assert_true(s->length > 0 && s->visits > 0);
	assert_non_null(strstr(s->places, LINE_A));
	n_windows++;
	return 0;
}

static int count_only(void *arg, const struct profile_experiment *x,
		      const struct profile_point *points, size_t n_points)
{
	(void)arg, (void)x, (void)points, (void)n_points;
	return 0;
}

/* For @seconds of the program's time, with windows for @share of it. */
static void run_for(uint64_t seconds, double share)
{
	struct backend_ops ops = fake_ops;

	ops.slopes_begin = window_begin;
	ops.slopes_follow = window_follow;
	ops.slopes_end = window_end;
	ops.slopes = window_slopes;
	ops.begin = begin_outside;
	n_windows = 0;
	in_windows_ns = 0;
	memset(selected, 0, sizeof(selected));
	runner_free(runner);
	runner = NULL;
	fake_init(&fake);
	if (share > 0) {
		options.slopes = slopes_seen;
		options.slopes_time =
			(struct slopes_time){share, 500 * MSEC, 0, waits ? WAITS_ALL : 0};
	} else {
		options.slopes = NULL;
	}
	if (waits) {
		fake.wait_share = 1;
		fake.wait_ns = 5 * MSEC;
		fake.extra[0] = (struct backend_sample){
			.addr = 0x5010, .count = 9, .ns = 9 * MSEC, .wait = true};
		fake.n_extra = 1;
	}
	assert_int_equal(runner_new(&options, &ops, &fake, count_only, &n_records, &runner), 0);
	next = fake.now;
	run_until(fake.now + seconds * 1000 * MSEC);
	assert_int_equal(runner_finish(runner, fake.now), 0);
	assert_false(open);
}

static size_t n_selected(void)
{
	return selected[0] + selected[1] + selected[2];
}

static void windows_take_their_share(void **state)
{
	(void)state;
	blind = false;
	run_for(1, 0.2);
	assert_uint_in_range(in_windows_ns, 450 * MSEC, 600 * MSEC);
	run_for(60, 0.2);
	assert_uint_in_range(in_windows_ns, 11000 * MSEC, 13500 * MSEC);
	assert_true(n_windows > 40);
	assert_true(n_selected() > 60);
	run_for(20, 1);
	assert_uint_in_range(in_windows_ns, 19500 * MSEC, 20000 * MSEC);
	assert_int_equal(n_selected(), 0);
}

static void without_visits_they_are_few(void **state)
{
	(void)state;
	blind = true;
	run_for(60, 0.2);
	assert_int_equal(n_windows, 0);
	assert_true(in_windows_ns > 0);
	assert_uint_in_range(in_windows_ns, 1, 3000 * MSEC);
	assert_true(n_selected() > 80);
}

/* Half of the samples are in B, from which nobody waits. */
static void draws_follow_slopes(void **state)
{
	(void)state;
	blind = false;
	run_for(300, 0);
	assert_true(selected[1] * 3 > n_selected());
	run_for(300, 0.2);
	assert_true(selected[1] * 4 < n_selected());
	/* What hurts has no slope. */
	assert_true(selected[1] * 30 > n_selected());
}

static void places_of_waits_are_followed(void **state)
{
	(void)state;
	blind = false;
	waits = true;
	run_for(20, 1);
	assert_true(n_waits > 10);
	waits = false;
	n_waits = 0;
	run_for(20, 1);
	assert_int_equal(n_waits, 0);
}

/* One window from the begin to the end, which follows the lines that it is given: a library's as
 * soon as it is there. Without any the run only finds them. */
static void a_whole_run_is_one_window(void **state)
{
	static const char *const lines[] = {LINE_A, LINE_C};
	struct backend_ops ops = fake_ops;

	(void)state;
	ops.slopes_begin = window_begin;
	ops.slopes_follow = window_follow;
	ops.slopes_end = window_end;
	ops.slopes = window_slopes;
	whole = true;
	blind = false;
	for (size_t known = 0; known < 2; known++) {
		runner_free(runner);
		runner = NULL;
		fake_init(&fake);
		fake.gone = LINE_C;
		began_ns = fake.now - 3 * MSEC;
		n_windows = n_places = 0;
		options.slopes = slopes_seen;
		options.slopes_time = (struct slopes_time){.share = 1,
							   .whole_since_ns = &began_ns,
							   .lines = known ? lines : NULL,
							   .n_lines = known ? 2 : 0};
		assert_int_equal(runner_new(&options, &ops, &fake, count_only, &n_records, &runner),
				 0);
		next = fake.now;
		run_until(fake.now + 1000 * MSEC);
		assert_int_equal(n_places, known);
		assert_int_equal(open, known);
		fake.gone = NULL;
		run_until(fake.now + 10000 * MSEC);
		/* C is in two places. */
		assert_int_equal(n_places, 3 * known);
		assert_int_equal(n_windows, 0);
		assert_int_equal(runner_finish(runner, fake.now), 0);
		assert_int_equal(n_windows, known);
	}
	whole = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(windows_take_their_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_visits_they_are_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(draws_follow_slopes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(places_of_waits_are_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_whole_run_is_one_window, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
