/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of units and their root entries (DWARF 2 to 5, 7.5 of the standard), read from the file
 * where they are: what a program of thousands of units costs to open is their roots, not the trees
 * below them. */
#pragma once

#include "program/elf/debug_file.h"
#include "program/elf/numbers.h"

struct debug_unit {
	uint64_t at, end; /* in .debug_info */
	uint64_t root;	  /* its root entry */
	uint64_t abbrev;  /* in .debug_abbrev */
	uint64_t dwo_id;  /* 0: none said */
	unsigned int version, kind /* DW_UT_*; before version 5: 0 */, address_size,
		word /* of offsets: 4 or 8 */;
};

/* An attribute as it stands in the entry: a number, an address, an offset or an index by its form;
 * form 0: absent. */
struct debug_value {
	unsigned int form;
	uint64_t v; /* an inline string: where it is in .debug_info */
};

enum debug_attribute {
	ROOT_PROGRAM,
	ROOT_COMP_DIR,
	ROOT_LOW,
	ROOT_HIGH,
	ROOT_RANGES,
	ROOT_ADDR_BASE,
	ROOT_LISTS_BASE,
	ROOT_STRINGS_BASE,
	ROOT_OLD_RANGES_BASE,
	ROOT_DWO_NAME,
	ROOT_DWO_ID,
	N_ROOT_ATTRIBUTES,
};

struct debug_root {
	struct debug_value values[N_ROOT_ATTRIBUTES];
};

/* What reading roots remembers: which bytes of .debug_abbrev a description was found at. */
struct debug_roots {
	struct debug_file *file;
	struct known_abbrev {
		uint64_t table, code, at; /* at 0: empty */
	} known[64];
	uint64_t work; /* bytes of .debug_abbrev looked at: hostile units could all search the whole
			  section */
};

/* The length that a unit or table begins with, and of how many bytes offsets in it are: 4 or 8. */
uint64_t debug_length(struct reader *r, unsigned int *ret_word);
/* The unit at @at. False: there is none, or it is damaged (then nothing behind it can be found). */
bool debug_unit_read(struct debug_file *f, uint64_t at, struct debug_unit *ret);
bool debug_root_read(struct debug_roots *r, const struct debug_unit *u, struct debug_root *ret);
/* A value that is text: at most @size bytes with the end. False: absent, or not available (the
 * alternate file is missing). */
bool debug_value_string(struct debug_file *f, const struct debug_unit *u,
			const struct debug_root *root, struct debug_value v, char *buf,
			size_t size);

/* Reads an attribute's value of @form; @r begins at @start of .debug_info. False: unknown form or
 * cut off. */
bool debug_form_read(struct reader *r, const unsigned char *from, uint64_t start,
		     const struct debug_unit *u, unsigned int form, struct debug_value *ret);
