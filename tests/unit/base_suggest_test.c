// SPDX-License-Identifier: BSD-2-Clause
#include "base/suggest.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void distances(void **state)
{
	static const struct {
		const char *a, *b;
		size_t distance;
	} cases[] = {
		{"", "", 0},	     {"", "abc", 3},	    {"run", "run", 0},
		{"Run", "rUN", 0},   {"rnu", "run", 1},	    {"repotr", "report", 1},
		{"lst", "list", 1},  {"chekc", "check", 1}, {"kitten", "sitting", 3},
		{"flaw", "lawn", 2}, {"ca", "abc", 3}, /* optimal string alignment, not full Damerau
							*/
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(edit_distance(cases[i].a, cases[i].b), cases[i].distance);
		assert_int_equal(edit_distance(cases[i].b, cases[i].a), cases[i].distance);
	}
}

static void long_words(void **state)
{
	char a[200], b[200];

	(void)state;
	memset(a, 'a', sizeof(a));
	a[199] = '\0';
	memset(b, 'b', sizeof(b));
	b[128] = '\0';
	assert_int_equal(edit_distance(a, b), 128);
	assert_int_equal(edit_distance(a, a + 50), 0);
	assert_int_equal(edit_distance(a + 150, a + 140), 10);
}

static void suggestions(void **state)
{
	static const char *const words[] = {"run", "report", "check", "list", NULL};

	(void)state;
	assert_string_equal(suggest("rum", words), "run");
	assert_string_equal(suggest("reprot", words), "report");
	assert_string_equal(suggest("chek", words), "check");
	assert_string_equal(suggest("RUN", words), "run");
	assert_string_equal(suggest("rep", words), "report");
	assert_null(suggest("r", words));
	assert_null(suggest("", words));
	assert_null(suggest("frobnicate", words));
	assert_null(suggest("system", words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances),
		cmocka_unit_test(long_words),
		cmocka_unit_test(suggestions),
	};

	return cmocka_run_group_tests_name("suggest", tests, NULL, NULL);
}
