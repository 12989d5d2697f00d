/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers on libdwarf's types: for lines_units.c, lines_ranges.c, lines_decode.c and lines_instances.c alone.
 * Every call passes an error pointer: without one the library ends the process. */
#pragma once

#include "elf/lines_private.h"

#include <libdwarf/dwarf.h>
#include <libdwarf/libdwarf.h>

static inline void dwarf_forget(Dwarf_Debug d, Dwarf_Error *e)
{
	if (*e)
		dwarf_dealloc_error(d, *e);
	*e = NULL;
}

/* What a unit's lists of ranges count from. */
struct unit_bases {
	uint64_t low;       /* the unit's low address */
	uint64_t addresses; /* its share of .debug_addr */
	uint64_t lists;     /* its table in .debug_rnglists */
};
struct unit_bases dwarf_unit_bases(Dwarf_Debug d, Dwarf_Die unit);
/* Calls @cb for each address range of a DIE (low and high address, or a list) until it returns non-zero, and returns that. */
int dwarf_die_ranges(const struct line_table *t, Dwarf_Die die, const struct unit_bases *b,
		     int (*cb)(uint64_t lo, uint64_t hi, void *arg), void *arg);
