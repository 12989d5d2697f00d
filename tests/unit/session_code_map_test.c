// SPDX-License-Identifier: BSD-2-Clause
/* The code map of this process itself. */
#include "session/code_map.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NAME "session_code_map_test.c"

int code_map_test_work(volatile int *p);

enum { WORK_LINE = __LINE__ + 3 };
__attribute__((noinline)) int code_map_test_work(volatile int *p)
{
	*p = *p * 3 + 1;
	return *p;
}

static struct code_map *open_map(const struct code_scope *scope)
{
	struct code_map *m = NULL;
	struct error e = {0};
	bool changed = false;

	if (code_map_open("/proc/self/exe", scope, &m, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(code_map_refresh(m, getpid(), &changed, &e), 0);
	assert_true(changed);
	assert_int_equal(code_map_refresh(m, getpid(), &changed, &e), 0);
	assert_false(changed);
	return m;
}

static bool in_ranges(const struct code_map *m, const void *p)
{
	const struct addr_range *all;
	size_t n = code_map_ranges(m, &all);
	bool in = false;

	for (size_t i = 0; i < n; i++) {
		assert_true(all[i].lo < all[i].hi && (!i || all[i].lo > all[i - 1].hi));
		in |= (uintptr_t)p >= all[i].lo && (uintptr_t)p < all[i].hi;
	}
	return in;
}

static const void *work(void)
{
	return (const void *)(uintptr_t)code_map_test_work;
}

static const void *in_libc(void)
{
	return (const void *)(uintptr_t)getpid;
}

static void test_lines(void **state)
{
	struct code_map *m = open_map(&(struct code_scope){0});
	const char *line, *again, *function;
	struct addr_range some[8];
	char written[512];
	size_t n, k;

	(void)state;
	assert_true(in_ranges(m, work()));
	snprintf(written, sizeof(written), NAME ":%d", WORK_LINE);
	assert_int_equal(code_map_intervals(m, written, some, 8, &n), 0);
	assert_in_range(n, 1, 8);
	assert_true(some[0].lo >= (uintptr_t)work() && some[0].lo < (uintptr_t)work() + 64);
	assert_int_equal(code_map_name(m, some[0].lo, &line, &function), 0);
	assert_int_equal(code_map_name(m, some[0].hi - 1, &again, NULL), 0);
	assert_ptr_equal(line, again);
	assert_string_equal(function, "code_map_test_work");
	snprintf(written, sizeof(written), "/" NAME ":%d", WORK_LINE);
	assert_string_equal(line + strlen(line) - strlen(written), written);
	assert_int_equal(code_map_intervals(m, line, some, 8, &k), 0);
	assert_int_equal(k, n);
	assert_int_equal(code_map_intervals(m, "nowhere.c:1", some, 8, &n), -ENOENT);
	assert_int_equal(code_map_intervals(m, "nowhere", some, 8, &n), -ENOENT);
	assert_int_equal(code_map_name(m, 1, &line, NULL), -ENOENT);
	assert_non_null(code_map_main_lines(m));
	assert_int_equal(code_map_without_names(m, &line), 0);
	code_map_close(m);
}

static void test_sources(void **state)
{
	static const char *const only[] = {"unit/*code_map_test.c"}, *const without[] = {"!*code_map_test.c"};
	struct code_map *m = open_map(&(struct code_scope){.sources = only, .n_sources = 1});

	(void)state;
	assert_true(in_ranges(m, work()));
	assert_false(in_ranges(m, (const void *)(uintptr_t)code_map_open));
	code_map_close(m);
	m = open_map(&(struct code_scope){.sources = without, .n_sources = 1});
	assert_false(in_ranges(m, work()));
	assert_true(in_ranges(m, (const void *)(uintptr_t)code_map_open));
	code_map_close(m);
}

static void test_binaries(void **state)
{
	static const char *const both[] = {"MAIN", "libc.so*"}, *const excluded[] = {"*", "!libc.so*"};
	struct code_map *m = open_map(&(struct code_scope){.binaries = both, .n_binaries = 2});
	const struct elf_object *o;
	struct line_table *lines;
	struct error e = {0};

	(void)state;
	assert_true(in_ranges(m, work()));
	code_map_close(m);
	m = open_map(&(struct code_scope){.binaries = excluded, .n_binaries = 2});
	assert_true(in_ranges(m, work()));
	assert_int_equal(code_map_object(m, "libc.so.6", &o, &lines, &e), 0);
	assert_true(elf_object_has_symbols(o));
	assert_int_equal(code_map_object(m, "libnothing.so", &o, &lines, &e), -ENOENT);
	assert_non_null(strstr(e.text, "libnothing.so"));
	code_map_close(m);
}

static void test_functions(void **state)
{
	static const char *const both[] = {"MAIN", "libc.so*"};
	struct code_map *m = open_map(&(struct code_scope){.functions = true, .binaries = both, .n_binaries = 2});
	const char *name, *function;
	struct addr_range some[2];
	size_t n;

	(void)state;
	assert_int_equal(code_map_name(m, (uintptr_t)work() + 1, &name, &function), 0);
	assert_string_equal(name, "code_map_test_work");
	assert_ptr_equal(name, function);
	assert_int_equal(code_map_intervals(m, "code_map_test_work", some, 2, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(some[0].lo, (uintptr_t)work());
	assert_int_equal(code_map_intervals(m, "code_map_test_nothing", some, 2, &n), -ENOENT);
	if (in_ranges(m, in_libc())) { /* not where a sanitizer stands before it */
		assert_int_equal(code_map_name(m, (uintptr_t)in_libc(), &name, NULL), 0);
		assert_non_null(strstr(name, "getpid"));
	}
	code_map_close(m);
}

static void test_nothing_in_scope(void **state)
{
	static const char *const sources[] = {"nowhere.c"}, *const binaries[] = {"!*"};
	struct code_map *m = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(code_map_open("/proc/self/exe", &(struct code_scope){.sources = sources, .n_sources = 1}, &m, &e), -ENODATA);
	assert_non_null(strstr(e.text, "--source"));
	assert_int_equal(code_map_open("/proc/self/exe", &(struct code_scope){.binaries = binaries, .n_binaries = 1}, &m, &e), -ENODATA);
	assert_non_null(strstr(e.text, "--binary"));
	assert_int_equal(code_map_open("/nonexistent/program", &(struct code_scope){0}, &m, &e), -ENOENT);
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_binaries),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_nothing_in_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
