/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that CPython runs, by its structures in the process's memory: BPF finds the frame
 * of a thread (bpf/python.h), this which function's and line's its instruction is. Internal. */
#pragma once

#include "program/dwarf/lines.h"
#include "shared/abi.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_object;
struct python_layout;

#define PYTHON_BYTES (64ULL << 20)

/* A function, or the code of a module, as the compiler has made it. */
struct python_code {
	struct addr_range range; /* of its instructions */
	uint64_t key;		 /* what its object consisted of: another one can take its place */
	uint64_t checked_ns;
	bool is_decided, in_scope; /* the caller's, false at first: is its source in scope? */
	char *file, *function;
	struct python_line {
		uint32_t at;   /* from the begin of the range on */
		uint32_t line; /* 0: none */
	} * lines;
	size_t n_lines;
};

struct python {
	pid_t pid;
	const struct python_layout *layout; /* NULL: it is no CPython that is known */
	uint64_t code_type;		    /* the address of PyCode_Type */
	struct abi_python state;	    /* for BPF */
	struct python_code **codes;	    /* by range */
	size_t n;
	uint64_t bytes;	  /* that they take */
	uint64_t soon_ns; /* when memory may be searched again after it was in vain */
};

/* Of version 3.@minor; NULL: it is not known. */
const struct python_layout *python_layout_of(unsigned int minor);
/* Looks for CPython in @elf, which @pid has loaded with @bias: 3.11 to 3.14. False: it is none, or
 * not one of these. */
bool python_find(const struct elf_object *elf, uint64_t bias, pid_t pid, struct python *ret);
/* The code that the instruction at @addr is of, which the process's memory is searched for if need
 * be. NULL: none can be found, or the codes take more than PYTHON_BYTES. It is @p's, until the next
 * call. */
struct python_code *python_code_at(struct python *p, uint64_t addr);
/* 0: none. */
uint32_t python_line_at(const struct python_code *c, uint64_t addr);
void python_free(struct python *p); /* the contents */
