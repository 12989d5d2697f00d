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

/* Calls @cb for each address range of a DIE (low and high address, or a range list; @base is the unit's low address, for lists of
 * DWARF 4 and before), until it returns non-zero, and returns that. */
int dwarf_die_ranges(Dwarf_Debug d, Dwarf_Die die, uint64_t base, int (*cb)(uint64_t lo, uint64_t hi, void *arg), void *arg);
/* The unit's low address, 0 without one. */
uint64_t dwarf_die_low(Dwarf_Debug d, Dwarf_Die die);
