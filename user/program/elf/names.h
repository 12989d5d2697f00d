/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and functions are not one to one: several functions can be one piece of code, and several
 * functions can have one name. Both make a point count something else than what was meant. */
#pragma once

#include "program/elf/object.h"

#define ELF_MOST_NAMES 32

struct elf_names {
	char **all; /* owned, readable */
	size_t n;   /* at most ELF_MOST_NAMES */
	bool more;  /* there are others */
};
void elf_names_free(struct elf_names *n); /* frees the contents */
#define _cleanup_elf_names_ __attribute__((cleanup(elf_names_free)))

/* "b, c and 3 more" ("over 28 more" if not all are known), without @except and its aliases by name
 * (NULL: all). The caller frees. NULL: out of memory. */
char *elf_names_join(const struct elf_names *n, const char *except);

/* The functions that share the code which begins at @vaddr, one readable name each, the one first
 * that elf_object_function_at returns: a compiler or linker has folded functions that had the same
 * instructions. ret->n is 0 where there is one function or none. Plain aliases are one function:
 *  - names that differ in leading underscores, _IO_, __libc_ or a 64 behind them, or in what
 *    compilers append, and versions of a symbol;
 *  - a weak and a strong name of C;
 *  - what reads the same in C++ and Rust, such as the constructors of one class.
 * @by_source: so are instances of one template, which have their source lines in common.
 * Of very many symbols at one address the first ones alone are looked at: a file can have any
 * number. -ENOMEM. The contents of *ret are the caller's. */
int elf_object_sharers(const struct elf_object *o, uint64_t vaddr, bool by_source,
		       struct elf_names *ret);
/* The functions that @name means equally well, if there are several: static ones of the same name
 * that nothing exported has, and those of C++ that differ in arguments which @name does not have.
 * At most @max; returns how many, 0 if it is clear which one is meant or there is none. -ENOMEM. */
int elf_object_namesakes(const struct elf_object *o, const char *name, struct elf_symbol *ret,
			 size_t max);
