/* SPDX-License-Identifier: BSD-2-Clause */
/* Split units (-gsplit-dwarf): what a skeleton unit leaves out is in a file of its own (.dwo), or
 * in a package (.dwp) of them. */
#pragma once

#include "program/dwarf/unit.h"

#include <libdwarf/dwarf.h>

struct debug_part {
	uint64_t at, size;
};

struct debug_split {
	struct debug_file *file;
	bool owned;		/* a .dwo: closed by debug_split_close; a package lives on */
	struct debug_unit unit; /* its places count from its share of .debug_info.dwo */
	/* Its shares of the file's sections, by DW_SECT_*. Version 2 of a package's index has other
	 * sections at DW_SECT_LOCLISTS and above; its units have no use for these. */
	struct debug_part parts[DW_SECT_RNGLISTS + 1];
};

/* The id that ties a skeleton to its split unit; 0: @root is no skeleton's. */
uint64_t debug_skeleton_id(const struct debug_unit *u, const struct debug_root *root);
/* The unit with @id in @package. False: it has none. */
bool debug_split_packaged(struct debug_file *package, uint64_t id, struct debug_split *ret);
/* The unit with @id in a .dwo file; on success the file is owned by *ret. */
bool debug_split_single(struct debug_file *dwo, uint64_t id, struct debug_split *ret);
void debug_split_close(struct debug_split *s);
