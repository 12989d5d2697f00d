/* SPDX-License-Identifier: BSD-2-Clause */
/* Loops of a function, found by the jumps that go back. */
#pragma once

#include "program/dwarf/lines.h"

struct elf_object;
struct elf_symbol;

struct code_loop {
	uint64_t jump; /* address of the jump back: it is passed once a round, but for the last */
	/* A line that stands in the loop alone, so that a probe on it is passed every round: that
	 * of the jump if it will do, else the first that does; file NULL: there is none. Owned by
	 * the line table. */
	struct line_location line;
};

/* Calls @cb for each loop of the function in the order of their jumps; stops at non-zero and
 * returns it. -ENOMEM. */
int code_each_loop(const struct elf_object *o, struct line_table *t, const struct elf_symbol *s,
		   int (*cb)(const struct code_loop *loop, void *arg), void *arg);
