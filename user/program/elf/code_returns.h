/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a function is left: its returns, and its jumps to other functions, which return in its
 * place. Probes there count what a probe that replaces the return address would count, and change
 * nothing on the stack: a function may begin on one thread and return on another. */
#pragma once

#include "program/elf/cfi.h"
#include "program/elf/code.h"

struct elf_object;
struct elf_symbol;
struct error;

#define CODE_MAX_PARTS 4

/* When an instruction leaves the function. */
enum code_when {
	CODE_ALWAYS,
	CODE_BY_FLAGS,	/* a branch out of the function, if it is taken */
	CODE_BY_TARGET, /* a jump to an address that is in none of the function's parts, if it goes
			   there */
};

struct code_exit {
	uint64_t vaddr;
	enum code_cost cost;
	enum code_when when;
	int condition;				 /* CODE_BY_FLAGS: as in struct code_instruction */
	struct code_target target;		 /* CODE_BY_TARGET */
	struct cfi_extent parts[CODE_MAX_PARTS]; /* ... of the function */
	size_t n_parts;
};

/* All exits of the function that begins at s->addr, with its cold code and other parts that it was
 * split into. Its unwinding (exceptions, longjmp) is none. *ret is the caller's (free).
 * -EOPNOTSUPP: the function cannot be decoded as a whole, or shares code with others, or never
 * returns: @e says which; -ENOMEM. */
int code_exits(const struct elf_object *o, const struct elf_symbol *s, struct code_exit **ret,
	       size_t *ret_n, struct error *e);
