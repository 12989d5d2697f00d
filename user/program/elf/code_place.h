/* SPDX-License-Identifier: BSD-2-Clause */
/* May a probe stand there? It replaces a byte: where no instruction begins, it changes what the
 * program computes. Symbols, line tables and notes are what someone wrote down, and data between
 * functions is often called a function; so they are no reason. */
#pragma once

#include "program/elf/cfi.h"
#include "program/elf/flow.h"

struct elf_object;
struct error;

/* What was found out about an object so far. All zero but for the object; code_places_close frees
 * the contents. */
struct code_places {
	const struct elf_object *o;
	struct cfi_extent body; /* the function that was looked at last */
	struct flow flow;	/* of it */
	const char *why;	/* nothing in it is certain, and why; NULL: it is */
	uint64_t *called;	/* where calls and jumps go outside of all functions that call frame
				   information describes, by address */
	size_t n_called;
	bool has_called;
};
void code_places_close(struct code_places *c);

/* 0: an instruction surely begins at @vaddr. A function begins where call frame information (or
 * Go's table) of the file itself says so, or where other functions call or jump to; it consists of
 * instructions from its begin to its end; and something in it leads to @vaddr, or no symbol begins
 * between what is led to and @vaddr. -EINVAL: it is not certain, @e says why; -ENOMEM. */
int code_place_check(struct code_places *c, uint64_t vaddr, struct error *e);

/* The function around @vaddr by the file's call frame information or Go's table. -ENOENT: neither
 * has one, or they overlap. */
int code_body_at(const struct elf_object *o, uint64_t vaddr, struct cfi_extent *ret);
/* Where exceptions are caught in the function around @vaddr, as cfi_pads. */
int code_pads(const struct elf_object *o, uint64_t vaddr, uint64_t **ret, size_t *ret_n);
