// SPDX-License-Identifier: BSD-2-Clause
/* Names and lines of Go's own table (.gopclntab), in each of its versions: of a program that is
 * written here by hand and has no symbols and no debug information. */
#include "program/dwarf/lines.h"
#include "program/elf/go_table.h"
#include "program/elf/object.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf_forged.h"

/* What is loaded: code, of which Go's begins behind what another linker put first; the table; the
 * run time's record of the program; calls that were inlined; and a relocation. */
enum {
	CODE = 0x100,
	TABLE = 0x1000,
	MODULE = 0x2000,
	CALLS = 0x2800,
	CALLS_FROM = 0x2700, /* what the places of calls count from */
	RELOCATION = 0x3000,
	SIZE = 0x4000,
};

enum how {
	PLAIN,
	RELOCATED,     /* the dynamic linker fills in where the code begins */
	FOREIGN,       /* the same, and the table has no section */
	OWN_SECTION,   /* the module has one, and says alone where the code begins */
	NO_MODULE,     /* it is not found */
	STRANGE_CALLS, /* where inlined calls should be there is something else */
};

static const struct version {
	uint32_t magic;
	bool old;
	size_t extra; /* bytes of a function's entry */
	size_t trees; /* word of the module */
} versions[] = {{0xfffffffa, true, 0, 0}, {0xfffffff0, false, 0, 38}, {0xfffffff1, false, 4, 40}};

static unsigned char loaded[SIZE];
static size_t at; /* up to where it is written */

static void set(size_t place, uint64_t v, size_t n)
{
	assert_true(n <= sizeof(v) && place + n <= SIZE);
	memcpy(loaded + place, &v, n);
}

static void put(uint64_t v, size_t n)
{
	set(at, v, n);
	at += n;
}

static void put_bytes(const void *p, size_t n)
{
	assert_true(at + n <= SIZE);
	memcpy(loaded + at, p, n);
	at += n;
}

/* Small changes of a number; how long one holds has a byte, or two from 0x80 on. */
#define UP(n) ((n) << 1)
#define DOWN(n) (((n) << 1) - 1)
#define NUMBERS(...)                                    \
	put_bytes((const unsigned char[]){__VA_ARGS__}, \
		  sizeof((const unsigned char[]){__VA_ARGS__}))

enum part { NAMES, FILE_LIST, FILES, TABLES, FUNCTIONS, N_PARTS };

/* main.work, 0x00 to 0x80, in a.go:
 *	line 10
 *	line 12 from 0x10 on, which calls main.outer; inlined from 0x18 to 0x30:
 *		line 21, which calls main.inner; inlined from 0x20 to 0x28: b.go, line 40
 *	line 10 from 0x30 on
 *	line 13 from 0x38 on, which calls main.outer once more; inlined from 0x40 to 0x48: line 21
 * main.main, 0x80 to 0x100: a.go, line 30
 * runtime.memmove, 0x100 to 0x140, of which the last 16 bytes are padding: line 5 of the second
 * package's only file */
static const char *const names[] = {"main.work", "main.main", "runtime.memmove", "main.outer",
				    "main.inner"};
enum { WORK, MAIN, MEMMOVE, OUTER, INNER, N_NAMES, N_FUNCTIONS = OUTER };
static const uint32_t ends[] = {0x80, 0x100, 0x140};
static const struct {
	int name;
	uint32_t at;
} calls[] = {{OUTER, 0x10}, {INNER, 0x18}, {OUTER, 0x38}};

static size_t parts[N_PARTS];
static uint32_t name_at[N_NAMES], files_of[N_FUNCTIONS], lines_of[N_FUNCTIONS], copies_of_work;

static void make_names_and_files(void)
{
	static const char *const files[] = {"/src/a.go", "/src/b.go", "runtime/memmove_amd64.s"};
	uint32_t file = 0;

	parts[NAMES] = at;
	for (int i = 0; i < N_NAMES; i++) {
		name_at[i] = (uint32_t)(at - parts[NAMES]);
		put_bytes(names[i], strlen(names[i]) + 1);
	}
	at = (at + 7) & ~7UL;
	/* The second file of the first package is not used. */
	parts[FILE_LIST] = at;
	parts[FILES] = at + 4 * sizeof(uint32_t);
	for (int i = 0; i < 4; i++)
		put(i == 1 ? UINT32_MAX : 0, 4);
	for (int i = 0; i < 3; i++) {
		set(parts[FILE_LIST] + 4 * (size_t)(i + (i > 0)), file, 4);
		put_bytes(files[i], strlen(files[i]) + 1);
		file += (uint32_t)strlen(files[i]) + 1;
	}
	at = (at + 7) & ~7UL;
}

static void make_tables(void)
{
	parts[TABLES] = at;
	put(0, 1);
	files_of[WORK] = (uint32_t)(at - parts[TABLES]);
	NUMBERS(UP(1), 0x20, UP(2), 8, DOWN(2), 0x58, 0);
	lines_of[WORK] = (uint32_t)(at - parts[TABLES]);
	NUMBERS(UP(11), 0x10, UP(2), 8, UP(9), 8, UP(19), 8, DOWN(19), 8, DOWN(11), 8, UP(3), 8,
		UP(8), 8, DOWN(11), 0x38, 0);
	copies_of_work = (uint32_t)(at - parts[TABLES]);
	NUMBERS(0, 0x18, UP(1), 8, UP(1), 8, DOWN(1), 8, DOWN(1), 0x10, UP(3), 8, DOWN(3), 0x38, 0);
	files_of[MAIN] = files_of[MEMMOVE] = (uint32_t)(at - parts[TABLES]);
	NUMBERS(UP(1), 0x80, 1, 0);
	lines_of[MAIN] = (uint32_t)(at - parts[TABLES]);
	NUMBERS(UP(31), 0x80, 1, 0);
	lines_of[MEMMOVE] = (uint32_t)(at - parts[TABLES]);
	NUMBERS(UP(6), 0x30, 0);
	at = (at + 7) & ~7UL;
}

static void make_functions(const struct version *v)
{
	size_t place = v->old ? 8 : 4;
	uint64_t code = v->old ? FORGED_CODE + CODE : 0;

	parts[FUNCTIONS] = at;
	at += (2 * N_FUNCTIONS + 1) * place;
	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		uint64_t lo = code + (i ? ends[i - 1] : 0);

		at = (at + 7) & ~7UL;
		set(parts[FUNCTIONS] + 2 * i * place, lo, place);
		set(parts[FUNCTIONS] + (2 * i + 1) * place, at - parts[FUNCTIONS], place);
		set(parts[FUNCTIONS] + (2 * i + 2) * place, code + ends[i], place);
		put(lo, place);
		put(name_at[i], 4);
		at += 12;
		put(files_of[i], 4);
		put(lines_of[i], 4);
		put(i == WORK ? 3 : 0, 4);
		put(i == MEMMOVE ? 3 : 0, 4);
		at += v->extra + 3;
		put(i == WORK ? 4 : 0, 1);
		if (i != WORK)
			continue;
		at += 8;
		put(copies_of_work, 4);
		if (v->old)
			at = (at + 7) & ~7UL;
		for (int k = 0; k < 3; k++)
			put(v->old ? 0 : UINT32_MAX, place);
		put(v->old ? FORGED_CODE + CALLS : CALLS - CALLS_FROM, place);
	}
}

static void make_calls(const struct version *v, enum how how)
{
	size_t size = v->extra ? 16 : 20, name = v->extra ? 4 : 12, from = v->extra ? 8 : 16;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		set(CALLS + i * size + name, name_at[calls[i].name] + (how == STRANGE_CALLS), 4);
		set(CALLS + i * size + from, calls[i].at, 4);
	}
}

static void make_module(const struct version *v)
{
	/* A pointer to the table that does not begin a module. */
	set(MODULE - 16, FORGED_CODE + TABLE, 8);
	set(MODULE, FORGED_CODE + TABLE, 8);
	for (size_t i = 0; i < N_PARTS; i++)
		set(MODULE + 8 + 24 * i, FORGED_CODE + parts[i], 8);
	set(MODULE + 8 * 22, FORGED_CODE + CODE, 8);
	set(MODULE + 8 * v->trees, FORGED_CODE + CALLS_FROM, 8);
}

/* The table ends at @at. */
static void make_table(const struct version *v, enum how how)
{
	bool filled_in = how == RELOCATED || how == FOREIGN || how == OWN_SECTION;
	Elf64_Rela relocation = {.r_offset = FORGED_CODE + TABLE + 24,
				 .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE),
				 .r_addend = FORGED_CODE + CODE};
	size_t header = v->old ? 24 : 32;

	memset(loaded, 0, sizeof(loaded));
	at = TABLE + header + 8 * N_PARTS;
	make_names_and_files();
	make_tables();
	make_functions(v);
	make_calls(v, how);
	if (how != NO_MODULE && how != FOREIGN && !v->old)
		make_module(v);
	set(TABLE, v->magic, 4);
	set(TABLE + 4, 0x08010000, 4);
	set(TABLE + 8, N_FUNCTIONS, 8);
	set(TABLE + 16, 3, 8);
	if (!v->old)
		set(TABLE + 24, filled_in ? 0 : FORGED_CODE + CODE, 8);
	for (size_t i = 0; i < N_PARTS; i++)
		set(TABLE + header + 8 * i, parts[i] - TABLE, 8);
	memcpy(loaded + RELOCATION, &relocation, sizeof(relocation));
}

/* A section of what is loaded. */
static struct forged_section section(const char *name, size_t from, size_t n)
{
	return (struct forged_section){name,
				       loaded + from,
				       {.sh_type = SHT_PROGBITS,
					.sh_flags = SHF_ALLOC,
					.sh_addr = FORGED_CODE + from,
					.sh_size = n}};
}

static struct elf_object *open_program(enum how how, size_t size, int *ret_fd)
{
	const struct forged_section all[] = {
		{".text", loaded, {.sh_type = SHT_PROGBITS, .sh_size = SIZE}},
		section(how == FOREIGN ? ".data.rel.ro" : ".gopclntab",
			how == FOREIGN ? TABLE - 64 : TABLE, how == FOREIGN ? size + 64 : size),
		section(how == OWN_SECTION ? ".go.module" : ".noptrdata", MODULE - 16, 0x200),
		section(".go.buildinfo", 0, 16),
		section(how == RELOCATED || how == FOREIGN ? ".rela.dyn" : ".other", RELOCATION,
			sizeof(Elf64_Rela))};
	struct forged_section own[sizeof(all) / sizeof(all[0])];
	struct elf_object *o = NULL;
	struct error e = {.text = ""};
	char path[64];

	memcpy(own, all, sizeof(all));
	if (how == OWN_SECTION)
		own[2] = section(".go.module", MODULE, 0x200);
	*ret_fd = forge_elf(own, sizeof(own) / sizeof(own[0]), 0, path);
	assert_int_equal(elf_object_open(path, &o, &e), 0);
	return o;
}

static void has_line(struct line_table *t, uint64_t place, const char *file, uint32_t line)
{
	struct line_location where;

	if (!file) {
		assert_int_equal(line_table_at(t, FORGED_CODE + place, &where), -ENOENT);
		return;
	}
	assert_int_equal(line_table_at(t, FORGED_CODE + place, &where), 0);
	assert_string_equal(where.file, file);
	assert_int_equal(where.line, line);
}

static void has_statements(struct line_table *t, const char *file, uint32_t line, size_t n,
			   const uint64_t *wanted)
{
	_cleanup_free_ uint64_t *all = NULL;
	uint32_t nearest;
	size_t found;

	assert_int_equal(line_table_statements(t, file, line, &all, &found, &nearest), 0);
	assert_int_equal(found, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(all[i], FORGED_CODE + CODE + wanted[i]);
}

static void check_names(const struct elf_object *o)
{
	struct elf_symbol s;

	assert_true(elf_object_has_symbols(o));
	for (int i = 0; i < N_FUNCTIONS; i++) {
		uint64_t lo = FORGED_CODE + CODE + (i ? ends[i - 1] : 0);

		assert_int_equal(elf_object_function_at(o, lo + 0x20, &s), 0);
		assert_string_equal(s.function, names[i]);
		assert_false(s.is_nameless);
		assert_int_equal(s.addr, lo);
		assert_int_equal(s.addr + s.size, FORGED_CODE + CODE + ends[i]);
		assert_int_equal(elf_object_find_function(o, names[i], &s), 0);
		assert_int_equal(s.addr, lo);
	}
	assert_int_equal(elf_object_function_at(o, FORGED_CODE + CODE - 1, &s), -ENOENT);
}

static void check_lines(const struct elf_object *o, bool copies)
{
	static const uint64_t first[] = {0x00}, thirteen[] = {0x38}, inner[] = {0x20},
			      outer[] = {0x18, 0x40}, main_[] = {0x80};
	struct line_location called[4];
	const struct line_inlined *all;
	struct line_table *t = NULL;
	struct error e = {.text = ""};
	size_t n;

	assert_int_equal(line_table_open(o, NULL, &t, &e), 0);
	assert_int_equal(line_table_units(t), 2);
	has_line(t, CODE - 1, NULL, 0);
	has_line(t, CODE, "/src/a.go", 10);
	has_line(t, CODE + 0x0f, "/src/a.go", 10);
	has_line(t, CODE + 0x10, "/src/a.go", 12);
	has_line(t, CODE + 0x18, "/src/a.go", 21);
	has_line(t, CODE + 0x27, "/src/b.go", 40);
	has_line(t, CODE + 0x28, "/src/a.go", 21);
	has_line(t, CODE + 0x7f, "/src/a.go", 10);
	has_line(t, CODE + 0x80, "/src/a.go", 30);
	has_line(t, CODE + 0x12f, "runtime/memmove_amd64.s", 5);
	has_line(t, CODE + 0x130, NULL, 0);
	has_line(t, CODE + 0x140, NULL, 0);
	has_statements(t, "a.go", 10, 1, first);
	has_statements(t, "a.go", 13, 1, thirteen);
	has_statements(t, "/src/b.go", 40, 1, inner);
	has_statements(t, "a.go", 30, 1, main_);
	/* Without its copies a function is one. */
	has_statements(t, "a.go", 21, copies ? 2 : 1, outer);
	assert_int_equal(line_table_calls(t, FORGED_CODE + CODE + 0x17, UINT64_MAX, called, 4), 0);
	n = line_table_calls(t, FORGED_CODE + CODE + 0x20, UINT64_MAX, called, 4);
	assert_int_equal(n, copies ? 2 : 0);
	if (copies) {
		assert_string_equal(called[0].file, "/src/a.go");
		assert_int_equal(called[0].line, 21);
		assert_string_equal(called[1].file, "/src/a.go");
		assert_int_equal(called[1].line, 12);
	}
	assert_int_equal(
		line_table_inlined(t, FORGED_CODE + CODE, FORGED_CODE + CODE + 0x80, &all, &n), 0);
	assert_int_equal(n, copies ? 3 : 0);
	for (size_t i = 0; i < n; i++) {
		static const uint64_t ranges[][2] = {{0x18, 0x30}, {0x20, 0x28}, {0x40, 0x48}};

		assert_int_equal(all[i].range.lo, FORGED_CODE + CODE + ranges[i][0]);
		assert_int_equal(all[i].range.hi, FORGED_CODE + CODE + ranges[i][1]);
	}
	assert_null(line_table_warning(t));
	line_table_close(t);
}

static void check(size_t version, enum how how, bool copies)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	_cleanup_close_ int fd = -1;

	make_table(&versions[version], how);
	o = open_program(how, at - TABLE, &fd);
	check_names(o);
	check_lines(o, copies);
}

static void every_version(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		check(i, PLAIN, true);
}

static void where_code_begins_is_filled_in(void **state)
{
	(void)state;
	check(1, RELOCATED, true);
	check(2, RELOCATED, true);
	check(1, FOREIGN, false);
	check(2, FOREIGN, false);
	check(2, OWN_SECTION, true);
}

/* Calls that were inlined are left out if they are not surely found. */
static void without_copies(void **state)
{
	(void)state;
	check(1, NO_MODULE, false);
	check(2, NO_MODULE, false);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		check(i, STRANGE_CALLS, false);
}

/* Of a version that is not known, and of a program without any. */
static void no_table(void **state)
{
	struct error e = {.text = ""};
	struct line_table *t = NULL;
	int fd = -1;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct elf_object *o;

		make_table(&versions[2], PLAIN);
		set(TABLE, 0xfffffff2, 4);
		o = open_program(i ? FOREIGN : PLAIN, at - TABLE, &fd);
		assert_false(elf_object_has_symbols(o));
		assert_int_equal(line_table_open(o, NULL, &t, &e), -ENODATA);
		elf_object_close(o);
		(void)close(fd);
	}
}

static int count(const char *file, uint32_t line, void *arg)
{
	assert_true(*file && line);
	++*(size_t *)arg;
	return 0;
}

/* What is cut off is left out, and nothing is read behind it. */
static void every_size(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		size_t most = 0, size;

		make_table(&versions[i], PLAIN);
		size = at - TABLE;
		for (size_t n = 1; n <= size; n++) {
			struct elf_object *o;
			struct line_table *t = NULL;
			size_t lines = 0;
			int fd;

			o = open_program(PLAIN, n, &fd);
			(void)elf_object_has_symbols(o);
			if (line_table_open(o, NULL, &t, NULL) == 0) {
				struct line_location called[4];

				assert_int_equal(line_table_each(t, count, &lines), 0);
				for (uint64_t k = 0; k < 0x140; k++)
					(void)line_table_calls(t, FORGED_CODE + CODE + k,
							       UINT64_MAX, called, 4);
			}
			line_table_close(t);
			elf_object_close(o);
			(void)close(fd);
			assert_true(lines >= most);
			most = lines;
		}
		assert_int_equal(most, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version),  cmocka_unit_test(where_code_begins_is_filled_in),
		cmocka_unit_test(without_copies), cmocka_unit_test(no_table),
		cmocka_unit_test(every_size),
	};

	return cmocka_run_group_tests_name("elf go", tests, NULL, NULL);
}
