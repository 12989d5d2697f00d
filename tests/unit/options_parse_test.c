// SPDX-License-Identifier: BSD-2-Clause
/* Where options may stand. */
#include "base/error.h"
#include "cli/options/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 12

struct taken {
	bool flag;
	const char *value;
};

static int set_value(void *target, const struct option_row *row, const char *value, struct error *e)
{
	(void)row, (void)e;
	((struct taken *)target)->value = value;
	return 0;
}

static const struct option_row rows[] = {
	{"flag", 'f', NULL, "a flag", option_flag, offsetof(struct taken, flag)},
	{"value", 'v', "V", "a value", set_value},
	{NULL},
};

static char *argv[MAX_WORDS + 1];

/* Splits @line at blanks. Returns the words after the options, joined by blanks (the caller's);
 * NULL: refused, with @e. */
static char *rest_of(const char *line, bool before, struct taken *ret, struct error *e)
{
	static char copy[128];
	char *rest = copy, *joined = calloc(1, sizeof(copy));
	int argc = 0, first;

	assert_true(strlen(line) < sizeof(copy));
	memcpy(copy, line, strlen(line) + 1);
	while (rest && argc < MAX_WORDS)
		argv[argc++] = strsep(&rest, " ");
	argv[argc] = NULL;
	*ret = (struct taken){};
	if ((before ? options_parse_before : options_parse)(rows, ret, argc, argv, &first, e) < 0) {
		free(joined);
		return NULL;
	}
	for (int i = first; i < argc; i++) {
		(void)strcat(joined, argv[i]);
		(void)strcat(joined, i + 1 < argc ? " " : "");
	}
	return joined;
}

static void expect(const char *line, bool before, const char *rest, bool flag, const char *value)
{
	struct error e = {};
	struct taken t;
	char *words = rest_of(line, before, &t, &e);

	if (!words)
		fail_msg("%s: %s", line, e.text);
	assert_string_equal(words, rest);
	assert_int_equal(t.flag, flag);
	if (value)
		assert_string_equal(t.value, value);
	else
		assert_null(t.value);
	free(words);
}

static void options_stand_anywhere(void **state)
{
	(void)state;
	expect("x", false, "", false, NULL);
	expect("x a b", false, "a b", false, NULL);
	expect("x -f -v 1 a b", false, "a b", true, "1");
	expect("x a -f b --value 1", false, "a b", true, "1");
	expect("x a b -fv1", false, "a b", true, "1");
	expect("x a --value=1 b c -f d", false, "a b c d", true, "1");
	expect("x a - b", false, "a - b", false, NULL);
	expect("x a -f -- b -v 1", false, "a b -v 1", true, NULL);
	expect("x -- -f", false, "-f", false, NULL);
}

static void a_command_has_its_own(void **state)
{
	(void)state;
	expect("x -f a -v 1", true, "a -v 1", true, NULL);
	expect("x -f -- a --flag", true, "a --flag", true, NULL);
	expect("x -f --- a --flag", true, "a --flag", true, NULL);
}

static void the_wrong_one_is_named(void **state)
{
	static const struct {
		const char *line, *says;
	} all[] = {
		{"x a --flg", "unknown option '--flg'; did you mean --flag?"},
		{"x a -f --vale=1 b", "unknown option '--vale'; did you mean --value?"},
		{"x a -fx b", "unknown option '-x'"},
		{"x a b --value", "option '--value' needs a value: V"},
		{"x a b -v", "option '-v' needs a value: V"},
		{"x a --flag=1 b", "option '--flag' takes no value: '--flag=1'"},
		{"x a --- b", "unknown option"},
	};
	struct taken t;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct error e = {};

		assert_null(rest_of(all[i].line, false, &t, &e));
		if (!strstr(e.text, all[i].says))
			fail_msg("%s: %s", all[i].line, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_stand_anywhere),
		cmocka_unit_test(a_command_has_its_own),
		cmocka_unit_test(the_wrong_one_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
