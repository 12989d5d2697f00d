/* SPDX-License-Identifier: BSD-2-Clause */
/* Which blocks and edges of a function execute equally often whatever its input is. After Johnson,
 * Pearson and Pingali, The Program Structure Tree (PLDI 1994): with an edge from the exit back to
 * the entry, two edges do if each cycle has both or neither of them, and that is told by one pass
 * over a depth first tree of the graph without directions. Blocks are edges, too: from where they
 * are entered to where they are left. */
#pragma once

#include "elf/flow.h"

#define CLASS_NONE UINT32_MAX /* of a dead block */

struct classes {
	uint32_t *blocks, *edges; /* owned; the class of each of the flow's */
	uint32_t n;
};

/* *ret is the caller's (classes_free). Takes time and memory in proportion to the flow. */
void classes_of(const struct flow *f, struct classes *ret);
void classes_free(struct classes *c);
