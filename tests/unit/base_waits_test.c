// SPDX-License-Identifier: BSD-2-Clause
#include "base/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void kinds_have_names(void **state)
{
	(void)state;
	assert_true(WAIT_KINDS >= 2);
	for (unsigned int kind = 1; kind < WAIT_KINDS; kind++)
		assert_int_equal(wait_named(wait_name(kind), strlen(wait_name(kind))), kind);
	assert_int_equal(wait_named("disk", 3), 0);
	assert_int_equal(wait_named("disks", 5), 0);
	assert_int_equal(wait_named("", 0), 0);
}

static void targets_are_read(void **state)
{
	unsigned int disk = wait_named("disk", 4);
	size_t place = 99;

	(void)state;
	assert_int_equal(wait_of("src/queue.c:88 [disk]", &place), disk);
	assert_int_equal(place, strlen("src/queue.c:88"));
	assert_int_equal(wait_of("operator[](int) [disk]", &place), disk);
	assert_int_equal(place, strlen("operator[](int)"));
	assert_int_equal(wait_of("[disk]", &place), disk);
	assert_int_equal(place, 0);
	assert_int_equal(wait_of("a [b] [disk]", NULL), disk);
}

static void others_are_none(void **state)
{
	static const char *const others[] = {"",
					     "src/queue.c:88",
					     "do_fork [kernel]",
					     "queue.c:88[disk]",
					     " [disk]",
					     "queue.c:88 [disk",
					     "x [disk] ",
					     "x []",
					     "]",
					     "[",
					     "x [di]"};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		size_t place = 99;

		assert_int_equal(wait_of(others[i], &place), 0);
		assert_int_equal(place, 99);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_have_names),
		cmocka_unit_test(targets_are_read),
		cmocka_unit_test(others_are_none),
	};

	return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
