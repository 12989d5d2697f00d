// SPDX-License-Identifier: BSD-2-Clause
/* The filter that names of others pass on their way to a terminal. */
#include "base/error.h"
#include "base/utf8.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void becomes(const char *name, bool utf8, const char *wanted)
{
	char *copy = strdup(name);

	assert_non_null(copy);
	utf8_make_printable(copy, utf8);
	assert_string_equal(copy, wanted);
	free(copy);
}

static void what_steers_a_terminal_is_replaced(void **state)
{
	(void)state;
	becomes("a\033[2J\n\r\tb\177", true, "a?[2J???b?");
	becomes("\xc2\x9b"
		"31m|\xc2\x80|\xc2\x9f|\u00a0|\xc2\x85",
		true, "?31m|?|?|\u00a0|?"); /* C1; CSI among them */
	becomes("\u200e\u200f\u061c", true, "???");
	becomes("\u202a\u202b\u202c\u202d\u202e", true, "?????");
	becomes("\u2066\u2067\u2068\u2069\u206a\u206f", true, "??????");
	becomes("\u2028\u2029", true, "??");
	becomes("\u200d\u2027\u202f\u2065\u2070\u061b\u061d", true,
		"\u200d\u2027\u202f\u2065\u2070\u061b\u061d");
}

static void text_stays(void **state)
{
	(void)state;
	becomes("", true, "");
	becomes("na\u00efve_\u5de5\u4f5c_\U0001f600.c:12", true,
		"na\u00efve_\u5de5\u4f5c_\U0001f600.c:12");
	becomes("na\u00efve", false, "na?ve");
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
	(void)state;
	becomes("\x9b"
		"31m",
		true, "?31m"); /* CSI of a terminal that takes bytes */
	becomes("\xc3", true, "?");
	becomes("a\xe2\x80", true, "a??");
	becomes("\xc0\x9b\xed\xa0\x80\xf8", true, "??????");
}

/* cmocka has a macro of the name fail: hence the parentheses. */
static void messages_do_not_steer(void **state)
{
	char name[sizeof(((struct error *)NULL)->text)];
	struct error e;

	(void)state;
	assert_int_equal((fail)(&e, ENOENT, "%s: no",
				"a\033[2J\n\xc2\x9b"
				"31m\u202e\x9b\u00ef"),
			 -ENOENT);
	assert_string_equal(e.text, "a?[2J??31m??\u00ef: no");
	/* The cut halves the character at the end. */
	(void)memset(name, 'a', sizeof(name));
	name[sizeof(name) - 2] = '\0';
	(void)(fail)(&e, EINVAL, "%s\u5de5", name);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_string_equal(e.text + sizeof(e.text) - 3, "a?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_steers_a_terminal_is_replaced),
		cmocka_unit_test(text_stays),
		cmocka_unit_test(bytes_that_are_no_text_are_replaced),
		cmocka_unit_test(messages_do_not_steer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
