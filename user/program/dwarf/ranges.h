/* SPDX-License-Identifier: BSD-2-Clause */
/* The address ranges of a unit, function or inlined copy, from its attributes. */
#pragma once

#include "program/dwarf/unit.h"

/* What a unit's addresses and lists are counted from. */
struct debug_range_source {
	struct debug_file *file; /* of .debug_addr and .debug_ranges: for a split unit the file that
				    has its skeleton */
	const unsigned char *lists; /* .debug_rnglists or .debug_rnglists.dwo */
	size_t n_lists;
	unsigned int version, word;
	uint64_t low;	     /* the unit's low address */
	uint64_t addr_base;  /* its share of .debug_addr */
	uint64_t lists_base; /* its table of offsets in @lists; 0: none */
	uint64_t old_base;   /* added to offsets in .debug_ranges */
	uint64_t *left; /* list entries that may still be read: lists can be shared by any number of
			   hostile entries */
};

/* The source of a unit that is not split; @left is the caller's. */
void debug_range_source_init(struct debug_range_source *s, struct debug_file *f,
			     const struct debug_unit *u, const struct debug_root *r,
			     uint64_t *left);
/* As many list entries as an honest file can have. */
uint64_t debug_range_budget(struct debug_file *f);

/* An address by its form; false: it is none. */
bool debug_address(const struct debug_range_source *s, struct debug_value v, uint64_t *ret);
/* Calls @cb for each range until it returns non-zero, and returns that. */
int debug_ranges(const struct debug_range_source *s, struct debug_value low,
		 struct debug_value high, struct debug_value ranges,
		 int (*cb)(uint64_t lo, uint64_t hi, void *arg), void *arg);
