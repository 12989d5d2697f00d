// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"
#include "collect/database/counts.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static char nothing[] = "", path[] = "/usr/bin/a", build_id[] = "0123ab";

static struct counts file_of(const char *process, uint64_t offset, uint64_t count)
{
	const struct counts_image image = {COUNTS_FILE, path, build_id, 1, 2, 3};
	struct counts c = {.begin_s = 3600, .seconds = 3600};
	uint32_t who, event;

	counts_copy_image(&c.image, &image);
	who = counts_who(&c, process, "/a", "host");
	event = counts_event(&c, "cpu-clock", 10000000);
	counts_add(&c, offset, who, event, count);
	return c;
}

static uint64_t sum_of(const struct counts *c, const char *process)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->n_rows; i++)
		if (strcmp(c->who[c->rows[i].who].process, process) == 0)
			n += c->rows[i].count;
	return n;
}

static void rows_are_sorted_and_added(void **state)
{
	struct counts c = file_of("a", 70, 1);

	(void)state;
	counts_add(&c, 20, 0, 0, 5);
	counts_add(&c, 70, 0, 0, 2);
	counts_sort(&c);
	assert_int_equal(c.n_rows, 2);
	assert_int_equal(c.rows[0].offset, 20);
	assert_int_equal(c.rows[1].count, 3);
	/* It still grows. */
	for (uint64_t i = 0; i < 100; i++)
		counts_add(&c, i, 0, 0, 1);
	counts_sort(&c);
	assert_int_equal(c.n_rows, 100);
	counts_free(&c);
}

/* Each side numbers processes in its own order. */
static void merging_goes_by_names(void **state)
{
	struct counts a = file_of("one", 1, 10), b = file_of("two", 1, 100);
	uint32_t who = counts_who(&b, "one", "/a", "host");

	(void)state;
	counts_add(&b, 1, who, 0, 1000);
	counts_sort(&b);
	counts_merge(&a, &b);
	assert_int_equal(a.n_rows, 2);
	assert_int_equal(sum_of(&a, "one"), 1010);
	assert_int_equal(sum_of(&a, "two"), 100);
	counts_free(&a);
	counts_free(&b);
}

/* Ten thousand processes: each is found again, and comes back from a file. */
static void many_processes(void **state)
{
	struct counts a = file_of("one", 1, 10), b;
	unsigned char *bytes;
	char name[16];
	size_t n;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		assert_int_equal(counts_who(&a, name, "/", "h"), i + 1);
		counts_add(&a, 7, (uint32_t)i + 1, 0, 1);
	}
	assert_int_equal(counts_who(&a, "p77", "/", "h"), 78);
	counts_sort(&a);
	bytes = counts_encode(&a, &n);
	assert_int_equal(counts_decode(bytes, n, &b, NULL), 0);
	assert_int_equal(b.n_who, 10001);
	counts_merge(&b, &a);
	assert_int_equal(b.n_who, 10001);
	assert_int_equal(b.n_rows, 10001);
	free(bytes);
	counts_free(&a);
	counts_free(&b);
}

static double cpu_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What it takes to read a file with that many events or processes: the least of some. */
static double reading_takes(const char *const *names, int n, bool events)
{
	struct counts a = file_of("one", 1, 10), b;
	double least = 1e9;
	unsigned char *bytes;
	size_t size;

	for (int i = 0; i < n; i++) {
		if (events)
			assert_int_equal(counts_event(&a, names[i], 1), i + 1);
		else
			assert_int_equal(counts_who(&a, names[i], "", ""), i + 1);
	}
	bytes = counts_encode(&a, &size);
	for (int i = 0; i < 5; i++) {
		double begin = cpu_s();

		assert_int_equal(counts_decode(bytes, size, &b, NULL), 0);
		least = cpu_s() - begin < least ? cpu_s() - begin : least;
		counts_free(&b);
	}
	free(bytes);
	counts_free(&a);
	return least;
}

/* In names that a file may have: @n of the form of a number, all in one slot of FNV-1a if @collide.
 */
static void make_names(char **names, int n, uint64_t slots, bool collide)
{
	uint64_t number = 0;

	for (int i = 0; i < n;) {
		uint64_t hash = 0xcbf29ce484222325;
		char name[24];
		int size = snprintf(name, sizeof(name), "%llu", (unsigned long long)number++);

		/* With the ends of this name and of two that are empty. */
		for (int k = 0; k < size + 3; k++)
			hash = (hash ^ (k < size ? (unsigned char)name[k] : 0)) * 0x100000001b3;
		if (collide && (hash ^ hash >> 32) % slots)
			continue;
		names[i] = strdup(name);
		assert_non_null(names[i++]);
	}
}

static void free_names(char **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
}

/* Eight times as much takes 8 times as long, and somewhat more where caches are small; quadratic
 * time would be 64. What else the machine does can be in the way of the larger one thrice. */
static void time_grows_with_size(void **state)
{
	static char *names[8000];

	(void)state;
	/* What is freed is kept: to get pages again takes longer than to read what comes into them.
	 */
	(void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
	make_names(names, 8000, 1, false);
	for (int events = 0; events < 2; events++) {
		double one = reading_takes((const char *const *)names, 1000, events);
		double two = reading_takes((const char *const *)names, 8000, events);

		for (int i = 0; i < 3 && two > 24 * one; i++)
			two = reading_takes((const char *const *)names, 8000, events);
		if (two > 24 * one)
			fail_msg("%s: %g s, of eight times as many %g s",
				 events ? "events" : "processes", one, two);
	}
	free_names(names, 8000);
}

/* Whatever they are called. */
static void names_cannot_collide(void **state)
{
	static char *usual[1500], *chosen[1500];
	double as_usual, as_chosen;

	(void)state;
	make_names(usual, 1500, 1, false);
	make_names(chosen, 1500, 4096, true);
	as_usual = reading_takes((const char *const *)usual, 1500, false);
	as_chosen = reading_takes((const char *const *)chosen, 1500, false);
	if (as_chosen > 4 * as_usual)
		fail_msg("%g s, of names that were chosen %g s", as_usual, as_chosen);
	free_names(usual, 1500);
	free_names(chosen, 1500);
}

/* Of each host the processes with the most samples stay. */
static void the_lightest_processes_become_one(void **state)
{
	struct counts a = file_of("heavy", 1, 1000), c;
	uint32_t other;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		char name[16];
		uint32_t who;

		(void)snprintf(name, sizeof(name), "p%d", i);
		who = counts_who(&a, name, "/", i % 3 ? "one" : "two");
		counts_add(&a, 7, who, 0, i < 10 ? 50 : 1);
	}
	counts_sort(&a);
	counts_bound_who(&a);
	assert_int_equal(counts_samples(&a), 1000 + 10 * 50 + 2990);
	assert_int_equal(sum_of(&a, "heavy"), 1000);
	assert_int_equal(sum_of(&a, "p9"), 50);
	assert_int_equal(sum_of(&a, "[other]"), 2000 - 1023);
	other = counts_who(&a, "[other]", "", "one");
	assert_true(other < 1 + 1000 + COUNTS_MOST_WHO);
	assert_int_equal(a.n_who, 1 + 1000 + COUNTS_MOST_WHO);
	/* It is a sound file. */
	{
		unsigned char *bytes;
		size_t n;

		bytes = counts_encode(&a, &n);
		assert_int_equal(counts_decode(bytes, n, &c, NULL), 0);
		free(bytes);
	}
	counts_free(&c);
	counts_free(&a);
}

/* More samples than anyone takes in a thousand years are a forgery. */
static void sums_do_not_overflow(void **state)
{
	struct counts a = file_of("one", 1, UINT64_MAX), b = file_of("one", 1, UINT64_MAX);
	unsigned char *bytes;
	size_t n;

	(void)state;
	counts_merge(&a, &b);
	assert_int_equal(a.rows[0].count, UINT64_MAX);
	counts_add(&a, 2, 0, 0, 5);
	assert_int_equal(counts_samples(&a), UINT64_MAX);
	bytes = counts_encode(&b, &n);
	counts_free(&b);
	assert_int_equal(counts_decode(bytes, n, &b, NULL), -EINVAL);
	free(bytes);
	counts_free(&a);
}

static void forgets_whose_they_were(void **state)
{
	struct counts a = file_of("one", 1, 10), b = file_of("two", 1, 100);

	(void)state;
	counts_merge(&a, &b);
	counts_forget_who(&a);
	assert_int_equal(a.n_rows, 1);
	assert_int_equal(a.rows[0].count, 110);
	counts_free(&a);
	counts_free(&b);
}

static void comes_back_as_it_was(void **state)
{
	struct counts a = file_of("one", 1ULL << 40, 10), b;
	unsigned char *bytes;
	size_t n;

	(void)state;
	counts_add(&a, 7, 0, 0, COUNTS_MOST_SAMPLES - 10);
	counts_sort(&a);
	bytes = counts_encode(&a, &n);
	assert_int_equal(counts_decode(bytes, n, &b, NULL), 0);
	assert_int_equal(b.n_rows, 2);
	assert_memory_equal(a.rows, b.rows, 2 * sizeof(*a.rows));
	assert_true(counts_same_image(&a.image, &b.image));
	assert_string_equal(b.who[0].cgroup, "/a");
	assert_int_equal(b.events[0].every, 10000000);
	assert_int_equal(b.begin_s, 3600);
	free(bytes);
	counts_free(&a);
	counts_free(&b);
}

/* Every bit, and every length: none is taken for a file. */
static void any_damage_is_seen(void **state)
{
	struct counts a = file_of("one", 12345, 10), b;
	struct error e = {0};
	unsigned char *bytes;
	size_t n;

	(void)state;
	bytes = counts_encode(&a, &n);
	for (size_t i = 0; i < 8 * n; i++) {
		bytes[i / 8] ^= (unsigned char)(1 << i % 8);
		assert_int_equal(counts_decode(bytes, n, &b, &e), -EINVAL);
		bytes[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(counts_decode(bytes, i, &b, &e), -EINVAL);
	assert_non_null(strstr(e.text, "damaged"));
	assert_int_equal(counts_decode(bytes, n, &b, &e), 0);
	free(bytes);
	counts_free(&a);
	counts_free(&b);
}

/* A sound checksum over what makes no sense. */
static void nonsense_is_refused(void **state)
{
	struct counts a = file_of("one", 5, 10), b;
	unsigned char *bytes;
	size_t n;

	(void)state;
	counts_add(&a, 4, 0, 0, 1); /* out of order */
	bytes = counts_encode(&a, &n);
	assert_int_equal(counts_decode(bytes, n, &b, NULL), -EINVAL);
	free(bytes);
	counts_sort(&a);
	a.rows[1].who = 1; /* there is none */
	bytes = counts_encode(&a, &n);
	assert_int_equal(counts_decode(bytes, n, &b, NULL), -EINVAL);
	free(bytes);
	a.rows[1].who = 0;
	free(a.image.build_id);
	a.image.build_id = strdup("../../etc"); /* it is part of a file's name */
	bytes = counts_encode(&a, &n);
	assert_int_equal(counts_decode(bytes, n, &b, NULL), -EINVAL);
	free(bytes);
	counts_free(&a);
}

static void builds_are_told_apart(void **state)
{
	static char other[] = "ff", elsewhere[] = "/opt/a";
	struct counts_image a = {COUNTS_FILE, path, build_id, 1, 2, 3}, b = a;

	(void)state;
	b.path = elsewhere;
	b.inode = 9;
	assert_true(counts_same_image(&a, &b)); /* one build, in two places */
	b.owner = 1000;
	assert_false(counts_same_image(&a, &b));
	b.owner = a.owner;
	b.build_id = other;
	assert_false(counts_same_image(&a, &b));
	a.build_id = b.build_id = nothing;
	assert_false(counts_same_image(&a, &b));
	b = a;
	assert_true(counts_same_image(&a, &b));
	b.changed_ns++;
	assert_false(counts_same_image(&a, &b));
	/* Two modules without build ids. */
	a.kind = b.kind = COUNTS_KERNEL;
	b.changed_ns--;
	assert_true(counts_same_image(&a, &b));
	b.path = elsewhere;
	assert_false(counts_same_image(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sorted_and_added),
		cmocka_unit_test(merging_goes_by_names),
		cmocka_unit_test(sums_do_not_overflow),
		cmocka_unit_test(the_lightest_processes_become_one),
		cmocka_unit_test(forgets_whose_they_were),
		cmocka_unit_test(many_processes),
		cmocka_unit_test(time_grows_with_size),
		cmocka_unit_test(names_cannot_collide),
		cmocka_unit_test(comes_back_as_it_was),
		cmocka_unit_test(any_damage_is_seen),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(builds_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
