/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of jumps, as compilers write them for a switch. Internal to the package. */
#pragma once

#include "program/elf/flow.h"

struct jump_table {
	uint32_t jump;	   /* the instruction that jumps by it */
	uint64_t *targets; /* owned */
	size_t n;
	size_t n_longest; /* of targets: the words that follow the table and could be targets are
			     among them, in case the comparison was that of another index */
};

/* Looks for the table of the indirect jump @jump among the instructions before it: where the table
 * is, and the comparison that bounds its index. n = 0: none was found, or one of its targets is no
 * instruction of the function. -ENOMEM. */
int jump_table_find(const struct flow *f, const struct code *c, size_t jump, flow_table read,
		    void *arg, struct jump_table *ret);
