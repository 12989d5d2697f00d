// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/tally.h"

#include "experiment_fake.h"
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct fake fake;
static struct tally *tally;

static int set_up(void **state)
{
	(void)state;
	fake_init(&fake);
	tally = tally_new(&fake_ops, &fake);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tally_free(tally);
	tally = NULL;
	return 0;
}

static void drain(const struct backend_sample *samples, size_t n)
{
	assert_true(n <= sizeof(fake.extra) / sizeof(*fake.extra));
	memcpy(fake.extra, samples, n * sizeof(*samples));
	fake.n_extra = n;
	assert_int_equal(tally_drain(tally), 0);
}

static void samples_are_summed_by_line(void **state)
{
	static const struct backend_sample samples[] = {
		{0x1000, 3, .ns = 30}, {0x3010, 5, .ns = 1}, {0x10ff, 4, .ns = 7}, {0x3210, 9}};
	struct profile_samples *list;
	struct tally_sums sums;
	size_t n;

	(void)state;
	drain(samples, 4);
	drain(samples, 1);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.samples, 24);
	assert_int_equal(sums.recent, 24);
	assert_int_equal(sums.without_line, 0);
	assert_false(sums.no_debug_info);
	tally_list(tally, &list, &n);
	assert_int_equal(n, 2);
	assert_string_equal(list[0].location, LINE_C);
	assert_int_equal(list[0].count, 14);
	assert_string_equal(list[1].location, LINE_A);
	assert_int_equal(list[1].count, 10);
	assert_int_equal(list[0].ns, 1);
	assert_int_equal(list[1].ns, 67);
	free(list);
}

/* By place: of a call chain the first frame alone, of waits none. */
static void samples_are_summed_by_place(void **state)
{
	static const struct backend_sample samples[] = {{.addr = 0x3010, .count = 5},
							{.addr = 0x1000, .count = 3, .more = true},
							{.addr = 0x3010, .count = 3},
							{.addr = 0x10ff, .count = 9, .wait = true}};
	struct backend_sample *list;
	size_t n;

	(void)state;
	tally_places(tally, &list, &n);
	assert_int_equal(n, 0);
	drain(samples, 4);
	drain(samples, 1);
	tally_places(tally, &list, &n);
	assert_int_equal(n, 2);
	assert_int_equal(list[0].addr, 0x1000);
	assert_int_equal(list[0].count, 3);
	assert_int_equal(list[1].addr, 0x3010);
	assert_int_equal(list[1].count, 10);
	free(list);
}

/* Three samples with A, C and B in their call chains, C at two addresses; and four of A alone. */
static void a_chain_counts_once_for_each_line(void **state)
{
	static const struct backend_sample chains[] = {{.addr = 0x1000, .count = 3, .more = true},
						       {.addr = 0x3000, .count = 3, .more = true},
						       {.addr = 0x3210, .count = 3, .more = true},
						       {.addr = 0x2000, .count = 3}};
	static const struct backend_sample others[] = {{.addr = 0x1000, .count = 4},
						       {.addr = 0x9000, .count = 2, .more = true},
						       {.addr = 0x9004, .count = 2},
						       {.addr = 0x9000, .count = 1, .more = true}};
	struct profile_samples *list;
	struct tally_sums sums;
	size_t n;

	(void)state;
	drain(chains, 4);
	drain(others, 4);
	drain(chains + 3, 1); /* nothing of the last call's goes on */
	sums = tally_get_sums(tally);
	assert_int_equal(sums.samples, 3 + 4 + 2 + 1 + 3);
	assert_int_equal(sums.without_line, 2); /* of the last group the end did not come */
	assert_int_equal(sums.recent, 3 * 3 + 4 + 3);
	tally_list(tally, &list, &n);
	assert_int_equal(n, 3);
	assert_string_equal(list[0].location, LINE_A);
	assert_int_equal(list[0].count, 7);
	assert_string_equal(list[1].location, LINE_B);
	assert_int_equal(list[1].count, 6);
	assert_string_equal(list[2].location, LINE_C);
	assert_int_equal(list[2].count, 3);
	assert_null(list[0].inlined);
	free(list);
}

static size_t callers_of(void *b, uint64_t addr, const char **ret, size_t max)
{
	(void)b;
	assert_true(max >= 2);
	ret[0] = LINE_A;
	ret[1] = LINE_B;
	return addr == 0x3000 ? 2 : 0;
}

/* Names are equal if their pointers are. */
static int own_names(void *b, uint64_t addr, const char **ret_line, const char **ret_function)
{
	static const struct fake_code *const code = fake_code;

	(void)b;
	*ret_line = addr == 0x3000 ? code[2].line : code[0].line;
	*ret_function = "f";
	return 0;
}

/* Three samples of C, inlined by calls in A and B; and those of A that call something, once. */
static void lines_that_inlined_it_count(void **state)
{
	static const struct backend_sample samples[] = {{.addr = 0x3000, .count = 3},
							{.addr = 0x3000, .count = 5, .more = true},
							{.addr = 0x1000, .count = 5}};
	struct backend_ops ops = fake_ops;
	struct profile_samples *list;
	struct tally_sums sums;
	size_t n;

	(void)state;
	tally_free(tally);
	ops.name = own_names;
	ops.callers = callers_of;
	tally = tally_new(&ops, &fake);
	drain(samples, 3);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.samples, 8);
	assert_int_equal(sums.without_line, 0);
	assert_int_equal(sums.recent, 24);
	tally_list(tally, &list, &n);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(list[i].count, 8);
	free(list);
	tally_free(tally);
	tally = NULL;
}

static const char *inlined_of(void *b, uint64_t addr)
{
	static const char *const copies[] = {"h.h:1\t" LINE_A, LINE_A "\tmain.c:3"};

	(void)b;
	return addr == 0x1000 ? NULL : copies[addr & 1];
}

static void inlined_copies_are_counted(void **state)
{
	static const struct backend_sample samples[] = {{.addr = 0x1000, .count = 3},
							{.addr = 0x1001, .count = 4},
							{.addr = 0x1002, .count = 5},
							{.addr = 0x1003, .count = 6}};
	struct backend_ops ops = fake_ops;
	struct profile_samples *list;
	size_t n;

	(void)state;
	tally_free(tally);
	ops.inlined = inlined_of;
	tally = tally_new(&ops, &fake);
	drain(samples, 4);
	for (int i = 0; i < 2; i++) {
		tally_list(tally, &list, &n);
		assert_int_equal(n, 1);
		assert_int_equal(list[0].count, 18);
		assert_string_equal(list[0].inlined, "10\t" LINE_A "\tmain.c:3\n5\th.h:1\t" LINE_A);
		free(list);
	}
	tally_free(tally);
	tally = NULL;
}

static const char *object_of(void *b, uint64_t addr)
{
	(void)b;
	return addr < 0x2000 ? "/bin/a" : "/lib/b.so";
}

static void lines_have_their_object(void **state)
{
	static const struct backend_sample samples[] = {{0x1000, 1}, {0x1001, 1}, {0x2000, 1}};
	struct backend_ops ops = fake_ops;
	struct profile_samples *list;
	size_t n;

	(void)state;
	ops.object = object_of;
	tally_free(tally);
	tally = tally_new(&ops, &fake);
	drain(samples, 3);
	tally_list(tally, &list, &n);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(list[i].object,
				    strcmp(list[i].location, LINE_A) == 0 ? "/bin/a" : "/lib/b.so");
	free(list);
	tally_free(tally);
	tally = NULL;
}

static void an_address_is_named_once(void **state)
{
	static const struct backend_sample samples[] = {
		{0x1000, 1}, {0x8000, 1}, {0x9000, 1}, {0x1001, 1}};

	(void)state;
	for (size_t i = 0; i < 10; i++)
		drain(samples, 4);
	assert_int_equal(fake.names, 4);
}

/* Code that is made as the program runs: the place can be another function's later. */
static void places_that_change_are_named_again(void **state)
{
	static const struct backend_sample some = {0xa000, 3}, more = {0xa000, 4};
	struct profile_samples *list;
	size_t n;

	(void)state;
	fake.changing = LINE_A;
	drain(&some, 1);
	drain(&some, 1);
	assert_int_equal(fake.names, 2);
	fake.changing = LINE_B;
	drain(&more, 1);
	tally_list(tally, &list, &n);
	assert_int_equal(n, 2);
	assert_string_equal(list[0].location, LINE_A);
	assert_int_equal(list[0].count, 6);
	assert_string_equal(list[1].location, LINE_B);
	assert_int_equal(list[1].count, 4);
	free(list);
}

static void addresses_without_a_line_are_told_apart(void **state)
{
	static const struct backend_sample nowhere = {0x9000, 7}, bare = {0x8000, 2};
	struct profile_samples *list = (void *)1;
	struct tally_sums sums;
	size_t n = 1;

	(void)state;
	drain(&nowhere, 1);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.without_line, 7);
	assert_false(sums.no_debug_info);
	drain(&bare, 1);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.without_line, 9);
	assert_int_equal(sums.samples, 9);
	assert_int_equal(sums.recent, 0);
	assert_true(sums.no_debug_info);
	tally_list(tally, &list, &n);
	assert_null(list);
	assert_int_equal(n, 0);
	assert_null(tally_nth_recent(tally, false, 0));
}

static void recent_samples_are_numbered(void **state)
{
	static const struct backend_sample samples[] = {{0x1000, 2}, {0x2000, 0}, {0x3000, 1}};
	struct tally_line *line;
	struct tally_sums sums;

	(void)state;
	drain(samples, 3);
	assert_string_equal(tally_nth_recent(tally, false, 0)->name, LINE_A);
	assert_string_equal(tally_nth_recent(tally, false, 1)->name, LINE_A);
	line = tally_nth_recent(tally, false, 2);
	assert_string_equal(line->name, LINE_C);
	tally_drop_recent(tally, tally_nth_recent(tally, false, 0));
	assert_ptr_equal(tally_nth_recent(tally, false, 0), line);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.recent, 1);
	tally_forget_recent(tally);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.recent, 0);
	assert_int_equal(line->total, 1);
	tally_mark_tried(tally, line);
	tally_mark_tried(tally, line);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.tried, 1);
}

/* What one thread waits for the whole of a run of 100, what two do together, and what is too long.
 */
static void waits_are_drawn_by_time(void **state)
{
	static const struct backend_sample samples[] = {{0x1000, 2, .ns = 2},
							{0x4000, 10, .ns = 40, .wait = true}};
	struct tally_waits w = {.kinds = UINT32_MAX, .run_ns = 100, .longest_ns = 4};
	struct profile_samples *list;
	struct tally_line *line;
	struct tally_sums sums;
	uint64_t n, executed;
	size_t n_list;

	(void)state;
	drain(samples, 2);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.samples, 2);
	assert_int_equal(sums.recent, 2);
	assert_int_equal(sums.without_line, 0);
	assert_int_equal(tally_waiting(tally, &w, &executed), 40);
	assert_int_equal(executed, 2);
	line = tally_nth_waiting(tally, &w, 39);
	assert_string_equal(line->name, LINE_W);
	assert_int_equal(tally_waited(tally, line, &n), 40);
	assert_int_equal(n, 10);
	assert_int_equal(tally_waited(tally, tally_line_named(tally, "[disk]", NULL), &n), 40);
	assert_int_equal(n, 10);
	tally_forget_recent(tally);
	w.run_ns = 30;
	assert_int_equal(tally_waiting(tally, &w, &executed), 30);
	w.longest_ns = 3;
	assert_int_equal(tally_waiting(tally, &w, &executed), 0);
	assert_null(tally_nth_waiting(tally, &w, 0));
	w = (struct tally_waits){
		.kinds = UINT32_MAX, .run_ns = 100, .longest_ns = 4, .least_share = 0.41};
	assert_int_equal(tally_waiting(tally, &w, &executed), 0);
	w.least_share = 0.4;
	assert_int_equal(tally_waiting(tally, &w, &executed), 40);
	w.kinds = ~(1U << line->wait);
	assert_int_equal(tally_waiting(tally, &w, &executed), 0);
	w.kinds = UINT32_MAX;
	tally_drop_recent(tally, line);
	assert_int_equal(tally_waiting(tally, &w, &executed), 0);
	drain(samples + 1, 1);
	assert_int_equal(tally_waiting(tally, &w, &executed), 80);
	tally_list(tally, &list, &n_list);
	assert_int_equal(n_list, 2);
	assert_string_equal(list[0].location, LINE_W);
	assert_int_equal(list[0].ns, 80);
	free(list);
}

static void the_function_may_become_known_later(void **state)
{
	static const struct backend_sample first = {0x3000, 1}, second = {0x3200, 1};
	struct tally_line *line;

	(void)state;
	drain(&first, 1);
	line = tally_nth_recent(tally, false, 0);
	assert_null(line->function);
	drain(&second, 1);
	assert_string_equal(line->function, "gamma");
	assert_int_equal(line->total, 2);
}

static void counts_do_not_wrap(void **state)
{
	static const struct backend_sample many[] = {{0x1000, UINT64_MAX}, {0x2000, UINT64_MAX}};
	struct tally_sums sums;

	(void)state;
	drain(many, 2);
	drain(many, 2);
	sums = tally_get_sums(tally);
	assert_true(sums.samples == UINT64_MAX);
	assert_true(sums.recent == UINT64_MAX);
	assert_non_null(tally_nth_recent(tally, false, UINT64_MAX));
	tally_drop_recent(tally, tally_nth_recent(tally, false, 0));
	assert_string_equal(tally_nth_recent(tally, false, UINT64_MAX)->name, LINE_B);
}

static void the_cache_has_a_bound(void **state)
{
	struct tally_sums sums;
	struct backend_sample s = {0, 1};

	(void)state;
	for (uint64_t addr = 0x10000; addr < 0x10000 + (1 << 18) + 1; addr++) {
		s.addr = addr;
		drain(&s, 1);
	}
	assert_int_equal(fake.names, (1 << 18) + 1);
	/* The cache started anew with the last one: known, the first one: not. */
	drain(&s, 1);
	assert_int_equal(fake.names, (1 << 18) + 1);
	s.addr = 0x10000;
	drain(&s, 1);
	assert_int_equal(fake.names, (1 << 18) + 2);
	sums = tally_get_sums(tally);
	assert_int_equal(sums.recent, (1 << 18) + 3);
}

static void failures_pass_through(void **state)
{
	static const struct backend_sample s = {0x1000, 1};

	(void)state;
	fake.fails = 'd';
	assert_int_equal(tally_drain(tally), -EIO);
	fake.fails = 'n';
	fake.extra[0] = s;
	fake.n_extra = 1;
	assert_int_equal(tally_drain(tally), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_are_summed_by_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(samples_are_summed_by_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_chain_counts_once_for_each_line, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(lines_that_inlined_it_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(inlined_copies_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_have_their_object, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_address_is_named_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(places_that_change_are_named_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(addresses_without_a_line_are_told_apart, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(recent_samples_are_numbered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waits_are_drawn_by_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_function_may_become_known_later, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(counts_do_not_wrap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_cache_has_a_bound, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failures_pass_through, set_up, tear_down),
	};

	tally_free(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
