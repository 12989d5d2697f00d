/* SPDX-License-Identifier: BSD-2-Clause */
/* What the code_*.c files share. */
#pragma once

#include "base/error.h"
#include "session/code_map.h"
#include "shared/abi.h"
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
	bool is_main, is_vdso, in_scope;
	bool elf_tried, lines_tried, scope_tried, functions_tried;
	const struct line_options *line_options; /* the map's */
	struct elf_object *elf;    /* NULL: not opened yet, or it cannot be */
	char *why;                 /* it cannot be opened */
	struct line_table *lines;  /* NULL: not opened yet, or there are none */
	char *why_no_lines;        /* then the reason */
	struct addr_range *ranges; /* what is in scope of it, in its own addresses; for function granularity unused: all of it */
	size_t n_ranges;
	struct addr_range *cuts;   /* code in the ranges that naming has found to be out of scope since the last refresh */
	size_t n_cuts;
	bool *units_read;             /* by the line table's number: its functions out of scope are known; NULL: none is */
	struct code_inlined *inlined; /* by address, disjoint: of the functions that samples asked for */
	size_t n_inlined;
	bool rows_tried;
	bool rows_new;        /* the table is not what it was when its user cleared this */
	struct abi_row *rows; /* its unwinding table; NULL after whoever uses it has taken it, which is done out of scope alone */
	size_t n_rows;
	uint64_t rows_base; /* what the rows' pc is relative to, in its own addresses */
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
	struct line_options lines;
	struct code_object **objects; /* the first is the main executable; they never move or go */
	size_t n_objects;
	struct code_mapping *mappings; /* by start */
	size_t n_mappings;
	struct code_name *names;
	size_t n_without_rows;   /* objects whose call frame information cannot be used ... */
	struct error rows_error; /* ... and why, for the first */
};

/* code_scope.c */
int globs_copy(struct globs *g, const char *const *all, size_t n);
void globs_free(struct globs *g);
bool code_scope_binary(const struct code_map *m, const struct code_object *o);
bool code_scope_source(const struct code_map *m, const char *file);
/* Finds what is in scope of the object, once. */
int code_scope_read(struct code_map *m, struct code_object *o);
/* Sorts and joins; returns how many are left. */
size_t code_ranges_merge(struct addr_range *all, size_t n);

/* Do the objects' ranges say all there is to know of what is in scope? Else naming finds out more (code_owner.c). */
bool code_scope_is_known(const struct code_map *m);

/* code_owner.c: which line code belongs to, and whether it is in scope at all; by the sources that are in scope.
 *
 * A function is of the file that its entry is in. Code of another file in it was inlined. Where such code is out of scope it belongs to the
 * line in scope that stands before it in the line table, which is where compilers leave the place of the call. A function that is itself
 * out of scope keeps only what was inlined into it from files in scope; the rest of it is cut out of the object's table at the next
 * refresh: that is how the scope is found, so that no line information is read which nobody's sample asks for. */

/* The line of @vaddr, "<file>:<line>", interned. -ENOENT: of none in scope. */
int code_owner_line(struct code_map *m, size_t object, uint64_t vaddr, const char **ret);
/* Is the function in scope? Yes if nothing is known of its source. */
bool code_owner_function(struct code_map *m, struct code_object *o, const struct elf_symbol *s);

/* code_rows.c: makes the object's unwinding table from @elf, once; without usable call frame information it says only what is in scope.
 * The scope must have been read. -ENOMEM. */
int code_rows_read(struct code_map *m, struct code_object *o, const struct elf_object *elf);
/* Makes the table anew with the object's cuts out of scope, and forgets them. Sets *ret_changed if that is another table. -ENOMEM: nothing
 * has changed. */
int code_rows_cut(struct code_object *o, bool *ret_changed);

/* code_vdso.c */
int code_vdso_open(struct elf_object **ret, size_t *ret_size);
uint64_t code_vdso_start(pid_t pid); /* in the process; 0: it has none */

/* code_map.c: open on demand; NULL when it cannot be. */
const struct elf_object *code_object_elf(struct code_object *o, struct error *e);
struct line_table *code_object_lines(struct code_object *o, struct error *e);
/* Is @name its path or its base name? */
bool code_object_called(const struct code_object *o, const char *name);

/* code_names.c */
struct code_name *code_name_intern(struct code_map *m, const char *text); /* NULL: out of memory */
/* Adds a range of an object's to what is called so. -ENOMEM. */
int code_name_add(struct code_name *x, size_t object, struct addr_range range);
void code_names_free(struct code_map *m);
