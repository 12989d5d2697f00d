/* SPDX-License-Identifier: BSD-2-Clause */
/* Which blocks and edges of a function execute equally often whatever its input is. With an edge
 * from the exit back to the entry, two edges do if each cycle has both or neither of them (Johnson,
 * Pearson and Pingali, The Program Structure Tree, PLDI 1994); directions do not matter. Blocks are
 * edges, too: from where they are entered to where they are left. All cycles are made of those that
 * edges close with a spanning tree. Each of these has a random number, and edges that are in the
 * same ones have the same exclusive or of the numbers; others do by a chance of 2^-64 (Pritchard
 * and Thurimella, Fast Computation of Small Cuts via Cycle Space Sampling, ACM Transactions on
 * Algorithms 7, 2011). */
#pragma once

#include "program/elf/flow.h"

#define CLASS_NONE UINT32_MAX /* of a dead block */

struct classes {
	uint32_t *blocks, *edges; /* owned; the class of each of the flow's */
	uint32_t n;
};

/* *ret is the caller's (classes_free). Takes memory in proportion to the flow, and the time
 * of sorting it. */
void classes_of(const struct flow *f, struct classes *ret);
void classes_free(struct classes *c);
