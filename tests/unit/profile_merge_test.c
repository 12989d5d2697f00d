// SPDX-License-Identifier: BSD-2-Clause
#include "profile/merge.h"
#include "profile/same.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void read_text(struct profile *p, const char *text)
{
	assert_int_equal(profile_read_buffer(p, text, strlen(text), "text", NULL), 0);
}

static uint64_t samples_of(const struct profile *p, const char *location)
{
	const struct profile_samples *s = profile_find_samples(p, location);

	return s ? s->count : 0;
}

static void everything_moves(void **state)
{
	struct profile all = {0}, one = {0}, two = {0};

	(void)state;
	assert_null(profile_find_samples(&all, "a.c:1"));
	read_text(&one, "{\"type\":\"startup\",\"time\":1}\n"
			"{\"type\":\"experiment\",\"selected\":\"a.c:1\",\"speedup\":0,"
			"\"duration\":5,\"selected_samples\":1}\n"
			"{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":1}\n"
			"{\"type\":\"runtime\",\"time\":10}\n{\"type\":\"samples\",\"location\":"
			"\"a.c:1\",\"count\":3,\"ns\":30}\n"
			"{\"type\":\"samples\",\"location\":\"c.c:1\",\"count\":3,\"ns\":30}\n"
			"{\"type\":\"elsewhere\",\"object\":\"/l\",\"count\":2}\n"
			"{\"type\":\"addresses\",\"path\":\"a\",\"counts\":\"1:1\"}\n");
	read_text(&two, "{\"type\":\"startup\",\"time\":2}\n"
			"{\"type\":\"experiment\",\"selected\":\"b.c:1\",\"speedup\":0.5,"
			"\"duration\":6,\"selected_samples\":1}\n"
			"no record\n{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":1}\n"
			"{\"type\":\"runtime\",\"time\":20,\"unattributed\":3}\n{\"type\":"
			"\"samples\",\"location\":\"b.c:1\",\"count\":4}\n"
			"{\"type\":\"samples\",\"location\":\"c.c:1\",\"count\":4}\n"
			"{\"type\":\"samples\",\"location\":\"a.c:1\",\"count\":5,\"ns\":100,"
			"\"inlined\":\"2\\ta.c:1\\tb.c:9\\n\",\"object\":\"/bin/a\"}\n"
			"{\"type\":\"elsewhere\",\"object\":\"/m\",\"count\":3,"
			"\"location\":\"b.c:1\"}\n"
			"{\"type\":\"addresses\",\"path\":\"b\",\"counts\":\"1:1\"}\n");
	profile_merge(&all, &one);
	profile_merge(&all, &two);
	assert_int_equal(one.n_runs + one.n_experiments + one.n_samples + two.n_experiments, 0);
	assert_null(two.experiments);
	assert_int_equal(all.n_runs, 2);
	assert_int_equal(all.runs[1].time, 2);
	assert_int_equal(all.n_experiments, 2);
	assert_int_equal(all.experiments[0].run, 0);
	assert_int_equal(all.experiments[1].run, 1);
	assert_string_equal(all.experiments[1].x.selected, "b.c:1");
	assert_int_equal(all.runtime_ns, 30);
	assert_int_equal(all.n_samples, 3);
	assert_int_equal(samples_of(&all, "a.c:1"), 8);
	assert_int_equal(samples_of(&all, "b.c:1"), 4);
	assert_null(profile_find_samples(&all, "a.c:2"));
	/* Times are known if they are of both. */
	assert_int_equal(profile_find_samples(&all, "a.c:1")->ns, 130);
	assert_int_equal(profile_find_samples(&all, "c.c:1")->ns, 0);
	/* What shares are of. */
	assert_int_equal(all.sampled, 19);
	assert_int_equal(all.unattributed, 3);
	assert_string_equal(all.samples[0].inlined, "2\ta.c:1\tb.c:9\n");
	assert_string_equal(all.samples[0].object, "/bin/a");
	assert_int_equal(all.n_elsewhere, 2);
	assert_null(all.elsewhere[0].location);
	assert_int_equal(all.elsewhere[0].count, 2);
	assert_string_equal(all.elsewhere[1].location, "b.c:1");
	assert_string_equal(all.elsewhere[1].object, "/m");
	assert_int_equal(all.n_addresses, 2);
	assert_string_equal(all.addresses[1].path, "b");
	assert_int_equal(one.n_addresses, 0);
	assert_int_equal(all.bad_lines, 1);
	assert_int_equal(all.first_bad_line, 3);
	/* An empty one changes nothing. */
	profile_merge(&all, &two);
	assert_int_equal(all.n_experiments, 2);
	profile_free(&all);
}

static double cpu_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A profile of @n runs, each with a point of its own if @many. */
static char *many_runs(int n, bool many)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (int i = 0; i < n; i++)
		(void)fprintf(f,
			      "{\"type\":\"startup\",\"time\":1,\"cozbpf\":{\"build\":\"b\"}}\n"
			      "{\"type\":\"experiment\",\"selected\":\"a.c:1\",\"speedup\":0,"
			      "\"duration\":5,\"selected_samples\":1}\n"
			      "{\"type\":\"throughput-point\",\"name\":\"p%d\",\"delta\":1}\n",
			      many ? i : 0);
	(void)fclose(f);
	return text;
}

static double comparing_takes(int n, bool many)
{
	struct profile a = {0}, b = {0};
	char *text = many_runs(n, many);
	double least = 1e9;

	read_text(&a, text);
	read_text(&b, text);
	free(text);
	for (int i = 0; i < 5; i++) {
		double begin = cpu_s();

		assert_int_equal(profile_check_same(&a, "a", &b, "b", NULL), 0);
		least = cpu_s() - begin < least ? cpu_s() - begin : least;
	}
	profile_free(&a);
	profile_free(&b);
	return least;
}

/* Eight times as much takes 8 times as long, and somewhat more where caches are small; quadratic
 * time would be 64. What else the machine does can be in the way of the larger one thrice. */
static void time_grows_with_size(void **state)
{
	(void)state;
	for (int many = 0; many < 2; many++) {
		double one = comparing_takes(1250, many), two = comparing_takes(10000, many);

		for (int i = 0; i < 3 && two > 24 * one; i++)
			two = comparing_takes(10000, many);
		if (two > 24 * one)
			fail_msg("%s: %g s, of eight times as many %g s", many ? "points" : "runs",
				 one, two);
	}
}

static void differences_are_found(void **state)
{
	static const char *const texts[] = {
		"{\"type\":\"startup\",\"time\":1,\"cozbpf\":{\"build\":\"b\"}}\n"
		"{\"type\":\"startup\",\"time\":1,\"cozbpf\":{\"build\":\"c\"}}\n",
		"{\"type\":\"startup\",\"time\":1,\"cozbpf\":{\"build\":\"b\"}}\n",
		"{\"type\":\"startup\",\"time\":1}\n",
	};
	struct profile two = {0}, one = {0}, none = {0};

	(void)state;
	read_text(&two, texts[0]);
	read_text(&one, texts[1]);
	read_text(&none, texts[2]);
	assert_int_equal(profile_check_same(&two, "a", &one, "b", NULL), -EINVAL);
	assert_int_equal(profile_check_same(&one, "a", &two, "b", NULL), -EINVAL);
	assert_int_equal(profile_check_same(&two, "a", &two, "b", NULL), -EINVAL);
	assert_int_equal(profile_check_same(&one, "a", &one, "b", NULL), 0);
	assert_int_equal(profile_check_same(&none, "a", &two, "b", NULL), 0);
	assert_int_equal(profile_check_same(&two, "a", &none, "b", NULL), 0);
	profile_free(&two);
	profile_free(&one);
	profile_free(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_moves),
		cmocka_unit_test(time_grows_with_size),
		cmocka_unit_test(differences_are_found),
	};

	return cmocka_run_group_tests_name("profile merge", tests, NULL, NULL);
}
