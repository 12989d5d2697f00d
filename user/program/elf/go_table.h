/* SPDX-License-Identifier: BSD-2-Clause */
/* Go's own table of functions (.gopclntab), which the run time of every Go program walks stacks by,
 * so that no strip takes it away. It has the name of each function, the file and line of each
 * instruction, and which of them were inlined from where. Read as of Go 1.16. Trusts nothing in the
 * file. */
#pragma once

#include "program/elf/numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_object;
struct go_table;

/* Read when it is first asked for, and owned by the object. NULL: the file is not from Go's linker,
 * or there is no memory. What cannot be read is a table without functions. */
const struct go_table *go_table_of(const struct elf_object *o);
void go_table_close(struct go_table *g); /* NULL is allowed */
/* How many functions it has. */
size_t go_table_count(const struct go_table *g);
/* Bytes of the table. A sound one has fewer items of any kind. */
size_t go_table_size(const struct go_table *g);

struct go_function {
	uint64_t lo, hi;  /* its code, which is some; padding behind it belongs to it */
	const char *name; /* NULL: none; owned by the table */
	uint32_t unit;	  /* its package: which place in the list of files is its first file's */
	uint32_t files, lines, copies; /* tables for go_numbers_begin: numbers of files, counted
					* from its first; lines; entries of @tree. 0: none */
	uint64_t tree; /* address of the calls that were inlined; 0: none, or it is not known */
};
/* Function @i. False: it has no code in the file, or what is said of it lies outside of the table.
 */
bool go_function_read(const struct go_table *g, size_t i, struct go_function *ret);

/* How many places the list of files has, which all packages have parts of, and the name in place
 * @i. NULL: there is none; owned by the table. */
size_t go_table_files(const struct go_table *g);
const char *go_table_file(const struct go_table *g, size_t i);

/* Numbers by address: the value holds from the previous @end, at first the function's begin, up to
 * @end. */
struct go_numbers {
	uint64_t end;
	int32_t value;
	bool begun;
	uint64_t hi; /* of the function */
	struct reader r;
};
void go_numbers_begin(const struct go_table *g, const struct go_function *f, uint32_t table,
		      struct go_numbers *ret);
/* False: that was the last one, or what follows makes no sense. */
bool go_numbers_next(struct go_numbers *x);

/* The calls that were inlined into @f, of which the first @n are wanted: where in the function each
 * of them is called, by the distance from its begin. False: they are not readable, or are not what
 * stands there. */
bool go_calls_read(const struct go_table *g, const struct go_function *f, size_t n, uint32_t *ret);
