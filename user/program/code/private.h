/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this package share. */
#pragma once

#include "program/code/tables.h"

/* scope.c */
void globs_copy(struct globs *g, const char *const *all, size_t n);
void globs_free(struct globs *g);
bool code_scope_binary(const struct code_map *m, const struct code_object *o);
/* Finds what is in scope of the object, once. */
int code_scope_read(struct code_map *m, struct code_object *o);

/* owner.c: which line code belongs to, and whether it is in scope at all; by the sources that are
 * in scope.
 *
 * A function is of the file that it begins in. Code of another file in it was inlined. Where such
 * code is out of scope it belongs to the innermost call in scope that it was inlined by; where no
 * call is said (-g1), to the line in scope that stands before it in the line table, which is where
 * compilers leave the place of the call. A function that is itself out of scope keeps only what was
 * inlined into it from files in scope, and what was inlined into that; the rest of it is cut out of
 * the object's table at the next refresh: that is how the scope is found, so that no line
 * information is read which nobody's sample asks for. */

/* Where a function begins that is entered at @entry: by the first row there. The last one, which is
 * in force, is that of code that was inlined if the function has nothing of its own to do first.
 * False: nowhere known. */
bool code_function_location(struct line_table *t, uint64_t entry, struct line_location *ret);
/* "<file>:<line>", interned. */
struct code_name *code_line_name(struct code_map *m, const struct line_location *where);
/* The line of @vaddr, "<file>:<line>", interned. -ENOENT: of none in scope. */
int code_owner_line(struct code_map *m, size_t object, uint64_t vaddr, const char **ret);
/* Is the function in scope? Yes if nothing is known of its source. */
bool code_owner_function(struct code_map *m, struct code_object *o, const struct elf_symbol *s);

/* inlined.c: goes through a function from its start, and says at each address, which must not fall,
 * where the code there was inlined. Without a tree of entries nothing was inlined. */
struct inline_sweep {
	const struct code_map *m;
	const struct line_table *t;
	const struct line_inlined *all; /* the line table's */
	size_t n, next;
	size_t *stack, depth;
	const char *file; /* looked at last */
	bool file_in;
};
void inline_sweep_begin(struct inline_sweep *w, const struct code_map *m, struct line_table *t,
			uint64_t lo, uint64_t hi);
void inline_sweep_end(struct inline_sweep *w);
/* The innermost call in scope that brought the code to @addr. False: none. */
bool inline_sweep_owner(struct inline_sweep *w, uint64_t addr, struct line_location *ret);
/* The next address above @addr where that may be another one; UINT64_MAX: none. */
uint64_t inline_sweep_edge(struct inline_sweep *w, uint64_t addr);
/* The lines on the way out of inlined copies, from that of @vaddr itself on, separated by tabs;
 * interned. NULL: it was not inlined. */
const char *code_inlined_text(struct code_map *m, struct code_object *o, uint64_t vaddr);

/* The lines in scope that the code at @vaddr was inlined by, innermost first, interned. */
size_t code_inlined_callers(struct code_map *m, struct code_object *o, uint64_t vaddr,
			    const char **ret, size_t max);

/* jit.c: adds what @pid makes as it runs to its mappings, for which there is room: *n so far, which
 * it sorts. Negative errno. */
int code_jit_place(struct code_map *m, struct code_space *s, pid_t pid, const struct map_list *list,
		   struct code_mapping *all, size_t *n);
/* How many mappings that can be. */
size_t code_jit_room(const struct map_list *list);
/* Are these mappings of the space those that @pid would have? */
bool code_jit_same(struct code_map *m, const struct code_space *s, pid_t pid,
		   const struct map_list *list);
/* The address space is given up; samples in its code can still be named. */
void code_jit_drop(struct code_space *s);
void code_jits_free(struct code_map *m);
/* The interned name of such code. 1: as 0 of code_map_name, but it can change. */
int code_jit_name(struct code_map *m, size_t object, uint32_t pc, const char **ret_line,
		  const char **ret_function);
/* Adds the ranges of a name that ends in JIT_MARK. */
struct code_ranges {
	struct addr_range *all; /* of ABI_CODE */
	size_t n;
};
void code_jit_ranges(struct code_map *m, const char *name, struct code_ranges *out);

/* rows.c: makes the object's unwinding table from @elf, once; without usable call frame information
 * it says only what is in scope. The scope must have been read. -ENOMEM. */
int code_rows_read(struct code_map *m, struct code_object *o, const struct elf_object *elf);
/* Makes the table anew with the object's cuts out of scope, and forgets them. Sets *ret_changed if
 * that is another table. */
void code_rows_cut(struct code_object *o, bool *ret_changed);

/* vdso.c */
int code_vdso_open(struct elf_object **ret, size_t *ret_size);

/* kernel.c: the interned name of the kernel's function at @pc. -ENOENT. */
int code_kernel_name(struct code_map *m, uint32_t pc, const char **ret);
/* Is it a name of a kernel function's? */
bool code_kernel_has(const struct code_map *m, const char *name);
/* The ranges of such a name, at most @max; returns how many. */
size_t code_kernel_ranges(const struct code_map *m, const char *name, struct addr_range *ret,
			  size_t max);

/* find.c: an object that has the device and inode of the mapping, or of the named file (@pid 0),
 * added if there is none; SIZE_MAX: too many. */
size_t code_map_find_object(struct code_map *m, const struct map_entry *p, pid_t pid);
/* The object of the file that @pid has mapped as @p says, where that of number @i has its device
 * and inode. It is another one if those were given to another file, which can be while nobody has
 * the first one open, or if two files have them at once. SIZE_MAX as code_map_find_object, or if it
 * is mapped no longer and cannot be told. */
size_t code_map_tell_apart(struct code_map *m, size_t i, const struct map_entry *p, pid_t pid);
/* Is what @pid has mapped as @p says the object's file? True if that cannot be told. */
bool code_object_is_at(const struct code_object *o, const struct map_entry *p, pid_t pid);
/* Is @name its path or its base name? */
bool code_object_called(const struct code_object *o, const char *name);

/* objects.c */
/* One that is not there yet, in the map from then on. @pid: its path is to be opened through that
 * process's links; 0: as it is. NULL: too many. */
struct code_object *code_object_add(struct code_map *m, const struct map_entry *entry, pid_t pid);
void code_object_free(struct code_object *o); /* NULL is allowed */
/* Is its code named by function, not by line? */
bool code_object_by_function(const struct code_map *m, struct code_object *o);
/* Has it lines, or functions, whichever its names are? */
bool code_object_has_names(const struct code_map *m, struct code_object *o);
/* Makes its table again, which was made with another scope than it has now. -ENOMEM. */
int code_object_make_again(struct code_map *m, struct code_object *o);
/* Open on demand; NULL when it cannot be. */
const struct elf_object *code_object_elf(struct code_object *o, struct error *e);
/* Opens it once more, for the caller, who closes it. Negative errno; -EREMOTE: what is there now is
 * another file. */
int code_object_open(struct code_object *o, struct elf_object **ret, struct error *e);
/* From now on it is opened through @pid, which has mapped it as @p says. */
void code_object_through(struct code_object *o, pid_t pid, const struct code_mapping *p);
/* A process has mapped it as @p says. Takes the path if it is the file's name for everybody, and no
 * such name is known. If it is in scope by the new name and was not before, or the other way round,
 * its table is to be read again. */
void code_object_name(struct code_map *m, struct code_object *o, const struct map_entry *p);
/* The file was opened as @elf. -EREMOTE: that is another one, which has its inode by now. */
int code_object_opened(struct code_object *o, const struct elf_object *elf, struct error *e);
/* Is what was opened the mapped file, by the mapping's numbers? */
bool code_elf_is_mapped(const struct elf_object *elf, const struct map_entry *entry);
/* Is what was opened the object's file? */
bool code_object_is(const struct code_object *o, const struct elf_object *elf);
struct line_table *code_object_lines(struct code_object *o, struct error *e);

/* names.c: code_map_name and code_map_intervals of places, whether it is executed there or waited.
 */
int code_place_name(struct code_map *m, uint64_t code, const char **ret_line,
		    const char **ret_function);
int code_place_intervals(struct code_map *m, const char *name, struct addr_range *ret, size_t max,
			 size_t *ret_n);
struct code_name *code_name_intern(struct code_map *m, const char *text);
/* NULL: it has never been one. */
struct code_name *code_name_find(const struct code_map *m, const char *text);
/* Adds a range of an object's to what is called so. */
void code_name_add(struct code_name *x, size_t object, struct addr_range range);
void code_names_free(struct code_map *m);
void code_shown_free(struct code_object *o);
