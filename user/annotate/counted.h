/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in a function probes can stand that count how often its blocks are executed. */
#pragma once

#include "annotate/classes.h"

struct counted_place {
	uint64_t vaddr;
	uint32_t class; /* of blocks */
};

/* One place for each class of blocks that has one, on its cheapest instruction. A probe overwrites a byte, so it may stand only where an instruction
 * surely begins: not where a table of jumps, or data, may be taken for code. That is where a sample was found (@found, of each instruction), since
 * the CPU was there; at the function's begin; and where the CPU goes on from there without a call, since that may not come back. *ret is the
 * caller's (free). -ENOMEM. */
int counted_places(const struct flow *f, const struct classes *c, const double *found, struct counted_place **ret, size_t *ret_n);
