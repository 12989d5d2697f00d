/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of entries of one unit, through libdwarf: for tree.c and lines_instances.c alone. The library is given the unit,
 * its abbreviations and the table of addresses, and nothing else of the file: it reads whole sections, and its 2021 release trips
 * over damaged ones.
 * Every call passes an error pointer: without one the library ends the process. */
#pragma once

#include "dwarf/unit.h"
#include "dwarf/tree_names.h"

struct line_tree {
	Dwarf_Debug dwarf;
	Dwarf_Die root;
	Dwarf_Obj_Access_Interface_a reader;
	unsigned char *info; /* owned */
	size_t n_info;
	const unsigned char *abbrev, *addresses; /* the latter NULL: none */
	size_t n_abbrev, n_addresses;
};

/* @size bytes at @at of @f's .debug_info are the unit. *ret must stay where it is until it is closed. False: damaged. */
bool line_tree_open(struct line_tree *ret, struct debug_file *f, uint64_t at, uint64_t size, uint64_t abbrev_at, uint64_t abbrev_size);
void line_tree_close(struct line_tree *tree);

/* An attribute; form 0 if the entry does not have it. */
struct debug_value line_tree_value(Dwarf_Debug d, Dwarf_Die die, Dwarf_Half name);

static inline void dwarf_forget(Dwarf_Debug d, Dwarf_Error *e)
{
	if (*e)
		dwarf_dealloc_error(d, *e);
	*e = NULL;
}
