// SPDX-License-Identifier: BSD-2-Clause
#include "program/dwarf/split.h"

#include <libdwarf/dwarf.h>

/* A .dwo has one compilation unit and type units. */
#define MAX_UNITS (1 << 16)
/* Columns of a package's index: sections that units have a share of. */
#define MAX_COLUMNS 16

uint64_t debug_skeleton_id(const struct debug_unit *u, const struct debug_root *root)
{
	if (!root->values[ROOT_DWO_NAME].form)
		return 0;
	return u->version >= 5 ? u->dwo_id : root->values[ROOT_DWO_ID].v;
}

/* The header as it stands in the unit's own share. */
static void rebase(struct debug_split *s, const struct debug_unit *u)
{
	s->unit = *u;
	s->unit.root -= u->at;
	s->unit.end -= u->at;
	s->unit.at = 0;
	s->parts[DW_SECT_INFO] = (struct debug_part){u->at, u->end - u->at};
}

bool debug_split_single(struct debug_file *dwo, uint64_t id, struct debug_split *ret)
{
	struct debug_split s = {.file = dwo, .owned = true};
	struct debug_roots roots = {.file = dwo};
	struct debug_root root;
	struct debug_unit u;
	uint64_t at = 0;

	s.parts[DW_SECT_ABBREV].size = dwo->sections[DEBUG_ABBREV].size;
	s.parts[DW_SECT_RNGLISTS].size = dwo->sections[DEBUG_RNGLISTS].size;
	s.parts[DW_SECT_LINE].size = dwo->sections[DEBUG_LINE].size;
	for (int i = 0; i < MAX_UNITS && debug_unit_read(dwo, at, &u); i++, at = u.end) {
		if (u.version >= 5 ? u.kind != DW_UT_split_compile || u.dwo_id != id
				   : !debug_root_read(&roots, &u, &root) ||
					     root.values[ROOT_DWO_ID].v != id)
			continue;
		rebase(&s, &u);
		*ret = s;
		return true;
	}
	return false;
}

/* The index: a header, a hash table of ids, one of row numbers, and two tables of rows: offsets and
 * sizes. */
struct package_index {
	const unsigned char *ids, *rows, *columns, *offsets, *sizes;
	uint32_t n_columns, n_units, n_slots;
};

static uint32_t word_at(const unsigned char *p, uint64_t index)
{
	uint32_t v;

	memcpy(&v, p + index * 4, 4);
	return v;
}

static bool open_index(struct debug_file *package, struct package_index *ret)
{
	size_t n;
	const unsigned char *p = debug_section_bytes(&package->sections[DEBUG_CU_INDEX], &n);
	struct package_index x;
	uint64_t need;
	uint32_t version;

	if (!p || n < 16)
		return false;
	version = word_at(p, 0) & 0xffff; /* 2: a word; 5: a half and padding */
	x.n_columns = word_at(p, 1);
	x.n_units = word_at(p, 2);
	x.n_slots = word_at(p, 3);
	if ((version != 2 && version != 5) || !x.n_columns || x.n_columns > MAX_COLUMNS ||
	    !x.n_slots || x.n_slots & (x.n_slots - 1))
		return false;
	need = 16 + 12ULL * x.n_slots + 4ULL * x.n_columns + 8ULL * x.n_columns * x.n_units;
	if (need > n)
		return false;
	x.ids = p + 16;
	x.rows = x.ids + 8ULL * x.n_slots;
	x.columns = x.rows + 4ULL * x.n_slots;
	x.offsets = x.columns + 4ULL * x.n_columns;
	x.sizes = x.offsets + 4ULL * x.n_columns * x.n_units;
	*ret = x;
	return true;
}

/* The row of @id, from 1; 0: it is not there. */
static uint32_t find_row(const struct package_index *x, uint64_t id)
{
	uint32_t mask = x->n_slots - 1, slot = (uint32_t)id & mask,
		 step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t i = 0; i < x->n_slots; i++, slot = (slot + step) & mask) {
		uint32_t row = word_at(x->rows, slot);
		uint64_t here;

		memcpy(&here, x->ids + 8ULL * slot, 8);
		if (!row || row > x->n_units)
			return 0;
		if (here == id)
			return row;
	}
	return 0;
}

bool debug_split_packaged(struct debug_file *package, uint64_t id, struct debug_split *ret)
{
	struct debug_split s = {.file = package};
	const struct debug_part *info = &s.parts[DW_SECT_INFO];
	struct package_index x;
	struct debug_unit u;
	uint32_t row;

	if (!open_index(package, &x))
		return false;
	row = find_row(&x, id);
	for (uint32_t i = 0; row && i < x.n_columns; i++) {
		uint64_t cell = (row - 1ULL) * x.n_columns + i;
		uint32_t section = word_at(x.columns, i);

		if (section <= DW_SECT_RNGLISTS)
			s.parts[section] = (struct debug_part){word_at(x.offsets, cell),
							       word_at(x.sizes, cell)};
	}
	if (!info->size || !debug_unit_read(package, info->at, &u) || u.end - u.at > info->size)
		return false;
	rebase(&s, &u);
	*ret = s;
	return true;
}

void debug_split_close(struct debug_split *s)
{
	if (s->owned)
		debug_file_close(s->file);
	*s = (struct debug_split){0};
}
