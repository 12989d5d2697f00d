// SPDX-License-Identifier: BSD-2-Clause
#include "elf/lines_dwarf.h"
#include "elf/lines_reader.h"

/* A list that the file makes endless is cut. */
#define MAX_RANGES_PER_DIE (1 << 20)

static int old_ranges(Dwarf_Debug d, Dwarf_Die die, Dwarf_Off at, uint64_t base, int (*cb)(uint64_t, uint64_t, void *), void *arg)
{
	Dwarf_Error e = NULL;
	Dwarf_Ranges *list;
	Dwarf_Signed n;
	Dwarf_Unsigned bytes;
	Dwarf_Off real;
	int r = 0;

	if (dwarf_get_ranges_b(d, at, die, &real, &list, &n, &bytes, &e) != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return 0;
	}
	for (Dwarf_Signed i = 0; r == 0 && i < n && list[i].dwr_type != DW_RANGES_END; i++)
		if (list[i].dwr_type == DW_RANGES_ADDRESS_SELECTION)
			base = list[i].dwr_addr2;
		else
			r = cb(base + list[i].dwr_addr1, base + list[i].dwr_addr2, arg);
	dwarf_ranges_dealloc(d, list, n);
	return r;
}

/* The @index-th address of the unit's share of .debug_addr. */
static uint64_t indexed(struct reader *r, const struct line_table *t, const struct unit_bases *b, uint64_t index)
{
	uint64_t v = 0;

	if (b->addresses > t->addresses.n || index >= (t->addresses.n - b->addresses) / 8)
		r->bad = true;
	else
		memcpy(&v, t->addresses.p + b->addresses + index * 8, 8);
	return v;
}

/* A list of DWARF 5 (section 2.17.3). Not through libdwarf: the 2021 release reads past the end of a damaged one. */
static int new_ranges(const struct line_table *t, const struct unit_bases *b, uint64_t at, int (*cb)(uint64_t, uint64_t, void *),
		      void *arg)
{
	struct reader r = {.at = t->lists.p, .end = t->lists.p + t->lists.n};
	uint64_t base = b->low, lo = 0, hi = 0;
	int result = 0;

	if (at >= t->lists.n)
		return 0;
	r.at += at;
	for (int n = 0; result == 0 && n < MAX_RANGES_PER_DIE; n++) {
		unsigned int kind = (unsigned int)fixed(&r, 1);

		switch (kind) {
		case DW_RLE_base_addressx:
			base = indexed(&r, t, b, leb(&r, false));
			break;
		case DW_RLE_base_address:
			base = fixed(&r, 8);
			break;
		case DW_RLE_startx_endx:
			lo = indexed(&r, t, b, leb(&r, false));
			hi = indexed(&r, t, b, leb(&r, false));
			break;
		case DW_RLE_startx_length:
			lo = indexed(&r, t, b, leb(&r, false));
			hi = lo + leb(&r, false);
			break;
		case DW_RLE_offset_pair:
			lo = base + leb(&r, false);
			hi = base + leb(&r, false);
			break;
		case DW_RLE_start_end:
			lo = fixed(&r, 8);
			hi = fixed(&r, 8);
			break;
		case DW_RLE_start_length:
			lo = fixed(&r, 8);
			hi = lo + leb(&r, false);
			break;
		default: /* the end, or nothing to go on with */
			return 0;
		}
		if (r.bad)
			return 0;
		if (kind != DW_RLE_base_addressx && kind != DW_RLE_base_address)
			result = cb(lo, hi, arg);
	}
	return result;
}

static uint64_t section_offset(Dwarf_Debug d, Dwarf_Die die, Dwarf_Half name)
{
	Dwarf_Error e = NULL;
	Dwarf_Attribute attr;
	Dwarf_Off at = 0;
	int r = dwarf_attr(die, name, &attr, &e);

	if (r == DW_DLV_OK) {
		r = dwarf_global_formref(attr, &at, &e);
		dwarf_dealloc_attribute(attr);
	}
	dwarf_forget(d, &e);
	return r == DW_DLV_OK ? at : 0;
}

struct unit_bases dwarf_unit_bases(Dwarf_Debug d, Dwarf_Die unit)
{
	struct unit_bases b = {0};
	Dwarf_Error e = NULL;
	Dwarf_Addr low;

	if (dwarf_lowpc(unit, &low, &e) == DW_DLV_OK)
		b.low = low;
	dwarf_forget(d, &e);
	b.addresses = section_offset(d, unit, DW_AT_addr_base);
	b.lists = section_offset(d, unit, DW_AT_rnglists_base);
	return b;
}

/* A list's place by its number in the unit's table of offsets. Those are of 4 bytes: no unit is of the 64-bit format. */
static bool list_place(const struct line_table *t, const struct unit_bases *b, uint64_t index, Dwarf_Off *ret)
{
	uint32_t offset;

	if (!b->lists || b->lists > t->lists.n || index >= (t->lists.n - b->lists) / 4)
		return false;
	memcpy(&offset, t->lists.p + b->lists + index * 4, 4);
	*ret = b->lists + offset;
	return true;
}

static int listed_ranges(const struct line_table *t, Dwarf_Die die, Dwarf_Attribute attr, const struct unit_bases *b,
			 int (*cb)(uint64_t, uint64_t, void *), void *arg)
{
	Dwarf_Error e = NULL;
	Dwarf_Half version, offset_size, form;
	Dwarf_Off at;
	Dwarf_Unsigned index;
	int r;

	if (dwarf_get_version_of_die(die, &version, &offset_size) != DW_DLV_OK)
		return 0;
	r = dwarf_whatform(attr, &form, &e);
	if (r == DW_DLV_OK && form == DW_FORM_rnglistx) {
		r = dwarf_formudata(attr, &index, &e);
		if (r == DW_DLV_OK && !list_place(t, b, index, &at))
			return 0;
	} else if (r == DW_DLV_OK) {
		r = dwarf_global_formref(attr, &at, &e);
	}
	dwarf_forget(t->dwarf, &e);
	if (r != DW_DLV_OK)
		return 0;
	return version >= 5 ? new_ranges(t, b, at, cb, arg) : old_ranges(t->dwarf, die, at, b->low, cb, arg);
}

int dwarf_die_ranges(const struct line_table *t, Dwarf_Die die, const struct unit_bases *b,
		     int (*cb)(uint64_t lo, uint64_t hi, void *arg), void *arg)
{
	Dwarf_Error e = NULL;
	Dwarf_Attribute attr;
	Dwarf_Addr low, high;
	Dwarf_Half form;
	enum Dwarf_Form_Class class;
	int r;

	if (dwarf_attr(die, DW_AT_ranges, &attr, &e) == DW_DLV_OK) {
		r = listed_ranges(t, die, attr, b, cb, arg);
		dwarf_dealloc_attribute(attr);
		return r;
	}
	dwarf_forget(t->dwarf, &e);
	if (dwarf_lowpc(die, &low, &e) != DW_DLV_OK || dwarf_highpc_b(die, &high, &form, &class, &e) != DW_DLV_OK) {
		dwarf_forget(t->dwarf, &e);
		return 0;
	}
	if (class == DW_FORM_CLASS_CONSTANT)
		high += low;
	return cb(low, high, arg);
}
