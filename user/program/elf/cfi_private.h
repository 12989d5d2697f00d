/* SPDX-License-Identifier: BSD-2-Clause */
/* What the cfi*.c files share. */
#pragma once

#include "program/elf/cfi.h"
#include "program/elf/numbers.h"

#include <stdbool.h>

/* Of the @n bytes at @vaddr of an object. */
static inline struct reader cfi_reader(const unsigned char *bytes, size_t n, uint64_t vaddr)
{
	return (struct reader){
		.at = bytes, .end = bytes + n, .shift = vaddr - (uint64_t)(uintptr_t)bytes};
}

/* Of DW_EH_PE_*, what the next three bits make it relative to left out. */
#define CFI_PE_FORMAT 0x0f
/* A pointer in encoding @pe (DW_EH_PE_*), absolute or pcrel; other bases are bad: on x86-64 nothing
 * defines them for code addresses. */
uint64_t cfi_pointer(struct reader *c, uint8_t pe);
/* Passes over a pointer of any encoding. */
void cfi_skip_pointer(struct reader *c, uint8_t pe);

/* Where a register of the caller is. */
enum cfi_rule { RULE_SAME, RULE_OFFSET, RULE_UNDEFINED, RULE_AT_RBP, RULE_OTHER };

struct cfi_register {
	enum cfi_rule rule;
	int64_t offset; /* RULE_OFFSET: from the CFA */
};

enum cfi_cfa { CFA_NONE, CFA_REGISTER, CFA_PLT, CFA_DRAP };

struct cfi_state {
	enum cfi_cfa cfa;
	uint64_t cfa_register;
	int64_t cfa_offset;	 /* CFA_PLT: the first byte of a stub at which its push is done;
				    CFA_DRAP: of the CFA's place from rbp */
	int64_t register_offset; /* the last one from a register, through expressions, */
	bool has_offset;	 /* if there was one */
	struct cfi_register rbp, ra;
};

#define CFI_MAX_REMEMBERED 64

struct cfi_cie {
	uint64_t offset; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	uint8_t fde_encoding, handlers_encoding; /* DW_EH_PE_*; that of the handlers is
						    DW_EH_PE_omit where functions have none */
	bool augmented, signal_frame;
	struct cfi_state initial;
};

/* Rows as they come, not yet merged between entries. */
struct cfi_rows {
	struct abi_row *all;
	size_t n, max;
};

/* cfi.c: as cfi_table_read, in this process. */
int cfi_table_read_here(const struct elf_object *o, size_t max_rows, struct cfi_table *ret,
			struct error *e);

/* The functions that @o's call frame information describes, as cfi_section_extents. */
int cfi_extents_read_here(const struct elf_object *o, struct cfi_extent **ret, size_t *ret_n,
			  struct error *e);

/* Executes a CIE's own program. -EBADMSG. */
int cfi_run_cie(struct cfi_cie *cie, struct reader program);
/* Executes an FDE's program over [lo, hi) and appends a row at lo and wherever something changes.
 * -EBADMSG, -E2BIG, -ENOMEM. */
int cfi_run_fde(const struct cfi_cie *cie, struct reader program, uint64_t lo, uint64_t hi,
		uint64_t base, struct cfi_rows *out);
/* Appends @row unless the last of the rows from @first on says the same. -E2BIG, -ENOMEM. */
int cfi_add_row(struct cfi_rows *out, size_t first, struct abi_row row);
