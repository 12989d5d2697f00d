// SPDX-License-Identifier: BSD-2-Clause
#include "profile/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
			"{\"type\":\"experiment\",\"selected\":\"a.c:1\",\"speedup\":0,\"duration\":5,\"selected_samples\":1}\n"
			"{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":1}\n"
			"{\"type\":\"runtime\",\"time\":10}\n{\"type\":\"samples\",\"location\":\"a.c:1\",\"count\":3,\"ns\":30}\n"
			"{\"type\":\"samples\",\"location\":\"c.c:1\",\"count\":3,\"ns\":30}\n"
			"{\"type\":\"addresses\",\"path\":\"a\",\"counts\":\"1:1\"}\n");
	read_text(&two, "{\"type\":\"startup\",\"time\":2}\n"
			"{\"type\":\"experiment\",\"selected\":\"b.c:1\",\"speedup\":0.5,\"duration\":6,\"selected_samples\":1}\n"
			"no record\n{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":1}\n"
			"{\"type\":\"runtime\",\"time\":20,\"unattributed\":3}\n{\"type\":\"samples\",\"location\":\"b.c:1\",\"count\":4}\n"
			"{\"type\":\"samples\",\"location\":\"c.c:1\",\"count\":4}\n"
			"{\"type\":\"samples\",\"location\":\"a.c:1\",\"count\":5,\"ns\":100,\"inlined\":\"2\\ta.c:1\\tb.c:9\\n\"}\n"
			"{\"type\":\"addresses\",\"path\":\"b\",\"counts\":\"1:1\"}\n");
	assert_int_equal(profile_merge(&all, &one), 0);
	assert_int_equal(profile_merge(&all, &two), 0);
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
	assert_int_equal(all.n_addresses, 2);
	assert_string_equal(all.addresses[1].path, "b");
	assert_int_equal(one.n_addresses, 0);
	assert_int_equal(all.bad_lines, 1);
	assert_int_equal(all.first_bad_line, 3);
	/* An empty one changes nothing. */
	assert_int_equal(profile_merge(&all, &two), 0);
	assert_int_equal(all.n_experiments, 2);
	profile_free(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_moves),
	};

	return cmocka_run_group_tests_name("profile merge", tests, NULL, NULL);
}
