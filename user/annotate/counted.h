/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in a function probes can stand that count how often its blocks are executed. */
#pragma once

#include "annotate/classes.h"

struct counted_place {
	uint64_t vaddr;
	uint32_t class; /* of blocks */
};

/* Finds one place for each class of blocks, on the cheapest instruction of the class. A probe
 * overwrites a byte, so it may stand only where an instruction surely begins. Data between
 * functions, or a table of jumps in the text, can look like code. An instruction counts as sure if
 * a sample was found at it (@found, of each instruction), if it is the function's first and @begins
 * says that this is certain, or if the CPU goes on to it from a sure one. The instruction after a
 * call is not sure: the call may never return. What samples say is not proved: whoever puts probes
 * there asks code_place_check as well. *ret is the caller's (free). */
void counted_places(const struct flow *f, const struct classes *c, const double *found, bool begins,
		    struct counted_place **ret, size_t *ret_n);
