// SPDX-License-Identifier: BSD-2-Clause
#include "elf/lines_dwarf.h"

/* A list that the file makes endless is cut. */
#define MAX_RANGES_PER_DIE (1 << 20)

uint64_t dwarf_die_low(Dwarf_Debug d, Dwarf_Die die)
{
	Dwarf_Error e = NULL;
	Dwarf_Addr low;

	if (dwarf_lowpc(die, &low, &e) == DW_DLV_OK)
		return low;
	dwarf_forget(d, &e);
	return 0;
}

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

static int new_ranges(Dwarf_Debug d, Dwarf_Attribute attr, Dwarf_Half form, Dwarf_Unsigned value,
		      int (*cb)(uint64_t, uint64_t, void *), void *arg)
{
	Dwarf_Error e = NULL;
	Dwarf_Rnglists_Head head;
	Dwarf_Unsigned n, at, raw1, raw2, lo, hi;
	Dwarf_Bool missing;
	unsigned int len, kind;
	int r = 0;

	if (dwarf_rnglists_get_rle_head(attr, form, value, &head, &n, &at, &e) != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return 0;
	}
	for (Dwarf_Unsigned i = 0; r == 0 && i < n && i < MAX_RANGES_PER_DIE; i++) {
		missing = false;
		if (dwarf_get_rnglists_entry_fields_a(head, i, &len, &kind, &raw1, &raw2, &missing, &lo, &hi, &e) != DW_DLV_OK) {
			dwarf_forget(d, &e);
			break;
		}
		if (kind == DW_RLE_end_of_list)
			break;
		if (!missing && kind != DW_RLE_base_address && kind != DW_RLE_base_addressx)
			r = cb(lo, hi, arg);
	}
	dwarf_dealloc_rnglists_head(head);
	return r;
}

static int listed_ranges(Dwarf_Debug d, Dwarf_Die die, Dwarf_Attribute attr, uint64_t base,
			 int (*cb)(uint64_t, uint64_t, void *), void *arg)
{
	Dwarf_Error e = NULL;
	Dwarf_Half version, offset_size, form;
	Dwarf_Off at;
	Dwarf_Unsigned index;
	int r;

	if (dwarf_get_version_of_die(die, &version, &offset_size) != DW_DLV_OK ||
	    dwarf_whatform(attr, &form, &e) != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return 0;
	}
	if (form == DW_FORM_rnglistx) {
		r = dwarf_formudata(attr, &index, &e);
	} else {
		r = dwarf_global_formref(attr, &at, &e);
		index = at;
	}
	if (r != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return 0;
	}
	return version >= 5 ? new_ranges(d, attr, form, index, cb, arg) : old_ranges(d, die, at, base, cb, arg);
}

int dwarf_die_ranges(Dwarf_Debug d, Dwarf_Die die, uint64_t base, int (*cb)(uint64_t lo, uint64_t hi, void *arg), void *arg)
{
	Dwarf_Error e = NULL;
	Dwarf_Attribute attr;
	Dwarf_Addr low, high;
	Dwarf_Half form;
	enum Dwarf_Form_Class class;
	int r;

	if (dwarf_attr(die, DW_AT_ranges, &attr, &e) == DW_DLV_OK) {
		r = listed_ranges(d, die, attr, base, cb, arg);
		dwarf_dealloc_attribute(attr);
		return r;
	}
	dwarf_forget(d, &e);
	if (dwarf_lowpc(die, &low, &e) != DW_DLV_OK || dwarf_highpc_b(die, &high, &form, &class, &e) != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return 0;
	}
	if (class == DW_FORM_CLASS_CONSTANT)
		high += low;
	return cb(low, high, arg);
}
