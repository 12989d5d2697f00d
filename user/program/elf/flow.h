/* SPDX-License-Identifier: BSD-2-Clause */
/* The control flow of a function: its instructions, basic blocks, and edges between them. Trusts
 * nothing in the code: what cannot be told is counted and said, and time and memory grow with the
 * size of the code alone. */
#pragma once

#include "program/elf/code.h"

struct elf_object;

/* Longer functions are cut off there. */
#define FLOW_MOST_BYTES (2U << 20)

enum flow_edge_kind {
	FLOW_FALL,  /* goes on behind */
	FLOW_TAKEN, /* a jump or a branch that is taken */
	FLOW_TABLE, /* by a table of jumps that was found */
	FLOW_LEAVE, /* a return, or a jump out of the function */
	FLOW_LOST,  /* to where nobody knows, or from there */
};

struct flow_edge {
	uint32_t from, to; /* blocks; flow_entry and flow_exit */
	enum flow_edge_kind kind;
};

struct flow_block {
	uint32_t first, n;   /* instructions */
	uint32_t out, n_out; /* edges from here */
	bool dead; /* nothing leads there from the entry: what fills up to the next block, mostly */
	bool reached; /* something that can be followed leads there from the entry, or unwinding
			 does */
};

struct flow {
	uint64_t start;
	size_t size; /* bytes */
	struct code_instruction *all;
	size_t n;
	struct flow_block *blocks; /* by address */
	size_t n_blocks;
	struct flow_edge *edges;
	size_t n_edges;
	/* What was left out. */
	size_t cut;    /* bytes beyond FLOW_MOST_BYTES */
	size_t holes;  /* bytes that are no instruction */
	size_t inside; /* jumps into the middle of an instruction */
	size_t lost; /* jumps to where nobody knows, by tables that were not found or by pointers */
	bool open;   /* there are such, so any block may be jumped to */
};

static inline uint32_t flow_entry(const struct flow *f)
{
	return (uint32_t)f->n_blocks;
}

static inline uint32_t flow_exit(const struct flow *f)
{
	return (uint32_t)f->n_blocks + 1;
}

/* Of the code at [vaddr, vaddr + size), with the places in it where exceptions are caught. *ret is
 * the caller's (flow_free). -ERANGE: not in the file; -ENOMEM. */
int flow_read(const struct elf_object *o, uint64_t vaddr, uint64_t size, struct flow *ret);
/* The same of a part of a function that others jump to at these addresses. */
int flow_read_entered(const struct elf_object *o, uint64_t vaddr, uint64_t size,
		      const uint64_t *entries, size_t n, struct flow *ret);
/* Of code that was read, with @table to read words of a table of jumps with (NULL: there are none):
 * it returns false where there is no such word. */
typedef bool (*flow_table)(uint64_t vaddr, int32_t *ret, void *arg);
int flow_of(struct code *c, flow_table table, void *arg, struct flow *ret);
void flow_free(struct flow *f); /* the contents; all zero is allowed */

/* The instruction at @vaddr, or the one that it is in; SIZE_MAX: none. */
size_t flow_find(const struct flow *f, uint64_t vaddr);
