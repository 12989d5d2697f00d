// SPDX-License-Identifier: BSD-2-Clause
/* The buckets of durations (shared/histogram.h), compiled natively as BPF compiles them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/histogram.h"

static void logarithm_is_of_the_highest_bit(void **state)
{
	(void)state;
	for (unsigned int e = 0; e < 64; e++) {
		assert_int_equal(histogram_log2(1ULL << e), e);
		assert_int_equal(histogram_log2(UINT64_MAX >> (63 - e)), e);
	}
}

/* Each bucket begins where the one before it ends, and its own bounds fall into it. */
static void buckets_are_without_gaps(void **state)
{
	uint64_t next = 0;

	(void)state;
	for (unsigned int b = 0; b < HISTOGRAM_BUCKETS; b++) {
		uint64_t low = histogram_low(b), width = histogram_width(b);

		assert_int_equal(low, next);
		assert_int_equal(histogram_bucket(low), b);
		assert_int_equal(histogram_bucket(low + width - 1), b);
		assert_int_equal(histogram_bucket(low + width / 2), b);
		next = low + width;
	}
	assert_int_equal(next, 1ULL << HISTOGRAM_BITS);
}

static void buckets_are_narrow(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < HISTOGRAM_BUCKETS; b++) {
		if (histogram_low(b) < 2 * HISTOGRAM_SUB)
			assert_int_equal(histogram_width(b), 1);
		else
			assert_true(histogram_width(b) * HISTOGRAM_SUB <= histogram_low(b));
	}
}

/* Worked out by hand: 1 ms is 2^19 * 1.907; of 128 parts of that octave it is in number 116. */
static void known_durations(void **state)
{
	(void)state;
	assert_int_equal(histogram_bucket(0), 0);
	assert_int_equal(histogram_bucket(127), 127);
	assert_int_equal(histogram_bucket(255), 255);
	assert_int_equal(histogram_bucket(256), 256);
	assert_int_equal(histogram_bucket(257), 256);
	assert_int_equal(histogram_bucket(258), 257);
	assert_int_equal(histogram_bucket(1000000), (19 - 6) * 128 + 116);
	assert_int_equal(histogram_low((19 - 6) * 128 + 116), 999424);
	assert_int_equal(histogram_width((19 - 6) * 128 + 116), 4096);
}

static void too_long_ones_are_in_the_last(void **state)
{
	(void)state;
	assert_int_equal(histogram_bucket((1ULL << HISTOGRAM_BITS) - 1), HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_bucket(1ULL << HISTOGRAM_BITS), HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logarithm_is_of_the_highest_bit),
		cmocka_unit_test(buckets_are_without_gaps),
		cmocka_unit_test(buckets_are_narrow),
		cmocka_unit_test(known_durations),
		cmocka_unit_test(too_long_ones_are_in_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
