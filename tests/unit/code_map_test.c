// SPDX-License-Identifier: BSD-2-Clause
/* The code map of this process itself. */
#include "program/dwarf/lines_private.h"
#include "program/code/map.h"
#include "program/code/private.h"

#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

#include "code_map_open.h"
#include "code_map_system.h"

#define NAME "code_map_test.c"

int code_map_test_work(volatile int *p);

enum { WORK_LINE = __LINE__ + 3 };
__attribute__((noinline)) int code_map_test_work(volatile int *p)
{
	*p = *p * 3 + 1;
	return *p;
}

int code_map_test_caller(volatile int *p);

enum { CALL_LINE = __LINE__ + 4 };
__attribute__((noinline)) int code_map_test_caller(volatile int *p)
{
	*p = *p + 2;
	code_map_test_inlined(&p[*p & 0]);
	return *p;
}

static inline __attribute__((always_inline)) void code_map_test_step(volatile int *p)
{
	*p = *p * 17 + 4;
}

/* What the object's table says of an address. */
static const struct abi_row *row_at(const struct code_map *m, const void *p)
{
	const struct abi_row *found = NULL;

	for (size_t i = 0; i < m->spaces[0].n; i++) {
		const struct code_mapping *k = &m->spaces[0].mappings[i];
		const struct code_object *o = m->objects[k->object];
		uint64_t pc = (uintptr_t)p - k->bias - o->rows_base;

		assert_true(k->start < k->end && (!i || k->start >= k[-1].end));
		if ((uintptr_t)p < k->start || (uintptr_t)p >= k->end || !k->placed)
			continue;
		for (size_t j = 0; j < o->n_rows; j++) {
			assert_true(!j || o->rows[j].pc > o->rows[j - 1].pc);
			if (o->rows[j].pc <= pc)
				found = &o->rows[j];
		}
	}
	return found;
}

/* Where that is, whichever process runs it. */
static uint64_t code_at(const struct code_map *m, uint64_t addr)
{
	for (size_t i = 0; i < m->spaces[0].n; i++) {
		const struct code_mapping *k = &m->spaces[0].mappings[i];

		if (addr >= k->start && addr < k->end)
			return ABI_CODE(k->object,
					addr - k->bias - m->objects[k->object]->rows_base);
	}
	fail_msg("0x%llx is not mapped", (unsigned long long)addr);
	return 0;
}

static uint64_t code_of(const struct code_map *m, const void *p)
{
	return code_at(m, (uintptr_t)p);
}

static bool in_scope(const struct code_map *m, const void *p)
{
	const struct abi_row *row = row_at(m, p);

	assert_non_null(row);
	return row->kind & ABI_ROW_IN_SCOPE;
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
	bool by_function;
	size_t n, k;

	(void)state;
	assert_true(in_scope(m, work()));
	snprintf(written, sizeof(written), NAME ":%d", WORK_LINE);
	assert_int_equal(code_map_intervals(m, written, some, 8, &n), 0);
	assert_uint_in_range(n, 1, 8);
	assert_true(some[0].lo >= code_of(m, work()) && some[0].lo < code_of(m, work()) + 64);
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
	assert_non_null(code_map_lines(m, 0, NULL));
	assert_int_equal(code_map_without_names(m, &line, &by_function), 0);
	code_map_close(m);
}

static void test_sources(void **state)
{
	static const char *const only[] = {"unit/*code_map_test.c"}, *const without[] = {
									     "!*code_map_test.c"};
	struct code_map *m = open_map(&(struct code_scope){.sources = only, .n_sources = 1});

	(void)state;
	assert_true(in_scope(m, work()));
	assert_false(in_scope(m, (const void *)(uintptr_t)code_map_open));
	code_map_close(m);
	m = open_map(&(struct code_scope){.sources = without, .n_sources = 1});
	assert_false(in_scope(m, work()));
	assert_true(in_scope(m, (const void *)(uintptr_t)code_map_open));
	code_map_close(m);
}

static void test_binaries(void **state)
{
	static const char *const both[] = {"MAIN", "libc.so*"}, *const excluded[] = {"*",
										     "!libc.so*"};
	struct code_map *m = open_map(&(struct code_scope){.binaries = both, .n_binaries = 2});
	const struct elf_object *o;
	struct line_table *lines;
	struct error e = {0};

	(void)state;
	assert_true(in_scope(m, work()));
	code_map_close(m);
	m = open_map(&(struct code_scope){.binaries = excluded, .n_binaries = 2});
	assert_true(in_scope(m, work()));
	assert_int_equal(code_map_object(m, "libc.so.6", &o, &lines, &e), 0);
	assert_true(elf_object_has_symbols(o));
	assert_int_equal(code_map_object(m, "libnothing.so", &o, &lines, &e), -ENOENT);
	assert_non_null(strstr(e.text, "libnothing.so"));
	code_map_close(m);
}

static void test_functions(void **state)
{
	static const char *const both[] = {"MAIN", "libc.so*"};
	struct code_map *m = open_map(
		&(struct code_scope){.functions = true, .binaries = both, .n_binaries = 2});
	const char *name, *function;
	struct addr_range some[2];
	size_t n;

	(void)state;
	assert_int_equal(code_map_name(m, code_of(m, work()) + 1, &name, &function), 0);
	assert_string_equal(name, "code_map_test_work");
	assert_ptr_equal(name, function);
	assert_int_equal(code_map_intervals(m, "code_map_test_work", some, 2, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(some[0].lo, code_of(m, work()));
	assert_int_equal(code_map_intervals(m, "code_map_test_nothing", some, 2, &n), -ENOENT);
	if (in_scope(m, in_libc())) { /* not where a sanitizer stands before it */
		assert_int_equal(code_map_name(m, code_of(m, in_libc()), &name, NULL), 0);
		assert_non_null(strstr(name, "getpid"));
	}
	code_map_close(m);
}

static void test_system_sources(void **state)
{
	static const char *const out[] = {
		"/usr/include/c++/12/bits/stl_vector.h",
		"/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h",
		"/usr/lib/go-1.19/src/runtime/proc.go",
		"/usr/local/go/src/fmt/print.go",
		"/opt/go/src/fmt/print.go",
		"/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/fmt/mod.rs",
		"/usr/src/rustc-1.63.0/library/std/src/thread/mod.rs",
		"/x/.cargo/registry/src/github.com-1ecc6299db9ec823/rand-0.8.5/src/lib.rs",
		"/x/go/pkg/mod/golang.org/x/sync@v0.1.0/errgroup/errgroup.go",
		"<autogenerated>",
		"/x/<built-in>",
	};
	static const char *const in[] = {"/opt/gopher/src/a.go",
					 "/x/usr/include/a.h",
					 "/usr/lib/gimp/a.c",
					 "/usr/src/app/a.c",
					 "a.c",
					 "/rust/a.rs",
					 "/opt/go/srcs/a.go",
					 "/x/<y>/a.c"};
	static const char *const all[] = {"*"}, *const fewer[] = {"!a.c"};
	struct code_map *m;

	(void)state;
	assert_int_equal(setenv("GOROOT", "/opt/go", 1), 0);
	m = open_map(&(struct code_scope){0});
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		if (code_map_has_source(m, out[i]))
			fail_msg("%s is in scope", out[i]);
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		if (!code_map_has_source(m, in[i]))
			fail_msg("%s is out of scope", in[i]);
	code_map_close(m);
	m = open_map(&(struct code_scope){.sources = fewer, .n_sources = 1});
	assert_false(code_map_has_source(m, out[0]) || code_map_has_source(m, "/x/a.c"));
	assert_true(code_map_has_source(m, "/x/b.c"));
	code_map_close(m);
	m = open_map(&(struct code_scope){.sources = all, .n_sources = 1});
	assert_true(code_map_has_source(m, out[0]));
	code_map_close(m);
}

/* A function of the system's is out of scope once a sample has shown it, or, by lines, any function
 * of its unit. */
static void test_system_function(void **state)
{
	const void *function = (const void *)(uintptr_t)code_map_test_system;
	bool changed;

	(void)state;
	for (int functions = 0; functions < 2; functions++) {
		struct code_map *m = open_map(&(struct code_scope){.functions = functions});
		const char *name;

		assert_true(in_scope(m, function));
		assert_int_equal(code_map_name(m, code_of(m, work()), &name, NULL), 0);
		assert_int_equal(code_map_refresh(m, 0, getpid(), &changed, NULL), 0);
		assert_int_equal(changed, !functions);
		assert_int_equal(in_scope(m, function), functions);
		assert_int_equal(code_map_name(m, code_of(m, function) + 4, &name, NULL), -ENOENT);
		assert_int_equal(code_map_refresh(m, 0, getpid(), &changed, NULL), 0);
		assert_int_equal(changed, functions);
		assert_int_equal(code_map_refresh(m, 0, getpid(), &changed, NULL), 0);
		assert_false(changed);
		assert_false(in_scope(m, function));
		assert_true(in_scope(m, work()));
		code_map_close(m);
	}
}

static bool in_line(struct code_map *m, const char *line, uint64_t addr)
{
	uint64_t code = code_at(m, addr);
	struct addr_range some[64];
	size_t n;
	bool in = false;

	assert_int_equal(code_map_intervals(m, line, some, 64, &n), 0);
	for (size_t i = 0; i < n; i++)
		in |= code >= some[i].lo && code < some[i].hi;
	return in;
}

/* What was inlined from the system's headers belongs to the line that calls it, for samples and for
 * hits. */
static void test_system_inlined(void **state)
{
	struct code_map *m = open_map(&(struct code_scope){0});
	struct elf_symbol s;
	struct addr_range whole;
	const char *call = NULL;
	uint64_t bias;
	char wanted[64];
	size_t n, inlined = 0;
	bool changed;

	(void)state;
	assert_int_equal(elf_object_find_function(code_map_main(m), "code_map_test_caller", &s), 0);
	bias = (uintptr_t)code_map_test_caller - s.addr;
	snprintf(wanted, sizeof(wanted), "/" NAME ":%d", CALL_LINE);
	for (uint64_t at = s.addr; at < s.addr + s.size; at++) {
		struct line_location where;
		const char *line;
		bool named = code_map_name(m, code_at(m, at + bias), &line, NULL) == 0;

		assert_int_equal(line_table_at(code_map_lines(m, 0, NULL), at, &where), 0);
		assert_true(named);
		assert_null(strstr(line, "cozbpf_test.h"));
		assert_true(in_line(m, line, at + bias));
		if (!strstr(where.file, "cozbpf_test.h"))
			continue;
		assert_string_equal(line + strlen(line) - strlen(wanted), wanted);
		call = line;
		inlined++;
	}
	assert_true(inlined > 4);
	assert_false(in_line(m, call, (uintptr_t)code_map_test_caller));
	assert_int_equal(code_map_intervals(m, wanted + 1, &whole, 1, &n), 0);
	assert_int_equal(code_map_refresh(m, 0, getpid(), &changed, NULL), 0);
	for (uint64_t at = 0; at < s.size; at++)
		assert_true(in_scope(m, (const char *)(uintptr_t)code_map_test_caller + at));
	code_map_close(m);
}

/* The program's own code in a function of the system's stays in scope. */
static void test_own_code_inlined(void **state)
{
	struct code_map *m = open_map(&(struct code_scope){0});
	uint64_t start = (uintptr_t)code_map_test_callback, own = 0;
	struct elf_symbol s;
	const char *line;
	bool changed;

	(void)state;
	assert_int_equal(elf_object_find_function(code_map_main(m), "code_map_test_callback", &s),
			 0);
	for (uint64_t i = 0; i < s.size; i++)
		if (code_map_name(m, code_at(m, start + i), &line, NULL) == 0) {
			own = start + i;
			assert_non_null(strstr(line, NAME));
			assert_true(in_line(m, line, own));
		}
	assert_true(own);
	assert_int_equal(code_map_refresh(m, 0, getpid(), &changed, NULL), 0);
	assert_true(changed && in_scope(m, (const void *)(uintptr_t)own));
	assert_false(in_scope(m, (const void *)(uintptr_t)start) ||
		     in_scope(m, (const void *)(uintptr_t)(start + s.size - 1)));
	code_map_close(m);
}

/* The kernel's functions have names and ranges of their own; where they are hidden, that is said.
 */
static void test_kernel(void **state)
{
	struct code_kernel *k = NULL;
	struct error e = {0};
	const char *name, *function, *again;
	struct addr_range some[8];
	struct code_map *m;
	size_t n, found = 0;

	(void)state;
	if (code_kernel_open(&k, &e) < 0) {
		assert_non_null(strstr(e.text, "--kernel"));
		return;
	}
	m = open_map(&(struct code_scope){0});
	assert_int_equal(code_map_name(m, ABI_CODE(ABI_KERNEL_OBJECT, 4096), &name, &function),
			 -ENOENT);
	code_map_set_kernel(m, k);
	assert_true(code_kernel_base(k) > UINT64_MAX / 2);
	for (uint32_t pc = 0; pc < 1 << 20; pc += 4096) {
		if (code_map_name(m, ABI_CODE(ABI_KERNEL_OBJECT, pc), &name, &function) < 0)
			continue;
		found++;
		assert_non_null(strstr(name, " [kernel]"));
		assert_ptr_equal(name, function);
		assert_int_equal(code_map_intervals(m, name, some, 8, &n), 0);
		assert_uint_in_range(n, 1, 8);
		assert_int_equal(code_map_name(m, some[0].lo, &again, NULL), 0);
		if (n == 1) {
			assert_true(some[0].lo <= ABI_CODE(ABI_KERNEL_OBJECT, pc) &&
				    ABI_CODE(ABI_KERNEL_OBJECT, pc) < some[0].hi);
			assert_ptr_equal(again, name);
		}
	}
	assert_true(found > 10);
	assert_int_equal(code_map_intervals(m, "no such function [kernel]", some, 8, &n), -ENOENT);
	code_map_close(m);
	code_kernel_close(k);
}

static void test_waits(void **state)
{
	struct code_map *m = open_map(&(struct code_scope){0});
	const char *place, *name, *function;
	struct addr_range some[8], of_place[8];
	uint64_t code = code_of(m, work());
	size_t n, n_place;

	(void)state;
	assert_int_equal(code_map_name(m, ABI_CODE_WAITS(ABI_WAIT_TIMER, code), &name, &function),
			 0);
	assert_int_equal(code_map_name(m, code, &place, NULL), 0);
	assert_true(strncmp(name, place, strlen(place)) == 0 &&
		    !strcmp(name + strlen(place), " [timer]"));
	assert_string_equal(function, "code_map_test_work");
	assert_int_equal(code_map_intervals(m, place, of_place, 8, &n_place), 0);
	assert_true(code_map_intervals(m, name, some, 8, &n) == 0 && n == n_place);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(some[i].lo, ABI_CODE_WAITS(ABI_WAIT_TIMER, of_place[i].lo));
		assert_int_equal(some[i].hi, ABI_CODE_WAITS(ABI_WAIT_TIMER, of_place[i].hi));
	}
	assert_int_equal(code_map_intervals(m, "[timer]", some, 8, &n), 0);
	assert_true(n == 1 && some[0].lo <= ABI_CODE_WAITS(ABI_WAIT_TIMER, 0) &&
		    ABI_CODE_WAITS(ABI_WAIT_PROCESS, 0) >= some[0].hi);
	assert_int_equal(code_map_name(m, ABI_CODE_WAITS(ABI_WAIT_DISK, 0), &name, NULL), -ENOENT);
	code_map_close(m);
}

static void test_automatic(void **state)
{
	struct code_map *m = open_map(&(struct code_scope){.automatic = true});

	(void)state;
	assert_false(code_map_by_function(m));
	code_map_close(m);
	m = open_map(&(struct code_scope){.functions = true});
	assert_true(code_map_by_function(m));
	code_map_close(m);
}

/* Every kind of object has rows, and a function begins with its return address on top of the stack.
 */
static void test_rows(void **state)
{
	struct code_map *m = open_map(&(struct code_scope){0});
	const struct abi_row *row = row_at(m, work());
	const void *kernels = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	size_t rows = 0;

	(void)state;
	assert_non_null(row);
	assert_int_equal(row->kind, ABI_ROW_RSP | ABI_ROW_IN_SCOPE);
	assert_int_equal(row->cfa_offset, 8);
	row = row_at(m, in_libc());
	assert_non_null(row);
	assert_int_equal(row->kind, ABI_ROW_RSP);
	assert_int_equal(row->cfa_offset, 8);
	assert_non_null(kernels);
	assert_non_null(row_at(m, kernels));
	for (size_t i = 0; i < m->n_objects; i++)
		if (m->objects[i]->is_vdso)
			rows = m->objects[i]->n_rows;
	assert_true(rows > 5);
	assert_int_equal(m->n_without_rows, 0);
	code_map_close(m);
}

static void test_nothing_in_scope(void **state)
{
	static const char *const sources[] = {"nowhere.c"}, *const binaries[] = {"!*"};
	struct code_map *m = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(code_map_open("/proc/self/exe",
				       &(struct code_scope){.sources = sources, .n_sources = 1}, &m,
				       &e),
			 -ENODATA);
	assert_non_null(strstr(e.text, "--source"));
	assert_int_equal(code_map_open("/proc/self/exe",
				       &(struct code_scope){.binaries = binaries, .n_binaries = 1},
				       &m, &e),
			 -ENODATA);
	assert_non_null(strstr(e.text, "--binary"));
	assert_int_equal(code_map_open("/nonexistent/program", &(struct code_scope){0}, &m, &e),
			 -ENOENT);
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_binaries),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_system_sources),
		cmocka_unit_test(test_system_function),
		cmocka_unit_test(test_system_inlined),
		cmocka_unit_test(test_own_code_inlined),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_automatic),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_nothing_in_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
