/* SPDX-License-Identifier: BSD-2-Clause */
/* What the code_*.c files share. */
#pragma once

#include "session/code_map.h"
#include "target/maps.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A process may map and unmap files for ever; more objects than this are not looked at. */
#define CODE_MAX_OBJECTS 4096

struct globs {
	char **all; /* a leading '!' excludes */
	size_t n, n_includes;
};

/* Code of another file's that was inlined, or that is out of scope with its function. */
struct code_inlined {
	struct addr_range range; /* in the object's addresses */
	const char *line;        /* "<file>:<line>" of the call, interned; NULL: of none in scope */
};

struct code_object {
	struct map_entry entry; /* path, device and inode; one of its mappings */
	pid_t pid;              /* 0: entry.path can be opened as it is */
	bool is_main, in_scope;
	bool elf_tried, lines_tried, scope_tried, functions_tried;
	struct elf_object *elf;    /* NULL: not opened yet, or it cannot be */
	char *why;                 /* it cannot be opened */
	struct line_table *lines;  /* NULL: not opened yet, or there are none */
	struct addr_range *ranges; /* in its own addresses, merged: all that is in scope, or what is not (code_scope_ranges_are_all) */
	size_t n_ranges;
	struct code_inlined *inlined; /* by address, disjoint: of the functions that samples asked for */
	size_t n_inlined;
};

struct code_mapping {
	uint64_t start, end, offset;
	uint64_t bias;
	bool placed; /* the bias is known */
	size_t object;
};

struct code_function {
	size_t object;
	struct addr_range range;
};

struct code_name {
	UT_hash_handle hh;
	bool read; /* every unit with the line's file has been read */
	/* Of this name: the function's own code; of a line, what was inlined into it as far as samples have fallen into it. */
	struct code_function *functions;
	size_t n_functions;
	char text[];
};

struct code_map {
	struct globs sources, binaries;
	bool functions;
	struct code_object **objects; /* the first is the main executable; they never move or go */
	size_t n_objects;
	struct code_mapping *mappings; /* by start */
	size_t n_mappings;
	struct addr_range *ranges;
	size_t n_ranges;
	struct code_name *names;
	bool outdated; /* naming has found code that is out of scope */
};

/* code_scope.c */
int globs_copy(struct globs *g, const char *const *all, size_t n);
void globs_free(struct globs *g);
bool code_scope_binary(const struct code_map *m, const struct code_object *o);
bool code_scope_source(const struct code_map *m, const char *file);
/* Reads what --source leaves of the object, once. */
int code_scope_read(struct code_map *m, struct code_object *o);
/* The ranges in scope by today's mappings; *ret is the caller's. */
int code_scope_ranges(const struct code_map *m, struct addr_range **ret, size_t *ret_n);
/* Sorts and joins; returns how many are left. */
size_t code_ranges_merge(struct addr_range *all, size_t n);

/* Are an object's ranges all of it that is in scope? Else they are what is not. */
bool code_scope_ranges_are_all(const struct code_map *m);

/* code_owner.c: which line code belongs to, and whether it is in scope at all; by the sources that are in scope.
 *
 * A function is of the file that its entry is in. Code of another file in it was inlined. Where such code is out of scope it belongs to the
 * line in scope that stands before it in the line table, which is where compilers leave the place of the call. A function that is itself
 * out of scope keeps only what was inlined into it from files in scope; the rest of it is taken out of the object's ranges at the next
 * refresh: that is how the scope is found, so that no line information is read which nobody's sample asks for. */

/* The line of @vaddr, "<file>:<line>", interned. -ENOENT: of none in scope. */
int code_owner_line(struct code_map *m, size_t object, uint64_t vaddr, const char **ret);
/* Is the function in scope? Yes if nothing is known of its source. */
bool code_owner_function(struct code_map *m, struct code_object *o, const struct elf_symbol *s);

/* code_map.c: open on demand; NULL when it cannot be. */
const struct elf_object *code_object_elf(struct code_object *o, struct error *e);
struct line_table *code_object_lines(struct code_object *o, struct error *e);

/* code_names.c */
struct code_name *code_name_intern(struct code_map *m, const char *text); /* NULL: out of memory */
/* Adds a range of an object's to what is called so. -ENOMEM. */
int code_name_add(struct code_name *x, size_t object, struct addr_range range);
void code_names_free(struct code_map *m);
