// SPDX-License-Identifier: BSD-2-Clause
/* What a latency point measured, in a file: written and read again, and what a hostile file may
 * say. */
#include "profile/reader.h"
#include "base/error.h"
#include "profile/writer.h"
#include "shared/histogram.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPERIMENT \
	"{\"type\":\"experiment\",\"selected\":\"a.c:1\",\"speedup\":0,\"duration\":500}\n"
#define COUNTS "\"arrivals\":5,\"departures\":4,\"difference\":1"
#define MEASURED                                                                            \
	"\"sum_ns\":-7,\"unmatched\":1,\"unended\":2,\"crossed\":3,\"lost\":4,\"in_flight_" \
	"begin\":5,\"in_flight_end\":6"
#define POINT(more) EXPERIMENT "{\"type\":\"latency-point\",\"name\":\"l\"," COUNTS "," more "}\n"

/* The latency point of a file of one experiment; NULL if it has none that measured. The profile is
 * the caller's. */
static const struct profile_latency *read_one(struct profile *p, const char *text)
{
	struct error e = {""};

	*p = (struct profile){0};
	if (profile_read_buffer(p, text, strlen(text), "t", &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(p->bad_lines, 0);
	assert_int_equal(p->n_experiments, 1);
	assert_int_equal(p->experiments[0].n_points, 1);
	assert_int_equal(p->experiments[0].points[0].departures, 4);
	return p->experiments[0].points[0].latency;
}

static void round_trip(void **state)
{
	struct profile_bucket buckets[] = {{0, 1}, {489, UINT64_MAX}, {HISTOGRAM_BUCKETS - 1, 3}};
	struct profile_latency l = {.sum_ns = INT64_MIN,
				    .unmatched = UINT64_MAX,
				    .unended = 1,
				    .crossed = 2,
				    .lost = 3,
				    .in_flight_begin = -4,
				    .in_flight_end = 5,
				    .buckets = buckets,
				    .n_buckets = 3};
	struct profile_point point = {
		.kind = PROFILE_LATENCY, .name = (char *)"l", .departures = 9, .latency = &l};
	struct profile_experiment x = {.selected = (char *)"a.c:1", .duration = 5};
	struct profile_startup s = {.time = 1};
	char directory[] = "/tmp/cozbpf-latency.XXXXXX", path[64];
	const struct profile_latency *got;
	struct profile_writer *w;
	struct profile p = {0};
	struct error e = {""};

	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/p", directory);
	assert_int_equal(profile_writer_open(path, (uid_t)-1, (gid_t)-1, &w, &e), 0);
	assert_int_equal(profile_write_startup(w, &s), 0);
	assert_int_equal(profile_write_experiment(w, &x, &point, 1), 0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_int_equal(profile_read(&p, path, &e), 0);
	(void)unlink(path);
	(void)rmdir(directory);
	got = p.experiments[0].points[0].latency;
	assert_non_null(got);
	assert_true(got->sum_ns == INT64_MIN && got->unmatched == UINT64_MAX && got->unended == 1 &&
		    got->crossed == 2 && got->lost == 3 && got->in_flight_begin == -4 &&
		    got->in_flight_end == 5);
	assert_int_equal(got->n_buckets, 3);
	assert_int_equal(got->buckets[1].bucket, 489);
	/* JSON's integers end at 2^63 in some readers; ours takes all of it. */
	assert_true(got->buckets[1].count == UINT64_MAX);
	assert_int_equal(got->buckets[2].count, 3);
	profile_free(&p);
}

static void read_in_any_order(void **state)
{
	const struct profile_latency *l;
	struct profile p;

	(void)state;
	l = read_one(&p, POINT("\"" HISTOGRAM_KEY "\":{\"70\":2,\"8\":1,\"9\":0}," MEASURED));
	assert_non_null(l);
	assert_int_equal(l->sum_ns, -7);
	assert_int_equal(l->in_flight_end, 6);
	assert_int_equal(l->n_buckets, 2);
	assert_int_equal(l->buckets[0].bucket, 8);
	assert_int_equal(l->buckets[1].bucket, 70);
	assert_int_equal(l->buckets[1].count, 2);
	profile_free(&p);
}

/* Worked out by hand: of 32 parts to a power of two, 70 is 76 and 77 ns, 511 is [1032192, 1048576)
 * ns, 1215 ends at 2^42. */
static void coarse_ones_are_read(void **state)
{
	const struct profile_latency *l;
	struct profile p;

	(void)state;
	l = read_one(&p, POINT("\"histogram\":{\"70\":2,\"8\":1,\"511\":7,\"1215\":3}," MEASURED));
	assert_non_null(l);
	assert_int_equal(l->n_buckets, 4);
	assert_int_equal(l->buckets[0].bucket, 8);
	assert_int_equal(l->buckets[1].bucket, histogram_bucket(77));
	assert_int_equal(l->buckets[2].bucket, histogram_bucket((1032192 + 1048576) / 2));
	assert_int_equal(l->buckets[2].count, 7);
	assert_int_equal(l->buckets[3].bucket, HISTOGRAM_BUCKETS - 2);
	profile_free(&p);
}

/* The counters are Coz's and stay; what was measured is whole or not there. */
static void malformed_is_absent(void **state)
{
	static const char *const texts[] = {
		POINT("\"x\":1"),
		POINT(MEASURED),
		POINT("\"histogram\":{\"8\":1}"),
		POINT("\"histogram\":[1,2]," MEASURED),
		POINT("\"histogram\":null," MEASURED),
		POINT("\"histogram\":{\"1216\":1}," MEASURED),
		POINT("\"histogram\":{\"4294967296\":1}," MEASURED),
		POINT("\"" HISTOGRAM_KEY "\":{\"4608\":1}," MEASURED),
		POINT("\"" HISTOGRAM_KEY "\":7,\"histogram\":{\"8\":1}," MEASURED),
		POINT("\"histogram\":{\"-1\":1}," MEASURED),
		POINT("\"histogram\":{\"01\":1}," MEASURED),
		POINT("\"histogram\":{\"\":1}," MEASURED),
		POINT("\"histogram\":{\"8x\":1}," MEASURED),
		POINT("\"histogram\":{\"8\":-1}," MEASURED),
		POINT("\"histogram\":{\"8\":1.5}," MEASURED),
		POINT("\"histogram\":{\"8\":\"1\"}," MEASURED),
		POINT("\"histogram\":{\"8\":null}," MEASURED),
		POINT("\"histogram\":{\"8\":1},\"sum_ns\":1"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct profile p;

		if (read_one(&p, texts[i]))
			fail_msg("accepted: %s", texts[i]);
		profile_free(&p);
	}
}

static void copies_are_their_own(void **state)
{
	struct profile p;
	const struct profile_latency *l = read_one(&p, POINT("\"histogram\":{\"8\":1}," MEASURED));
	struct profile_latency *copy = profile_latency_copy(l);

	(void)state;
	profile_free(&p);
	assert_non_null(copy);
	assert_int_equal(copy->unended, 2);
	assert_int_equal(copy->buckets[0].bucket, 8);
	profile_latency_free(copy);
	assert_null(profile_latency_copy(NULL));
	profile_latency_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),		cmocka_unit_test(read_in_any_order),
		cmocka_unit_test(coarse_ones_are_read), cmocka_unit_test(malformed_is_absent),
		cmocka_unit_test(copies_are_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
