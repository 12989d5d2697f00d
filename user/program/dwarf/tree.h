/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of entries of one unit, through libdwarf: for tree.c and lines_instances.c alone. The
 * library is given the unit, its abbreviations and the table of addresses, and nothing else of the
 * file: it reads whole sections, and its 2021 release trips over damaged ones. Every call passes an
 * error pointer: without one the library ends the process. */
#pragma once

#include "program/dwarf/unit.h"

#include <libdwarf/dwarf.h>
#include <libdwarf/libdwarf.h>

/* libdwarf renamed the interface through which it reads an object after its 2021 release, which
 * Debian 12 has. Code uses the names of release 0.11, which Debian 13 has; here the older release
 * gets them. Releases before the renaming do not tell their version. */
#ifdef DW_LIBDWARF_VERSION_MAJOR
typedef Dwarf_Unsigned dwarf_section_index;
typedef Dwarf_Small dwarf_byte_order;
#define DWARF_ASKS_FILE_SIZE
#else
typedef Dwarf_Half dwarf_section_index;
typedef Dwarf_Endianness dwarf_byte_order;
typedef Dwarf_Obj_Access_Interface Dwarf_Obj_Access_Interface_a;
typedef Dwarf_Obj_Access_Methods Dwarf_Obj_Access_Methods_a;
typedef Dwarf_Obj_Access_Section Dwarf_Obj_Access_Section_a;
#undef DW_END_little
#define DW_END_little DW_OBJECT_LSB
#define ai_object object
#define ai_methods methods
#define as_name name
#define as_type type
#define as_size size
#define om_get_section_info get_section_info
#define om_get_byte_order get_byte_order
#define om_get_length_size get_length_size
#define om_get_pointer_size get_pointer_size
#define om_get_section_count get_section_count
#define om_load_section load_section
#define dwarf_object_finish(dwarf) dwarf_object_finish(dwarf, &(Dwarf_Error){NULL})
#endif

struct line_tree {
	Dwarf_Debug dwarf;
	Dwarf_Die root;
	Dwarf_Obj_Access_Interface_a reader;
	unsigned char *info; /* owned */
	size_t n_info;
	const unsigned char *abbrev, *addresses; /* the latter NULL: none */
	size_t n_abbrev, n_addresses;
};

/* @size bytes at @at of @f's .debug_info are the unit. *ret must stay where it is until it is
 * closed. False: damaged. */
bool line_tree_open(struct line_tree *ret, struct debug_file *f, uint64_t at, uint64_t size,
		    uint64_t abbrev_at, uint64_t abbrev_size);
void line_tree_close(struct line_tree *tree);

/* An attribute; form 0 if the entry does not have it. */
struct debug_value line_tree_value(Dwarf_Debug d, Dwarf_Die die, Dwarf_Half name);
/* The same as it stands in the entry: text and references, of which the library, to which the tree
 * is all that there is, makes nothing. @u: the tree's unit. */
struct debug_value line_tree_raw(const struct line_tree *tree, Dwarf_Die die, Dwarf_Half name,
				 const struct debug_unit *u);
/* The entry at @at of the tree; NULL: there is none. To be freed by dwarf_dealloc_die. */
Dwarf_Die line_tree_die(const struct line_tree *tree, uint64_t at);

static inline void dwarf_forget(Dwarf_Debug d, Dwarf_Error *e)
{
	if (*e)
		dwarf_dealloc_error(d, *e);
	*e = NULL;
}
