// SPDX-License-Identifier: BSD-2-Clause
/* What the code map makes of forged files: it ends, and keeps no more than they hold. */
#include "program/dwarf/lines_private.h"
#include "program/code/map.h"
#include "program/code/private.h"

#include "base/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf_forged.h"

/* Two units that share one function, the first with a range and a row for each byte: the function
 * is gone through once. */
static void test_many_ranges(void **state)
{
	enum { SIZE = 1 << 18 };
	static const char name[] = "/usr/include/forged.h";
	_cleanup_free_ unsigned char *code = calloc(1, SIZE);
	_cleanup_free_ struct unit_range *ranges = calloc(SIZE, sizeof(*ranges));
	_cleanup_free_ struct line_row *rows = calloc(SIZE + 1, sizeof(*rows));
	_cleanup_free_ struct line_file *file = calloc(1, sizeof(*file) + sizeof(name));
	_cleanup_close_ int fd = -1;
	struct line_unit units[] = {{.rows_state = UNIT_READ,
				     .rows = rows,
				     .n_rows = SIZE + 1,
				     .inlined_state = UNIT_BAD},
				    {.rows_state = UNIT_READ,
				     .rows = rows,
				     .n_rows = SIZE + 1,
				     .inlined_state = UNIT_BAD}};
	struct line_table lines = {.units = units,
				   .n_units = 2,
				   .index = ranges,
				   .n_index = SIZE,
				   .files = &file,
				   .n_files = 1};
	struct forged_symbols symbols = forge_symbols(1);
	struct code_map *m = NULL;
	struct code_object *o;
	const char *line;
	char path[64];

	(void)state;
	assert_true(code && ranges && rows && file);
	memcpy(file->name, name, sizeof(name));
	for (size_t i = 0; i < SIZE; i++) {
		ranges[i] = (struct unit_range){.lo = FORGED_CODE + i, .hi = FORGED_CODE + i + 1};
		rows[i] = (struct line_row){.addr = FORGED_CODE + i, .line = 1};
	}
	ranges[SIZE - 1].unit = 1;
	rows[SIZE] = (struct line_row){.addr = FORGED_CODE + SIZE, .end = 1};
	forge_symbol(&symbols, "work", 0, SIZE);
	fd = forge_elf(
		(struct forged_section[]){
			{".text", code, {.sh_type = SHT_PROGBITS, .sh_size = SIZE}},
			FORGED_SYMBOLS(symbols)},
		3, 0, path);
	assert_int_equal(code_map_open(path, &(struct code_scope){.lenient = true}, &m, NULL), 0);
	o = m->objects[0];
	o->lines = &lines;
	o->lines_tried = true;
	(void)alarm(20);
	assert_int_equal(code_owner_line(m, 0, FORGED_CODE + SIZE - 1, &line), -ENOENT);
	assert_int_equal(o->n_inlined, 0);
	assert_int_equal(code_owner_line(m, 0, FORGED_CODE + SIZE / 2, &line), -ENOENT);
	(void)alarm(0);
	assert_int_equal(o->n_inlined, 1);
	assert_int_equal(o->inlined[0].range.hi - o->inlined[0].range.lo, SIZE);
	o->lines = NULL;
	code_map_close(m);
	forge_symbols_free(&symbols);
}

static void make_files(const char *const names[2], struct line_file *ret[2])
{
	for (size_t i = 0; i < 2; i++) {
		ret[i] = calloc(1, sizeof(**ret) + strlen(names[i]) + 1);
		assert_non_null(ret[i]);
		memcpy(ret[i]->name, names[i], strlen(names[i]));
	}
}

/* Functions that all end in one place, sampled from the last to the first, and code of none: no row
 * is gone through for each of them, and what is not found takes no room. */
static void test_overlapping_functions(void **state)
{
	enum { SIZE = 1 << 18, HALF = SIZE / 2, STEP = 32 };
	static const char *const names[] = {"/src/forged.c", "/usr/include/forged.h"};
	_cleanup_free_ unsigned char *code = calloc(1, SIZE);
	_cleanup_free_ struct line_row *rows = calloc(SIZE + 1, sizeof(*rows));
	struct line_file *files[2];
	struct unit_range range = {.lo = FORGED_CODE, .hi = FORGED_CODE + SIZE};
	struct line_unit unit = {.rows_state = UNIT_READ,
				 .rows = rows,
				 .n_rows = SIZE + 1,
				 .inlined_state = UNIT_BAD};
	struct line_table lines = {.units = &unit,
				   .n_units = 1,
				   .index = &range,
				   .n_index = 1,
				   .files = files,
				   .n_files = 2};
	struct forged_symbols symbols = forge_symbols(HALF / STEP);
	_cleanup_close_ int fd = -1;
	struct code_map *m = NULL;
	struct code_object *o;
	const char *line;
	char path[64];

	(void)state;
	assert_true(code && rows);
	make_files(names, files);
	for (size_t i = 0; i < SIZE; i++)
		rows[i] = (struct line_row){
			.addr = FORGED_CODE + i, .file = i % STEP != 0, .line = 1};
	rows[SIZE] = (struct line_row){.addr = FORGED_CODE + SIZE, .end = 1};
	for (size_t i = 0; i < HALF; i += STEP)
		forge_symbol(&symbols, "work", i, HALF - i);
	fd = forge_elf(
		(struct forged_section[]){
			{".text", code, {.sh_type = SHT_PROGBITS, .sh_size = SIZE}},
			FORGED_SYMBOLS(symbols)},
		3, 0, path);
	assert_int_equal(code_map_open(path, &(struct code_scope){.lenient = true}, &m, NULL), 0);
	o = m->objects[0];
	o->lines = &lines;
	o->lines_tried = true;
	(void)alarm(30);
	for (size_t i = HALF; i < SIZE; i++)
		if (i % STEP)
			assert_int_equal(code_owner_line(m, 0, FORGED_CODE + i, &line), -ENOENT);
	assert_int_equal(o->n_inlined, 0);
	for (size_t i = HALF; i; i -= STEP) {
		assert_int_equal(code_owner_line(m, 0, FORGED_CODE + i - 1, &line), 0);
		assert_string_equal(line, "/src/forged.c:1");
	}
	(void)alarm(0);
	assert_int_equal(o->n_inlined, HALF / STEP);
	for (size_t i = 0; i < o->n_inlined; i++)
		assert_int_equal(o->inlined[i].range.lo, FORGED_CODE + i * STEP + 1);
	o->lines = NULL;
	code_map_close(m);
	forge_symbols_free(&symbols);
	free(files[0]);
	free(files[1]);
}

/* Copies that lie over each other, as one copy's ranges can in a forged file. */
static void test_overlapping_copies(void **state)
{
	enum { COPIES = 1 << 19 };
	static const char *const names[] = {"/usr/include/forged.h", "/src/a.c"};
	_cleanup_free_ struct line_inlined *all = calloc(COPIES, sizeof(*all));
	_cleanup_free_ size_t *stack = calloc(COPIES + 1, sizeof(*stack));
	struct line_file *files[2];
	struct line_table lines = {.files = files, .n_files = 2};
	struct code_map m = {0};
	struct inline_sweep w = {.m = &m, .t = &lines, .all = all, .n = COPIES, .stack = stack};
	struct line_location owner;
	bool found = false;

	(void)state;
	assert_true(all && stack);
	make_files(names, files);
	for (size_t i = 0; i < COPIES; i++)
		all[i] = (struct line_inlined){{i, COPIES}, 0, 1};
	all[COPIES - 100].file = 1;
	all[COPIES - 100].line = 7;
	(void)alarm(60);
	for (uint64_t addr = 0; addr < COPIES; addr++)
		found = inline_sweep_owner(&w, addr, &owner);
	(void)alarm(0);
	assert_true(found);
	assert_int_equal(owner.line, 7);
	free(files[0]);
	free(files[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_ranges),
		cmocka_unit_test(test_overlapping_functions),
		cmocka_unit_test(test_overlapping_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
