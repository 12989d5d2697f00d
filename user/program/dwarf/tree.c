// SPDX-License-Identifier: BSD-2-Clause
#include "program/dwarf/tree.h"

#include <stdlib.h>

/* More is no unit that a compiler wrote. */
#define MAX_UNIT (1ULL << 30)

enum { SECTION_NONE, SECTION_INFO, SECTION_ABBREV, SECTION_ADDR, N_SECTIONS };

static int section_info(void *object, dwarf_section_index i, Dwarf_Obj_Access_Section_a *ret,
			int *error)
{
	static const char *const names[N_SECTIONS] = {"", ".debug_info", ".debug_abbrev",
						      ".debug_addr"};
	const struct line_tree *tree = object;
	const size_t sizes[N_SECTIONS] = {0, tree->n_info, tree->n_abbrev, tree->n_addresses};

	(void)error;
	if (i >= N_SECTIONS)
		return DW_DLV_NO_ENTRY;
	*ret = (Dwarf_Obj_Access_Section_a){
		.as_name = names[i],
		.as_type = i != SECTION_NONE, /* SHT_PROGBITS */
		.as_size = sizes[i],
	};
	return DW_DLV_OK;
}

static dwarf_byte_order byte_order(void *object)
{
	(void)object;
	return DW_END_little;
}

static Dwarf_Small eight(void *object)
{
	(void)object;
	return 8;
}

static Dwarf_Unsigned section_count(void *object)
{
	(void)object;
	return N_SECTIONS;
}

#ifdef DWARF_ASKS_FILE_SIZE
/* The library refuses sections that are larger. */
static Dwarf_Unsigned file_size(void *object)
{
	const struct line_tree *tree = object;

	return tree->n_info + tree->n_abbrev + tree->n_addresses;
}
#endif

/* The library only reads them. */
static int load_section(void *object, dwarf_section_index i, Dwarf_Small **ret, int *error)
{
	const struct line_tree *tree = object;
	const unsigned char *const bytes[N_SECTIONS] = {NULL, tree->info, tree->abbrev,
							tree->addresses};

	(void)error;
	if (i >= N_SECTIONS || !bytes[i])
		return DW_DLV_NO_ENTRY;
	*ret = (Dwarf_Small *)(uintptr_t)bytes[i];
	return DW_DLV_OK;
}

static const Dwarf_Obj_Access_Methods_a reading = {
	.om_get_section_info = section_info,
	.om_get_byte_order = byte_order,
	.om_get_length_size = eight,
	.om_get_pointer_size = eight,
#ifdef DWARF_ASKS_FILE_SIZE
	.om_get_filesize = file_size,
#endif
	.om_get_section_count = section_count,
	.om_load_section = load_section,
};

static bool open_root(struct line_tree *tree)
{
	Dwarf_Unsigned length, type_offset, next;
	Dwarf_Half version, address_size, offset_size, extension, kind;
	Dwarf_Off abbrev;
	Dwarf_Sig8 signature;
	Dwarf_Error e = NULL;

	tree->reader = (Dwarf_Obj_Access_Interface_a){.ai_object = tree, .ai_methods = &reading};
	if (dwarf_object_init_b(&tree->reader, NULL, NULL, DW_GROUPNUMBER_ANY, &tree->dwarf, &e) !=
	    DW_DLV_OK) {
		dwarf_forget(NULL, &e);
		tree->dwarf = NULL;
		return false;
	}
	if (dwarf_next_cu_header_d(tree->dwarf, true, &length, &version, &abbrev, &address_size,
				   &offset_size, &extension, &signature, &type_offset, &next, &kind,
				   &e) == DW_DLV_OK &&
	    dwarf_siblingof_b(tree->dwarf, NULL, true, &tree->root, &e) == DW_DLV_OK)
		return true;
	dwarf_forget(tree->dwarf, &e);
	tree->root = NULL;
	return false;
}

bool line_tree_open(struct line_tree *ret, struct debug_file *f, uint64_t at, uint64_t size,
		    uint64_t abbrev_at, uint64_t abbrev_size)
{
	size_t n;
	const unsigned char *abbrev = debug_section_bytes(&f->sections[DEBUG_ABBREV], &n);

	*ret = (struct line_tree){0};
	if (!abbrev || abbrev_at >= n || abbrev_size > n - abbrev_at || !size || size > MAX_UNIT ||
	    size > f->sections[DEBUG_INFO].size)
		return false;
	ret->abbrev = abbrev + abbrev_at;
	ret->n_abbrev = abbrev_size;
	ret->addresses = debug_section_bytes(&f->sections[DEBUG_ADDR], &ret->n_addresses);
	ret->info = malloc(size);
	ret->n_info = size;
	if (ret->info &&
	    debug_section_read(&f->sections[DEBUG_INFO], at, ret->info, size) == size &&
	    open_root(ret))
		return true;
	line_tree_close(ret);
	return false;
}

void line_tree_close(struct line_tree *tree)
{
	if (tree->root)
		dwarf_dealloc_die(tree->root);
	if (tree->dwarf)
		(void)dwarf_object_finish(tree->dwarf);
	free(tree->info);
	*tree = (struct line_tree){0};
}

struct debug_value line_tree_value(Dwarf_Debug d, Dwarf_Die die, Dwarf_Half name)
{
	struct debug_value v = {0};
	Dwarf_Error e = NULL;
	Dwarf_Attribute attr;
	Dwarf_Half form = 0;
	Dwarf_Unsigned number = 0;
	Dwarf_Signed sign = 0;
	int r = dwarf_attr(die, name, &attr, &e);

	if (r != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return v;
	}
	r = dwarf_whatform(attr, &form, &e);
	if (r == DW_DLV_OK) {
		switch (form) {
		case DW_FORM_addr:
			r = dwarf_formaddr(attr, &number, &e);
			break;
		case DW_FORM_addrx:
		case DW_FORM_addrx1:
		case DW_FORM_addrx2:
		case DW_FORM_addrx3:
		case DW_FORM_addrx4:
		case DW_FORM_GNU_addr_index:
			r = dwarf_get_debug_addr_index(attr, &number, &e);
			break;
		case DW_FORM_sec_offset:
			r = dwarf_global_formref(attr, &number, &e);
			break;
		case DW_FORM_implicit_const: /* which the library takes for signed */
			r = dwarf_formsdata(attr, &sign, &e);
			number = (Dwarf_Unsigned)sign;
			break;
		default:
			r = dwarf_formudata(attr, &number, &e);
		}
	}
	dwarf_forget(d, &e);
	dwarf_dealloc_attribute(attr);
	if (r == DW_DLV_OK)
		v = (struct debug_value){.form = form, .v = number};
	return v;
}

struct debug_value line_tree_raw(const struct line_tree *tree, Dwarf_Die die, Dwarf_Half name,
				 const struct debug_unit *u)
{
	struct debug_value v = {0};
	struct reader r = {.at = tree->info, .end = tree->info + tree->n_info};
	Dwarf_Error e = NULL;
	Dwarf_Attribute attr;
	Dwarf_Half form = 0;
	Dwarf_Off at = 0;
	int found = dwarf_attr(die, name, &attr, &e);

	if (found != DW_DLV_OK) {
		dwarf_forget(tree->dwarf, &e);
		return v;
	}
	found = dwarf_whatform(attr, &form, &e);
	if (found == DW_DLV_OK)
		found = dwarf_attr_offset(die, attr, &at, &e);
	dwarf_forget(tree->dwarf, &e);
	dwarf_dealloc_attribute(attr);
	if (found != DW_DLV_OK || at > tree->n_info)
		return v;
	r.at += at;
	return debug_form_read(&r, tree->info, u->at, u, form, &v) ? v : (struct debug_value){0};
}

Dwarf_Die line_tree_die(const struct line_tree *tree, uint64_t at)
{
	Dwarf_Error e = NULL;
	Dwarf_Die die;

	if (at < tree->n_info && dwarf_offdie_b(tree->dwarf, at, true, &die, &e) == DW_DLV_OK)
		return die;
	dwarf_forget(tree->dwarf, &e);
	return NULL;
}
