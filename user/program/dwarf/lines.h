/* SPDX-License-Identifier: BSD-2-Clause */
/* Which source line an address belongs to, and which addresses a line has. Reads DWARF one unit at
 * a time, when the first address or name in it is asked for: of the object itself or its separate
 * debug file, split units and what dwz moved out included. Nothing that a call returns points into
 * a debug file or a library that reads it. */
#pragma once

#include "program/elf/debug_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct elf_object;
struct line_table;

struct line_location {
	const char *file; /* one canonical spelling per file; owned by the table */
	uint32_t line;
};

/* Half-open [lo, hi), in the file's own addresses. */
struct addr_range {
	uint64_t lo, hi;
};
/* Sorts them, drops empty ones, joins those that touch. Returns how many are left. */
size_t addr_ranges_merge(struct addr_range *all, size_t n);

/* A copy of @name, a file or FILE:LINE, by the first of the prefixes that fits; the caller frees.
 * NULL: out of memory. */
char *debug_options_rename(const struct debug_options *o, const char *name);

/* The object must outlive the table. @options may be NULL. -ENODATA when neither the file nor a
 * debug file of its build has line information (@e says how to build with it, or what was wrong
 * with the debug file); -ENOEXEC, -ENOTSUP where the object's own is damaged or compressed in a way
 * that cannot be read. */
int line_table_open(const struct elf_object *o, const struct debug_options *options,
		    struct line_table **ret, struct error *e);
void line_table_close(struct line_table *t); /* NULL is allowed */

/* What was wrong so far with a debug file that could be done without: the first such thing, as one
 * line that names the file, or NULL. Owned by the table. Units and files that are looked at later
 * may bring one. */
const char *line_table_warning(const struct line_table *t);
/* The file that the line information is read from: the object's path or that of its separate debug
 * file. Owned by the table. */
const char *line_table_debug_path(const struct line_table *t);

/* The line of the instruction at @vaddr. Decodes the unit that covers it, once. -ENOENT: no line
 * (line 0, a gap). A unit that cannot be decoded is left out, and line_table_warning says so. */
int line_table_at(struct line_table *t, uint64_t vaddr, struct line_location *ret);

/* Calls @cb for each row of [lo, hi) in order, until it returns non-zero, and returns that. Rows
 * whose range is empty are among them: compilers write them for lines that keep no instruction of
 * their own, such as the call of what was inlined. @where is NULL for code of no line. Stays in the
 * unit of @lo. -ENOENT: none covers it. */
int line_table_rows(struct line_table *t, uint64_t lo, uint64_t hi,
		    int (*cb)(struct addr_range r, const struct line_location *where, void *arg),
		    void *arg);

/* A range of the code of a function's copy that was inlined. */
struct line_inlined {
	struct addr_range range;
	uint32_t file, line; /* of the call, as line_inlined_call has it */
};
/* Where it was called; file NULL: nothing says it. */
struct line_location line_inlined_call(const struct line_table *t, const struct line_inlined *x);
/* The copies whose ranges begin in [lo, hi), by address, outer before inner. Those around an
 * address in a function are found with lo at the function's start. Stays in the unit of @lo, whose
 * tree of entries is read once. *ret is the table's. -ENOENT: none covers it, or its tree is too
 * large or cannot be read. */
int line_table_inlined(struct line_table *t, uint64_t lo, uint64_t hi,
		       const struct line_inlined **ret, size_t *ret_n);
/* The calls that brought @vaddr to where it is, innermost first, at most @max; returns how many.
 * None if the unit's entries have more than
 * @most bytes and have not been read yet. */
size_t line_table_calls(struct line_table *t, uint64_t vaddr, uint64_t most,
			struct line_location *ret, size_t max);

/* The code that was inlined by calls in a line, as line_table_ranges gives a line's own: in units
 * decoded so far, whose trees this reads. */
int line_table_called(struct line_table *t, const char *file, uint32_t line,
		      struct addr_range **ret, size_t *ret_n);

/* All address ranges of a line, in units decoded so far, sorted and merged; *ret is the caller's
 * (free). @file must match by line_file_matches. -ENOENT when there is none. */
int line_table_ranges(struct line_table *t, const char *file, uint32_t line,
		      struct addr_range **ret, size_t *ret_n);

/* Decodes every unit whose file table has @file (one pass over all file tables, the first time), so
 * that line_table_ranges is complete for it. -ENXIO: no unit has such a file. */
int line_table_read_file(struct line_table *t, const char *file);

/* For probes: in every function (and every inlined or cloned copy) that has code for the line, the
 * address of the line's first statement. Looks at all units whose file table has the file. *ret is
 * the caller's (free). -ENOENT: the file is known but the line has no code, *ret_nearest is then
 * the nearest line that has (0 if none); -ENXIO: no unit has such a file; -ENOTUNIQ: several files
 * that are called so have code for the line, line_table_several names them. */
int line_table_statements(struct line_table *t, const char *file, uint32_t line, uint64_t **ret,
			  size_t *ret_n, uint32_t *ret_nearest);

/* Where a copy of an inlined function is entered, and a range of its code; one for each range. */
struct line_copy {
	uint64_t entry;
	struct addr_range range;
};
/* The inlined copies of the function that is called @name, as elf_object_find_function takes it, by
 * entry. Reads the trees of all units. *ret is the caller's (free). -ENOENT: there are none;
 * -ENOTUNIQ: of several functions of that name; -EFBIG: it would take too long to look. */
int line_table_copies(struct line_table *t, const char *name, struct line_copy **ret,
		      size_t *ret_n);

/* "a/part.c and b/part.c", after -ENOTUNIQ. Owned by the table. */
const char *line_table_several(const struct line_table *t);

/* All address ranges whose file matches @match(file, arg), over ALL units (so it reads everything):
 * for --source scopes. */
int line_table_scope(struct line_table *t, bool (*match)(const char *file, void *arg), void *arg,
		     struct addr_range **ret, size_t *ret_n);

/* The code that has line information at all, by what the units say of themselves, sorted and
 * merged; reads no unit. *ret is the caller's (free). -ENOMEM. */
int line_table_covered(const struct line_table *t, struct addr_range **ret, size_t *ret_n);

/* Units, by number below line_table_units: which one covers @vaddr (SIZE_MAX: none), and its code.
 * line_table_unit_ranges calls @cb in order of addresses, until it returns non-zero, and returns
 * that. Neither decodes anything. */
size_t line_table_units(const struct line_table *t);
size_t line_table_unit_at(const struct line_table *t, uint64_t vaddr);
int line_table_unit_ranges(const struct line_table *t, size_t unit,
			   int (*cb)(struct addr_range r, void *arg), void *arg);

/* Calls @cb once per (file, line) with code, over all units, files grouped, lines ascending; stops
 * at non-zero. */
int line_table_each(struct line_table *t, int (*cb)(const char *file, uint32_t line, void *arg),
		    void *arg);

/* Up to @max file names near @file ("did you mean"); returns how many; strings owned by the table.
 */
size_t line_table_similar_files(struct line_table *t, const char *file, const char **ret,
				size_t max);

/* Does what a user wrote name this file? Equal, or equal to its last path components ("a.c" and
 * "src/a.c" name "/x/src/a.c"). */
bool line_file_matches(const char *written, const char *file);
