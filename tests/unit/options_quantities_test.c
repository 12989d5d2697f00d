// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"
#include "cli/options/quantities.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

static const struct option_row row = {"value", 0, "V", NULL, NULL};

static uint64_t span(const char *text)
{
	uint64_t v = 0;

	return option_set_span(&v, &row, text, NULL) < 0 ? 0 : v;
}

static uint64_t size(const char *text)
{
	uint64_t v = 0;

	return option_set_size(&v, &row, text, NULL) < 0 ? 0 : v;
}

static void units(void **state)
{
	struct error e;
	uint64_t v;

	(void)state;
	assert_int_equal(span("90"), 90);
	assert_int_equal(span("90s"), 90);
	assert_int_equal(span("15m"), 900);
	assert_int_equal(span("30d"), 30 * 86400);
	assert_int_equal(size("1"), 1);
	assert_int_equal(size("2K"), 2048);
	assert_int_equal(size("3G"), 3ULL << 30);
	static const char *const bad[] = {"",
					  "d",
					  "0",
					  "0d",
					  "-1d",
					  "1x",
					  "1dd",
					  "1.5h",
					  " 1h",
					  "9999999999999999999",
					  "999999999999999999w"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(span(bad[i]), 0);
	assert_int_equal(size("10m"), 0);
	assert_int_equal(option_set_span(&v, &row, "soon", &e), -EINVAL);
	assert_string_equal(e.text, "--value 'soon': allowed are times such as 90s, 15m, 1h, 30d");
}

static void moments(void **state)
{
	uint64_t from = 0, to = 0;

	(void)state;
	assert_int_equal(option_range(NULL, "2026-11-27", &from, &to, NULL), 0);
	assert_int_equal(from, 1795737600);
	assert_int_equal(to - from, 86400);
	assert_int_equal(option_range(NULL, "2026-11-27T07", &from, &to, NULL), 0);
	assert_int_equal(from, 1795737600 + 7 * 3600);
	assert_int_equal(to - from, 3600);
	assert_int_equal(option_range(NULL, "2026-11-27T07:30..2026-11-28", &from, &to, NULL), 0);
	assert_int_equal(from, 1795737600 + 27000);
	assert_int_equal(to, 1795737600 + 2 * 86400);
	static const char *const bad[] = {"",
					  "..",
					  "2026",
					  "2026-11-27T",
					  "2026-11-28..2026-11-27",
					  "2026-13-01",
					  "2026-11-27T25",
					  "1h"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(option_range(NULL, bad[i], &from, &to, NULL), -EINVAL);
	assert_int_equal(option_set_since(&from, &row, "2026-11-27", NULL), 0);
	assert_int_equal(from, 1795737600);
	assert_int_equal(option_set_since(&from, &row, "2h", NULL), 0);
	assert_int_equal(option_set_since(&to, &row, "1h", NULL), 0);
	assert_uint_in_range(to - from, 3600, 3602);
	assert_int_equal(option_set_since(&to, &row, "yesterday", NULL), -EINVAL);
}

static char path[64];

static int setup(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/cozbpf-options-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	return close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_text(const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void files(void **state)
{
	static const char text[] = "# a comment\n\n  rate = 50  # another\nkeep=7d\r\nverbose\n";
	struct option_file f = {0};
	struct error e;

	(void)state;
	write_text(text, strlen(text));
	assert_int_equal(option_file_read(path, &f, NULL), 0);
	assert_int_equal(f.n, 4);
	assert_string_equal(f.words[0], path);
	assert_string_equal(f.words[1], "--rate=50");
	assert_string_equal(f.words[2], "--keep=7d");
	assert_string_equal(f.words[3], "--verbose");
	option_file_free(&f);
	write_text("a = 1\0\n", 7);
	assert_int_equal(option_file_read(path, &f, &e), -EINVAL);
	write_text("a = 1\n", 6);
	assert_int_equal(chmod(path, 0622), 0);
	assert_int_equal(option_file_read(path, &f, &e), -EPERM);
	assert_int_equal(option_file_read("/nonexistent/cozbpf", &f, &e), -ENOENT);
	assert_int_equal(option_file_read("/dev/null", &f, &e), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units),
		cmocka_unit_test(moments),
		cmocka_unit_test_setup_teardown(files, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
