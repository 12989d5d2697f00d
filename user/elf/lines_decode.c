// SPDX-License-Identifier: BSD-2-Clause
#include "elf/lines_dwarf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A program has few files; the numbers in a hostile header are only counts. */
#define MAX_FILE_NUMBERS (1 << 20)
#define MAX_PATH 4096

static int open_die(struct line_table *t, uint64_t offset, Dwarf_Die *ret)
{
	Dwarf_Error e = NULL;

	if (dwarf_offdie_b(t->dwarf, offset, true, ret, &e) == DW_DLV_OK)
		return 0;
	dwarf_forget(t->dwarf, &e);
	return -1;
}

/* Points into the section: valid while the table is open. */
static const char *comp_dir_of(Dwarf_Debug d, Dwarf_Die die)
{
	Dwarf_Error e = NULL;
	Dwarf_Attribute attr;
	char *s;
	int r = dwarf_attr(die, DW_AT_comp_dir, &attr, &e);

	if (r == DW_DLV_OK) {
		r = dwarf_formstring(attr, &s, &e);
		dwarf_dealloc_attribute(attr);
	}
	if (r == DW_DLV_OK)
		return s;
	dwarf_forget(d, &e);
	return NULL;
}

/* The directory of a file, possibly relative to the unit's; NULL: the unit's own. */
static const char *directory(Dwarf_Debug d, Dwarf_Line_Context c, Dwarf_Unsigned version, Dwarf_Unsigned number)
{
	Dwarf_Error e = NULL;
	Dwarf_Signed n;
	const char *s;

	if (version < 5 && !number)
		return NULL;
	if (dwarf_srclines_include_dir_count(c, &n, &e) == DW_DLV_OK && number < (Dwarf_Unsigned)n + (version < 5) &&
	    dwarf_srclines_include_dir_data(c, (Dwarf_Signed)number, &s, &e) == DW_DLV_OK)
		return s;
	dwarf_forget(d, &e);
	return NULL;
}

static uint32_t intern(struct line_table *t, const char *comp_dir, const char *dir, const char *name)
{
	char path[MAX_PATH];
	int n;

	if (!dir || !*dir || *name == '/')
		return line_file_intern(t, comp_dir, name);
	n = snprintf(path, sizeof(path), "%s/%s", dir, name);
	return n < 0 || (size_t)n >= sizeof(path) ? NO_FILE : line_file_intern(t, comp_dir, path);
}

static bool read_names(struct line_table *t, struct line_unit *u, Dwarf_Line_Context c, Dwarf_Unsigned version,
		       const char *comp_dir)
{
	Dwarf_Error e = NULL;
	Dwarf_Signed base, count, end;
	Dwarf_Unsigned dir, time, length;
	Dwarf_Form_Data16 *md5;
	const char *name;

	if (dwarf_srclines_files_indexes(c, &base, &count, &end, &e) != DW_DLV_OK) {
		dwarf_forget(t->dwarf, &e);
		return false;
	}
	if (base < 0 || end < base || end > MAX_FILE_NUMBERS)
		return false;
	u->numbers = reallocarray(NULL, (size_t)end + 1, sizeof(*u->numbers));
	u->files = reallocarray(NULL, (size_t)end + 1, sizeof(*u->files));
	if (!u->numbers || !u->files)
		return false;
	for (Dwarf_Signed i = 0; i < end; i++) {
		uint32_t id = NO_FILE;

		if (i >= base && dwarf_srclines_files_data_b(c, i, &name, &dir, &time, &length, &md5, &e) == DW_DLV_OK && name)
			id = intern(t, comp_dir, directory(t->dwarf, c, version, dir), name);
		dwarf_forget(t->dwarf, &e);
		u->numbers[u->n_numbers++] = id;
		if (id != NO_FILE)
			u->files[u->n_files++] = id;
	}
	return true;
}

static bool read_header(struct line_table *t, struct line_unit *u, Dwarf_Die die)
{
	Dwarf_Error e = NULL;
	Dwarf_Unsigned version;
	Dwarf_Small tables;
	Dwarf_Line_Context context;
	bool ok;

	if (dwarf_srclines_b(die, &version, &tables, &context, &e) != DW_DLV_OK) {
		dwarf_forget(t->dwarf, &e);
		return false;
	}
	ok = read_names(t, u, context, version, comp_dir_of(t->dwarf, die));
	dwarf_srclines_dealloc_b(context);
	return ok;
}

static int by_id(const void *pa, const void *pb)
{
	const uint32_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static size_t unique(uint32_t *ids, size_t n)
{
	size_t used = 0;

	if (n)
		qsort(ids, n, sizeof(*ids), by_id);
	for (size_t i = 0; i < n; i++)
		if (!used || ids[used - 1] != ids[i])
			ids[used++] = ids[i];
	return used;
}

bool line_unit_files(struct line_table *t, struct line_unit *u)
{
	Dwarf_Die die;

	if (u->files_state != UNIT_UNREAD)
		return u->files_state == UNIT_READ;
	u->files_state = UNIT_BAD;
	if (open_die(t, u->die, &die) == 0) {
		if (read_header(t, u, die))
			u->files_state = UNIT_READ;
		dwarf_dealloc_die(die);
	}
	u->n_files = unique(u->files, u->n_files);
	if (u->files_state == UNIT_BAD)
		t->bad++;
	return u->files_state == UNIT_READ;
}

bool line_unit_rows(struct line_table *t, struct line_unit *u)
{
	if (u->rows_state != UNIT_UNREAD)
		return u->rows_state == UNIT_READ;
	u->rows_state = UNIT_BAD;
	if (!line_unit_files(t, u)) /* which counts it */
		return false;
	if (line_program_run(t, u)) {
		u->rows_state = UNIT_READ;
		t->decoded++;
	} else {
		t->bad++;
	}
	free(u->numbers);
	u->numbers = NULL;
	u->n_numbers = 0;
	return u->rows_state == UNIT_READ;
}
