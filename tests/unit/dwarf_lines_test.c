// SPDX-License-Identifier: BSD-2-Clause
/* Lines of this very file, in this test's own executable. */
#include "program/dwarf/lines.h"
#include "program/elf/object.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#define NAME "dwarf_lines_test.c"

int elf_lines_loop(volatile int *p);
int elf_lines_first(volatile int *p);
int elf_lines_second(volatile int *p);

enum { LOOP_LINE = __LINE__ + 4 };
__attribute__((noinline)) int elf_lines_loop(volatile int *p)
{
	*p += 1;
	for (volatile int i = 0; i < *p; i++)
		*p -= i;
	return *p;
}

enum { INLINED_LINE = __LINE__ + 3 };
static inline __attribute__((always_inline)) void inlined(volatile int *p)
{
	*p = *p * 3 + 1;
}

enum { FIRST_CALL = __LINE__ + 3 };
__attribute__((noinline)) int elf_lines_first(volatile int *p)
{
	inlined(p);
	*p += 1;
	inlined(p);
	return *p;
}

__attribute__((noinline)) int elf_lines_second(volatile int *p)
{
	inlined(p);
	return *p + 2;
}

struct fixture {
	struct elf_object *object;
	struct line_table *lines;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct error e = {0};

	assert_non_null(f);
	assert_int_equal(elf_object_open("/proc/self/exe", &f->object, &e), 0);
	assert_int_equal(line_table_open(f->object, NULL, &f->lines, &e), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	line_table_close(f->lines);
	elf_object_close(f->object);
	free(f);
	return 0;
}

static struct elf_symbol function(const struct fixture *f, const char *name)
{
	struct elf_symbol s;

	assert_int_equal(elf_object_find_function(f->object, name, &s), 0);
	return s;
}

static void test_lazy(void **state)
{
	struct fixture *f = *state;
	struct elf_symbol s = function(f, "elf_lines_loop");
	struct line_location where;
	struct addr_range *all;
	size_t n;

	/* Ranges are those of units that were decoded. */
	assert_int_equal(line_table_ranges(f->lines, NAME, LOOP_LINE, &all, &n), -ENOENT);
	assert_int_equal(line_table_at(f->lines, s.addr, &where), 0);
	assert_int_equal(line_table_ranges(f->lines, NAME, LOOP_LINE, &all, &n), 0);
	free(all);
	assert_uint_in_range(where.line, LOOP_LINE - 3,
			     LOOP_LINE - 1); /* name, brace or first statement, by compiler */
	assert_null(strstr(where.file, "/../"));
	assert_true(line_file_matches(NAME, where.file));
	assert_int_equal(line_table_at(f->lines, 1, &where), -ENOENT);
	assert_null(line_table_warning(f->lines));
}

/* The copies in the function's code are called where it says, one in each of its lines that call.
 */
static void test_calls_of_inlined_copies(void **state)
{
	struct fixture *f = *state;
	struct elf_symbol s = function(f, "elf_lines_first");
	const struct line_inlined *all;
	struct line_location calls[4], where;
	size_t n, first = 0, second = 0;

	assert_int_equal(line_table_inlined(f->lines, s.addr, s.addr + s.size, &all, &n), 0);
	for (size_t i = 0; i < n; i++) {
		struct line_location call = line_inlined_call(f->lines, &all[i]);

		assert_true(all[i].range.lo >= s.addr && all[i].range.hi <= s.addr + s.size &&
			    all[i].range.lo < all[i].range.hi);
		assert_non_null(call.file);
		assert_true(line_file_matches(NAME, call.file));
		first += call.line == FIRST_CALL;
		second += call.line == FIRST_CALL + 2;
		if (line_table_at(f->lines, all[i].range.lo, &where) < 0 ||
		    where.line != INLINED_LINE)
			continue;
		assert_int_equal(line_table_calls(f->lines, all[i].range.lo, UINT64_MAX, calls, 4),
				 1);
		assert_ptr_equal(calls[0].file, where.file);
		assert_int_equal(calls[0].line, call.line);
	}
	assert_true(first > 0 && second > 0 && first + second == n);
	/* What was not inlined has no calls; a tree that is too large is not read, but may be
	 * later. */
	s = function(f, "elf_lines_loop");
	assert_int_equal(line_table_calls(f->lines, s.addr, UINT64_MAX, calls, 4), 0);
	assert_int_equal(line_table_inlined(f->lines, s.addr, s.addr + s.size, &all, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(line_table_inlined(f->lines, 1, 2, &all, &n), -ENOENT);
}

static void test_large_trees_wait(void **state)
{
	struct fixture *f = *state;
	struct elf_symbol s = function(f, "elf_lines_first");
	const struct line_inlined *all;
	struct line_location calls[4];
	struct line_table *t = NULL;
	size_t n;

	assert_int_equal(line_table_open(f->object, NULL, &t, NULL), 0);
	for (uint64_t at = s.addr; at < s.addr + s.size; at++)
		assert_int_equal(line_table_calls(t, at, 100, calls, 4), 0);
	assert_int_equal(line_table_inlined(t, s.addr, s.addr + s.size, &all, &n), 0);
	assert_true(n >= 2);
	/* It is there now. */
	assert_int_equal(line_table_calls(t, all[0].range.lo, 100, calls, 4), 1);
	line_table_close(t);
}

static void test_loop_is_probed_once(void **state)
{
	struct fixture *f = *state;
	struct elf_symbol s = function(f, "elf_lines_loop");
	_cleanup_free_ uint64_t *all = NULL;
	struct line_location where;
	uint32_t nearest = 0;
	size_t n;

	assert_int_equal(line_table_statements(f->lines, NAME, LOOP_LINE, &all, &n, &nearest), 0);
	assert_int_equal(n, 1);
	assert_true(all[0] > s.addr && all[0] < s.addr + s.size);
	assert_int_equal(line_table_at(f->lines, all[0], &where), 0);
}

static void test_every_inlined_copy(void **state)
{
	struct fixture *f = *state;
	struct elf_symbol first = function(f, "elf_lines_first"),
			  second = function(f, "elf_lines_second");
	_cleanup_free_ uint64_t *all = NULL;
	uint32_t nearest = 0;
	size_t n, in_first = 0, in_second = 0;

	assert_int_equal(line_table_statements(f->lines, NAME, INLINED_LINE, &all, &n, &nearest),
			 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(!i || all[i] > all[i - 1]);
		in_first += all[i] >= first.addr && all[i] < first.addr + first.size;
		in_second += all[i] >= second.addr && all[i] < second.addr + second.size;
	}
	assert_int_equal(in_first, 2);
	assert_int_equal(in_second, 1);
	assert_int_equal(n, 3);
}

/* By its name: where each copy is entered, and its code. */
static void test_copies_by_name(void **state)
{
	struct fixture *f = *state;
	struct elf_symbol first = function(f, "elf_lines_first"),
			  second = function(f, "elf_lines_second");
	_cleanup_free_ struct line_copy *all = NULL;
	struct line_copy *none = NULL;
	size_t n, in_first = 0, in_second = 0;

	assert_int_equal(line_table_copies(f->lines, "inlined", &all, &n), 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t entry = all[i].entry;

		assert_true(all[i].range.lo < all[i].range.hi);
		assert_true(!i || entry >= all[i - 1].entry);
		if (i && entry == all[i - 1].entry)
			continue;
		in_first += entry >= first.addr && entry < first.addr + first.size;
		in_second += entry >= second.addr && entry < second.addr + second.size;
	}
	assert_int_equal(in_first, 2);
	assert_int_equal(in_second, 1);
	/* One that was not inlined, and none. */
	assert_int_equal(line_table_copies(f->lines, "elf_lines_loop", &none, &n), -ENOENT);
	assert_int_equal(line_table_copies(f->lines, "elf_lines_nowhere", &none, &n), -ENOENT);
	assert_int_equal(line_table_copies(f->lines, "", &none, &n), -ENOENT);
}

static void test_ranges_and_at_agree(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ struct addr_range *all = NULL;
	struct line_location where;
	size_t n, covered = 0;
	struct elf_symbol s = function(f, "elf_lines_loop");

	assert_int_equal(line_table_ranges(f->lines, NAME, LOOP_LINE, &all, &n), -ENOENT);
	assert_int_equal(line_table_read_file(f->lines, NAME), 0);
	assert_int_equal(line_table_ranges(f->lines, NAME, LOOP_LINE, &all, &n), 0);
	for (uint64_t a = s.addr; a < s.addr + s.size; a++) {
		bool in = false;

		for (size_t i = 0; i < n; i++)
			in |= a >= all[i].lo && a < all[i].hi;
		assert_int_equal(line_table_at(f->lines, a, &where), 0);
		assert_int_equal(in, where.line == LOOP_LINE);
		covered += in;
	}
	assert_true(covered > 0);
}

static void test_missing(void **state)
{
	struct fixture *f = *state;
	uint64_t *all = NULL;
	const char *names[4];
	uint32_t nearest = 0;
	size_t n;

	assert_int_equal(
		line_table_statements(f->lines, "elf_lines_nowhere.c", 1, &all, &n, &nearest),
		-ENXIO);
	assert_int_equal(line_table_read_file(f->lines, "elf_lines_nowhere.c"), -ENXIO);
	assert_int_equal(line_table_statements(f->lines, NAME, 1, &all, &n, &nearest), -ENOENT);
	assert_uint_in_range(nearest, LOOP_LINE - 3, LOOP_LINE - 1);
	assert_null(all);
	assert_true(line_table_similar_files(f->lines, "elf_line_test.c", names, 4) > 0);
	assert_true(line_file_matches(NAME, names[0]));
}

static bool this_file(const char *file, void *arg)
{
	return line_file_matches(arg, file);
}

struct last {
	const char *file;
	uint32_t line;
	size_t ours;
};

static int check_each(const char *file, uint32_t line, void *arg)
{
	struct last *l = arg;

	assert_true(line > 0);
	if (l->file == file)
		assert_true(line > l->line);
	l->file = file;
	l->line = line;
	l->ours += line_file_matches(NAME, file) && line == INLINED_LINE;
	return 0;
}

static void test_scope_and_each(void **state)
{
	struct fixture *f = *state;
	struct elf_symbol s = function(f, "elf_lines_second");
	_cleanup_free_ struct addr_range *all = NULL;
	struct last last = {0};
	size_t n;
	bool in = false;

	assert_int_equal(line_table_scope(f->lines, this_file, (char[]){NAME}, &all, &n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(all[i].lo < all[i].hi && (!i || all[i].lo > all[i - 1].hi));
		in |= s.addr >= all[i].lo && s.addr < all[i].hi;
	}
	assert_true(in);
	assert_int_equal(line_table_each(f->lines, check_each, &last), 0);
	assert_int_equal(last.ours, 1);
}

static void test_file_matches(void **state)
{
	(void)state;
	assert_true(line_file_matches("a.c", "/x/src/a.c"));
	assert_true(line_file_matches("src/a.c", "/x/src/a.c"));
	assert_true(line_file_matches("./a.c", "/x/src/a.c"));
	assert_true(line_file_matches("/x/src/a.c", "/x/src/a.c"));
	assert_false(line_file_matches("/src/a.c", "/x/src/a.c"));
	assert_false(line_file_matches("c/a.c", "/x/src/a.c"));
	assert_false(line_file_matches("", "/x/src/a.c"));
	assert_false(line_file_matches("/y/x/src/a.c", "/x/src/a.c"));
}

/* A copy of this executable without its section table: a stripped program. */
static void test_no_debug_information(void **state)
{
	_cleanup_close_ int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
			    fd = memfd_create("elf", MFD_CLOEXEC);
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct line_table *t = NULL;
	struct error e = {0};
	struct stat st;
	char path[64];
	Elf64_Ehdr *h;

	(void)state;
	assert_int_equal(fstat(in, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_size), 0);
	h = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(h != MAP_FAILED);
	for (off_t n = 0; n < st.st_size;) {
		ssize_t r = pread(in, (char *)h + n, (size_t)(st.st_size - n), n);

		assert_true(r > 0);
		n += r;
	}
	h->e_shoff = 0;
	h->e_shnum = 0;
	h->e_shstrndx = 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(elf_object_open(path, &o, &e), 0);
	assert_int_equal(line_table_open(o, NULL, &t, &e), -ENODATA);
	assert_null(t);
	assert_non_null(strstr(e.text, "no line information; build with -g"));
	assert_non_null(strstr(e.text, path));
	(void)munmap(h, (size_t)st.st_size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lazy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls_of_inlined_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_trees_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loop_is_probed_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_inlined_copy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copies_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranges_and_at_agree, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scope_and_each, setup, teardown),
		cmocka_unit_test(test_file_matches),
		cmocka_unit_test(test_no_debug_information),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
