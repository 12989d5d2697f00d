/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of a report, and what must be in it. */
#pragma once

#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* The caller's: free. */
static inline char *print(const struct profile *p, const struct report_options *o,
			  const struct report_hints *h)
{
	struct analysis a;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	analyse(p, 1, &a);
	report_print(f, p, &a, o, h);
	assert_int_equal(fclose(f), 0);
	analysis_free(&a);
	assert_non_null(text);
	return text;
}

static inline void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static inline void says_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" in:\n%s", part, text);
}

/* The row of a table that begins with @name, spaces squeezed. */
static inline void row_is(const char *text, const char *name, const char *expected)
{
	char row[512];
	const char *at = text;
	size_t n = 0;

	while (at && strncmp(at, name, strlen(name)) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	assert_non_null(at);
	for (; *at && *at != '\n' && n + 1 < sizeof(row); at++)
		if (*at != ' ' || (n && row[n - 1] != ' '))
			row[n++] = *at;
	while (n && row[n - 1] == ' ')
		n--;
	row[n] = '\0';
	assert_string_equal(row, expected);
}
