// SPDX-License-Identifier: BSD-2-Clause
#include "base/cleanup.h"
#include "base/error.h"
#include "points/point_find.h"
#include "program/code/map.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf_forged.h"

static void expect_text(const char *want, const char *got)
{
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
}

static void accepted_points(void **state)
{
	static const struct {
		const char *text;
		enum point_kind kind;
		const char *name, *binary, *function, *file;
		uint64_t offset;
		uint32_t line;
	} cases[] = {
		{"work", POINT_FUNCTION, "work", NULL, "work", NULL, 0, 0},
		{"done=work", POINT_FUNCTION, "done", NULL, "work", NULL, 0, 0},
		{"a.b-c_9=ns::f", POINT_FUNCTION, "a.b-c_9", NULL, "ns::f", NULL, 0, 0},
		{"ns::f(int, char)", POINT_FUNCTION, "ns::f(int, char)", NULL, "ns::f(int, char)",
		 NULL, 0, 0},
		{"::f", POINT_FUNCTION, "::f", NULL, "::f", NULL, 0, 0},
		{"<T as U>::call", POINT_FUNCTION, "<T as U>::call", NULL, "<T as U>::call", NULL,
		 0, 0},
		{"operator=", POINT_FUNCTION, "operator=", NULL, "operator=", NULL, 0, 0},
		{"operator==(A, B)", POINT_FUNCTION, "operator==(A, B)", NULL, "operator==(A, B)",
		 NULL, 0, 0},
		{"A::operator=", POINT_FUNCTION, "A::operator=", NULL, "A::operator=", NULL, 0, 0},
		{"operator<=(A, B)", POINT_FUNCTION, "operator<=(A, B)", NULL, "operator<=(A, B)",
		 NULL, 0, 0},
		{"plus=operator+", POINT_FUNCTION, "plus", NULL, "operator+", NULL, 0, 0},
		{"f[abi:cxx11]()", POINT_FUNCTION, "f[abi:cxx11]()", NULL, "f[abi:cxx11]()", NULL,
		 0, 0},
		{"<[T] as U>::call", POINT_FUNCTION, "<[T] as U>::call", NULL, "<[T] as U>::call",
		 NULL, 0, 0},
		{"a::{closure#0}", POINT_FUNCTION, "a::{closure#0}", NULL, "a::{closure#0}", NULL,
		 0, 0},
		{"<a::T as F<(i32,), Output=u8>>::m", POINT_FUNCTION,
		 "<a::T as F<(i32,), Output=u8>>::m", NULL, "<a::T as F<(i32,), Output=u8>>::m",
		 NULL, 0, 0},
		{"main.(*T).M", POINT_FUNCTION, "main.(*T).M", NULL, "main.(*T).M", NULL, 0, 0},
		{"done=main.main.func1", POINT_FUNCTION, "done", NULL, "main.main.func1", NULL, 0,
		 0},
		{"example.com/mod/pkg.(*T).M-fm", POINT_FUNCTION, "example.com/mod/pkg.(*T).M-fm",
		 NULL, "example.com/mod/pkg.(*T).M-fm", NULL, 0, 0},
		{"gopkg.in/yaml%2ev3.F[...]", POINT_FUNCTION, "gopkg.in/yaml%2ev3.F[...]", NULL,
		 "gopkg.in/yaml%2ev3.F[...]", NULL, 0, 0},
		{"x=app:main.(*T).M+16", POINT_BINARY_FUNCTION, "x", "app", "main.(*T).M", NULL, 16,
		 0},
		{"lib:<T as U>::call", POINT_BINARY_FUNCTION, "lib:<T as U>::call", "lib",
		 "<T as U>::call", NULL, 0, 0},
		{"lib:::f", POINT_FUNCTION, "lib:::f", NULL, "lib:::f", NULL, 0, 0},
		{"f+4", POINT_FUNCTION, "f+4", NULL, "f", NULL, 4, 0},
		{"libc.so.6:malloc", POINT_BINARY_FUNCTION, "libc.so.6:malloc", "libc.so.6",
		 "malloc", NULL, 0, 0},
		{"m=/lib/libc.so.6:malloc+0x1F", POINT_BINARY_FUNCTION, "m", "/lib/libc.so.6",
		 "malloc", NULL, 31, 0},
		{"lib:ns::f", POINT_BINARY_FUNCTION, "lib:ns::f", "lib", "ns::f", NULL, 0, 0},
		{"lib:ns::operator++", POINT_BINARY_FUNCTION, "lib:ns::operator++", "lib",
		 "ns::operator++", NULL, 0, 0},
		{"lib:f+010", POINT_BINARY_FUNCTION, "lib:f+010", "lib", "f", NULL, 10, 0},
		{"libz.so.1+0x2f40", POINT_BINARY_FUNCTION, "libz.so.1+0x2f40", "libz.so.1",
		 "libz.so.1", NULL, 0x2f40, 0},
		{"python3.11+0x10", POINT_FUNCTION, "python3.11+0x10", NULL, "python3.11", NULL, 16,
		 0},
		{"a.c:12", POINT_FILE_LINE, "a.c:12", NULL, NULL, "a.c", 0, 12},
		{"round=src/a b.c:4294967295", POINT_FILE_LINE, "round", NULL, NULL, "src/a b.c", 0,
		 4294967295U},
		{"c:/x.c:7", POINT_FILE_LINE, "c:/x.c:7", NULL, NULL, "c:/x.c", 0, 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error e = {};
		struct point_spec p;

		if (point_spec_parse(cases[i].text, &p, &e) < 0)
			fail_msg("%s: %s", cases[i].text, e.text);
		assert_int_equal(p.kind, cases[i].kind);
		expect_text(cases[i].name, p.name);
		expect_text(cases[i].binary, p.binary);
		expect_text(cases[i].function, p.function);
		expect_text(cases[i].file, p.file);
		assert_int_equal(p.offset, cases[i].offset);
		assert_int_equal(p.line, cases[i].line);
		point_spec_free(&p);
	}
}

static void other_kinds(void **state)
{
	static const struct {
		const char *text;
		enum point_kind kind;
		const char *name, *binary, *function, *file, *provider, *event;
		bool at_return;
		uint32_t line;
	} cases[] = {
		{"work%return", POINT_FUNCTION, "work%return", NULL, "work", NULL, NULL, NULL, true,
		 0},
		{"done=lib:ns::f(int)%return", POINT_BINARY_FUNCTION, "done", "lib", "ns::f(int)",
		 NULL, NULL, NULL, true, 0},
		{"operator+%return", POINT_FUNCTION, "operator+%return", NULL, "operator+", NULL,
		 NULL, NULL, true, 0},
		{"usdt:redis:call", POINT_USDT, "usdt:redis:call", NULL, NULL, NULL, "redis",
		 "call", false, 0},
		{"n=usdt:libc.so.6:libc:memory_sbrk", POINT_USDT, "n", "libc.so.6", NULL, NULL,
		 "libc", "memory_sbrk", false, 0},
		{"usdt:/a:b/lib.so:p:n", POINT_USDT, "usdt:/a:b/lib.so:p:n", "/a:b/lib.so", NULL,
		 NULL, "p", "n", false, 0},
		{"syscall:read", POINT_SYSCALL, "syscall:read", NULL, NULL, NULL, NULL, "read",
		 false, 0},
		{"r=syscall:read%return", POINT_SYSCALL, "r", NULL, NULL, NULL, NULL, "read", true,
		 0},
		{"syscall:467", POINT_SYSCALL, "syscall:467", NULL, NULL, NULL, NULL, "467", false,
		 0},
		{"tracepoint:sched:sched_switch", POINT_TRACEPOINT, "tracepoint:sched:sched_switch",
		 NULL, NULL, NULL, "sched", "sched_switch", false, 0},
		{"s=sampled:src/a.c:12", POINT_SAMPLED_LINE, "s", NULL, NULL, "src/a.c", NULL, NULL,
		 false, 12},
		{"sampled:f", POINT_SAMPLED_FUNCTION, "sampled:f", NULL, "f", NULL, NULL, NULL,
		 false, 0},
		{"s=sampled:libc.so.6:qsort", POINT_SAMPLED_FUNCTION, "s", "libc.so.6", "qsort",
		 NULL, NULL, NULL, false, 0},
		{"sampled:lib:ns::f(int)", POINT_SAMPLED_FUNCTION, "sampled:lib:ns::f(int)", "lib",
		 "ns::f(int)", NULL, NULL, NULL, false, 0},
		{"sampled:f.part.0", POINT_SAMPLED_FUNCTION, "sampled:f.part.0", NULL, "f.part.0",
		 NULL, NULL, NULL, false, 0},
		{"sampled:libz.so.1+0x10", POINT_SAMPLED_FUNCTION, "sampled:libz.so.1+0x10",
		 "libz.so.1", "libz.so.1", NULL, NULL, NULL, false, 0},
		{"sampled:app+0x10", POINT_SAMPLED_FUNCTION, "sampled:app+0x10", NULL, "app", NULL,
		 NULL, NULL, false, 0},
		{"usdt::f", POINT_FUNCTION, NULL, NULL, NULL, NULL, NULL, NULL, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error e = {};
		struct point_spec p;

		if (!cases[i].name) {
			assert_int_equal(point_spec_parse(cases[i].text, &p, &e), -EINVAL);
			continue;
		}
		if (point_spec_parse(cases[i].text, &p, &e) < 0)
			fail_msg("%s: %s", cases[i].text, e.text);
		assert_int_equal(p.kind, cases[i].kind);
		expect_text(cases[i].name, p.name);
		expect_text(cases[i].binary, p.binary);
		expect_text(cases[i].function, p.function);
		expect_text(cases[i].file, p.file);
		expect_text(cases[i].provider, p.provider);
		expect_text(cases[i].event, p.event);
		assert_int_equal(p.at_return, cases[i].at_return);
		assert_int_equal(p.line, cases[i].line);
		assert_int_equal(p.offset, strstr(cases[i].text, "+0x10") ? 16 : 0);
		point_spec_free(&p);
	}
}

static void refused_points(void **state)
{
	static const struct {
		const char *text;
		int error;
		const char *says;
	} cases[] = {
		{"", EINVAL, "no place"},
		{"name=", EINVAL, "no place"},
		{"=work", EINVAL, "empty"},
		{"my name=work", EINVAL, "letters, digits"},
		{"a.c:", EINVAL, "behind ':'"},
		{":work", EINVAL, "before ':'"},
		{"a.c:0", EINVAL, "from 1"},
		{"a.c:4294967296", EINVAL, "from 1"},
		{"a.c:99999999999999999999999999", EINVAL, "from 1"},
		{"a.c:12:5", EINVAL, "write a.c:12"},
		{"a.c:12x", EINVAL, "neither"},
		{"lib:f+12x", EINVAL, "number of bytes"},
		{"lib:f+0x", EINVAL, "number of bytes"},
		{"lib:f+99999999999999999999999", EINVAL, "number of bytes"},
		{"%return", EINVAL, "no function stands before %return"},
		{"f+4%return", EINVAL, "leave out the offset"},
		{"a.c:12%return", EINVAL, "a line does not return"},
		{"usdt:", EINVAL, "usdt:PROVIDER:NAME"},
		{"usdt:libc", EINVAL, "usdt:PROVIDER:NAME"},
		{"usdt::memory_sbrk", EINVAL, "usdt:PROVIDER:NAME"},
		{"usdt::libc:memory_sbrk", EINVAL, "usdt:PROVIDER:NAME"},
		{"usdt:libc:memory_sbrk%return", EINVAL, "usdt:PROVIDER:NAME"},
		{"syscall:", EINVAL, "syscall:NAME%return"},
		{"syscall:%return", EINVAL, "syscall:NAME%return"},
		{"syscall:a:b", EINVAL, "syscall:NAME"},
		{"tracepoint:sched_switch", EINVAL, "tracepoint:CATEGORY:NAME"},
		{"tracepoint::sched_switch", EINVAL, "tracepoint:CATEGORY:NAME"},
		{"tracepoint:a:b:c", EINVAL, "tracepoint:CATEGORY:NAME"},
		{"tracepoint:../x:b", EINVAL, "tracepoint:CATEGORY:NAME"},
		{"sampled:", EINVAL, "sampled:FILE:LINE, sampled:[BINARY:]FUNCTION"},
		{"sampled:12", EINVAL, "sampled:FILE:LINE"},
		{"sampled::12", EINVAL, "sampled:FILE:LINE"},
		{"sampled:a.c:12x", EINVAL, "sampled:FILE:LINE"},
		{"sampled:f%return", EINVAL, "a whole function"},
		{"sampled:%return", EINVAL, "no function"},
		{"sampled:a.c:0", EINVAL, "from 1"},
		{"a\tb", EINVAL, "control"},
		{"a=\nb", EINVAL, "control"},
		{"\033[31m", EINVAL, "control"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error e = {};
		struct point_spec p = {.line = 77};

		if (point_spec_parse(cases[i].text, &p, &e) != -cases[i].error)
			fail_msg("%s: %s", cases[i].text, e.text);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, e.text);
		assert_null(strchr(e.text, '\n'));
		assert_int_equal(p.line, 77);
	}
}

static void overlong_point(void **state)
{
	char *text = malloc(100001);
	struct error e = {};
	struct point_spec p;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', 100000);
	text[100000] = '\0';
	assert_int_equal(point_spec_parse(text, &p, &e), -EINVAL);
	text[4096] = '\0';
	assert_int_equal(point_spec_parse(text, &p, &e), 0);
	point_spec_free(&p);
	free(text);
}

/* Every text of up to five characters over those that mean something: never a crash, never a
 * half-filled success. */
static void all_short_points(void **state)
{
	static const char letters[] = "f1:=+%.( ";
	const size_t n = sizeof(letters) - 1;
	char text[6];

	(void)state;
	for (size_t len = 0, total = 1; len <= 5; len++, total *= n) {
		for (size_t k = 0; k < total; k++) {
			struct point_spec p;
			struct error e = {};
			size_t rest = k;

			for (size_t i = 0; i < len; i++, rest /= n)
				text[i] = letters[rest % n];
			text[len] = '\0';
			if (point_spec_parse(text, &p, &e) < 0) {
				assert_true(e.text[0]);
				continue;
			}
			assert_true(p.name && *p.name);
			if (p.kind == POINT_FILE_LINE)
				assert_true(p.file && *p.file && p.line && !p.function &&
					    !p.binary);
			else
				assert_true(p.function && *p.function && !p.file && !p.line);
			assert_true((p.kind == POINT_BINARY_FUNCTION) == (p.binary && *p.binary));
			point_spec_free(&p);
		}
	}
}

static void put_call(unsigned char *code, size_t at, size_t to)
{
	int32_t distance = (int32_t)((ssize_t)to - (ssize_t)(at + 5));

	code[at] = 0xe8;
	memcpy(code + at + 1, &distance, sizeof(distance));
}

/* A function in @copies copies, which are all called. */
static int find_copies(size_t copies, struct point_sites *ret, struct error *e)
{
	const size_t size = copies + 5 * copies;
	struct forged_symbols symbols = forge_symbols(copies + 1);
	_cleanup_free_ unsigned char *code = malloc(size);
	_cleanup_close_ int fd = -1;
	struct code_map *m = NULL;
	struct point_spec p;
	char text[64];
	int r;

	assert_non_null(code);
	memset(code, 0x90, copies);
	for (size_t i = 0; i < copies; i++) {
		(void)snprintf(text, sizeof(text), "work.constprop.%zu", i);
		forge_symbol(&symbols, text, i, 1);
		put_call(code, copies + 5 * i, i);
	}
	forge_symbol(&symbols, "calls_all", copies, 5 * copies);
	fd = forge_elf(
		(struct forged_section[]){
			{".text", code, {.sh_type = SHT_PROGBITS, .sh_size = size}},
			FORGED_SYMBOLS(symbols)},
		3, 0, text);
	assert_int_equal(code_map_open(text, &(struct code_scope){.functions = true}, &m, e), 0);
	assert_int_equal(point_spec_parse("work", &p, e), 0);
	p.exact = true;
	r = point_find(m, 0, &p, ret, e);
	point_spec_free(&p);
	code_map_close(m);
	forge_symbols_free(&symbols);
	return r;
}

/* Each would be a probe in the kernel. */
static void too_many_places(void **state)
{
	struct point_sites sites;
	struct error e = {};

	(void)state;
	assert_int_equal(find_copies(POINT_MAX_SITES, &sites, &e), 0);
	assert_int_equal(sites.n, POINT_MAX_SITES);
	point_sites_free(&sites);
	assert_int_equal(find_copies(POINT_MAX_SITES + 1, &sites, &e), -E2BIG);
	assert_string_equal(e.text, "-p work: too many places");
	assert_null(sites.all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepted_points),  cmocka_unit_test(other_kinds),
		cmocka_unit_test(refused_points),   cmocka_unit_test(overlong_point),
		cmocka_unit_test(all_short_points), cmocka_unit_test(too_many_places),
	};

	return cmocka_run_group_tests_name("cmd point", tests, NULL, NULL);
}
