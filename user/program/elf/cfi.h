/* SPDX-License-Identifier: BSD-2-Clause */
/* How to walk the stack from each address of an object: .eh_frame (DWARF call frame information),
 * executed once into rows. Trusts nothing in the file. */
#pragma once

#include "shared/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_object;
struct error;

struct cfi_table {
	uint64_t base;	      /* the object's own numbering: its lowest code address */
	struct abi_row *rows; /* ascending, no two at one pc; the first is at 0, the last is of kind
				 ABI_ROW_NONE, which also says what no row can say. What is in scope
				 is not said */
	size_t n;
};

/* The rows of an object. On success the rows are the caller's (cfi_table_free). Errors: -ENODATA
 * (no call frame information), -EBADMSG (malformed), -E2BIG (more than @max_rows rows, or code that
 * spans 4 GiB), -ENOMEM; @e names the object. */
int cfi_table_read(const struct elf_object *o, size_t max_rows, struct cfi_table *ret,
		   struct error *e);
void cfi_table_free(struct cfi_table *t);

/* A function as call frame information has it: from its first byte to behind its last. */
struct cfi_extent {
	uint64_t lo, hi;
	uint64_t handlers; /* address of the table that says where exceptions are caught
			      (.gcc_except_table); 0: none */
};

static inline bool cfi_extents_hold(const struct cfi_extent *all, size_t n, uint64_t vaddr)
{
	for (size_t i = 0; i < n; i++)
		if (vaddr >= all[i].lo && vaddr < all[i].hi)
			return true;
	return false;
}

/* cfi_pads.c: where exceptions are caught in that function, in no order, at most some thousand.
 * *ret is the caller's (free), also after -ENOMEM; a table that makes no sense ends where it does.
 */
int cfi_pads(const struct elf_object *o, const struct cfi_extent *at, uint64_t **ret,
	     size_t *ret_n);

/* The bytes of a section, as cfi_table_read finds them: what the tests and the fuzzer drive. */
struct cfi_section {
	const char *name; /* of the object, for errors */
	const uint8_t *bytes;
	size_t size;
	uint64_t vaddr;		   /* of the first byte */
	uint64_t code_lo, code_hi; /* entries for code outside of this are left out; code_lo becomes
				      the base */
	size_t max_rows;
	int stop_at_zero; /* the size is only a bound: an entry of length zero is the end */
};
/* The functions that the section describes, by address, each start once. *ret is the caller's
 * (free). Errors as of cfi_table_read. */
int cfi_section_extents(const struct cfi_section *s, struct cfi_extent **ret, size_t *ret_n,
			struct error *e);
/* As cfi_table_read. */
int cfi_section_parse(const struct cfi_section *s, struct cfi_table *ret, struct error *e);
