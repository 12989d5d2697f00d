/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of the running processes: which loaded objects are in scope, and names for places in
 * them, read lazily. Places are ABI_CODE (shared/abi.h): the same in every process that has the
 * object mapped. */
#pragma once

#include "program/dwarf/lines.h"
#include "program/elf/object.h"

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct code_kernel;
struct code_map;

struct code_scope {
	const char *const *sources; /* --source globs; "!GLOB" excludes; none that includes: all
				     * sources of the objects in scope but those of the system, of
				     * languages' libraries and of package managers */
	size_t n_sources;
	const char *const *binaries; /* --binary globs over path or base name, "!GLOB" excludes;
				      * none: the main executable, and what it makes as it runs
				      * (JIT compilers). Given, these are in scope only if "MAIN",
				      * "JIT" or a glob names them. */
	size_t n_binaries;
	bool inclusive; /* --attribution inclusive: what was inlined by a call in a line counts for
			   that line as well */
	bool functions; /* --granularity function: names are functions, from symbols alone */
	const struct debug_options
		*lines; /* where debug files are and how sources are named; NULL: as by default.
			 * What it points to must outlive the map */
	bool named; /* a file (a script) names the main executable: it is opened with the rights of
		       the program's user */
	bool lenient;	/* to look at only: open it even if nothing in scope can be named */
	bool automatic; /* --granularity auto: lines, and functions in those executables and
			   libraries that have none */
};

/* Before exec: only the main executable's file is known. The strings of @scope are copied.
 * @main_path as target_find_executable returned it. Fails (-ENODATA) where nothing in scope can
 * give lines, or functions, whichever was asked; @e says how to build or to use --granularity
 * function. */
int code_map_open(const char *main_path, const struct code_scope *scope, struct code_map **ret,
		  struct error *e);
void code_map_close(struct code_map *m); /* NULL is allowed */
/* Re-reads /proc/PID/maps for @space; the first space, 0, exists from the beginning. The first call
 * (after exec) fixes addresses; later calls find new libraries. Makes the unwinding tables of what
 * is new, and takes code that naming has found to be out of scope out of them. *ret_changed: the
 * executable mappings or the tables are not what they were. */
int code_map_refresh(struct code_map *m, size_t space, pid_t pid, bool *ret_changed,
		     struct error *e);
/* An address space in which nothing is mapped yet; -E2BIG: there are ABI_MAX_SPACES already. */
int code_map_add_space(struct code_map *m, size_t *ret);
/* Not the first one. Its number is given to another one later. */
void code_map_drop_space(struct code_map *m, size_t space);
/* Is what @space has mapped what @pid has? False also if that cannot be read. */
bool code_map_same_space(struct code_map *m, size_t space, pid_t pid);
/* @pid's executable is a main one as well: in scope unless --binary says otherwise. To be called
 * before its first refresh. */
int code_map_add_main(struct code_map *m, pid_t pid, struct error *e);
/* The kernel's functions by name, for root. -EPERM, -ENOTSUP: it hides them, or has no names. */
int code_kernel_open(struct code_kernel **ret, struct error *e);
void code_kernel_close(struct code_kernel *k); /* NULL is allowed */
/* The function at @addr, or NULL; owned by @k. */
const char *code_kernel_at(const struct code_kernel *k, uint64_t addr);
/* Where they begin: for session_options.kernel_base. */
uint64_t code_kernel_base(const struct code_kernel *k);
/* Makes them targets of their own. @k must outlive the map. */
void code_map_set_kernel(struct code_map *m, const struct code_kernel *k);
/* Of processes that run: can anything in scope be named? -ENODATA as of code_map_open. */
int code_map_check(struct code_map *m, struct error *e);
/* How often naming has found out what is in scope of some code, of which nothing was known. */
size_t code_map_learned(const struct code_map *m);
/* Has naming found code out of scope that the next refresh will take out of the tables? */
bool code_map_is_stale(const struct code_map *m);
/* See backend_ops.name: interned line ("<file>:<line>") or function name, with the kind of wait
 * behind it if it is one. Of code that is made as the program runs, the name by its perf map, which
 * is read again if need be. */
int code_map_name(struct code_map *m, uint64_t code, const char **ret_line,
		  const char **ret_function);
/* See backend_ops.callers. */
size_t code_map_callers(struct code_map *m, uint64_t code, const char **ret, size_t max);
/* See backend_ops.inlined. */
const char *code_map_inlined(struct code_map *m, uint64_t code);
/* See backend_ops.object. */
const char *code_map_object_of(struct code_map *m, uint64_t code);
/* The object that @code is in, and where in its file. -ENOENT: none that has a file. */
int code_map_file_place(const struct code_map *m, uint64_t code, size_t *ret_object,
			uint64_t *ret_offset);
/* The ranges of a line (or function), merged; at most @max, the largest first if there are more.
 * -ENOENT. Of a wait (base/waits.h) as codes of such waits. */
int code_map_intervals(struct code_map *m, const char *name, struct addr_range *ret, size_t max,
		       size_t *ret_n);
/* A range of object @i's, in its own addresses, as ABI_CODE. False: nobody has mapped the object
 * yet, or the range is empty. */
bool code_map_place(const struct code_map *m, size_t i, struct addr_range range,
		    struct addr_range *ret);
/* Are names in the main executable those of functions? As asked, or for want of lines. */
bool code_map_by_function(struct code_map *m);
/* The main executable. */
const struct elf_object *code_map_main(const struct code_map *m);
/* Objects mapped by the process by path, for point lookups "BINARY:FUNCTION": main executable and
 * libraries by base name or path. Opens lazily; owned by the map. -ENOENT. Before the first refresh
 * only the main executable and files that exist are found. */
int code_map_object(struct code_map *m, const char *name, const struct elf_object **ret,
		    struct line_table **ret_lines, struct error *e);
/* All objects known so far: the main executable, those found above, and what the process has had
 * mapped. An object keeps its number, new ones come behind. (objects.c) */
size_t code_map_count(const struct code_map *m);
/* Rises when an object is new, turns out to be an executable, or gets another name. */
size_t code_map_version(const struct code_map *m);
/* By its path or base name, or that of a link to it as libraries have them (libx.so, libx.so.6 for
 * libx.so.6.0.30). */
bool code_map_is_called(const struct code_map *m, size_t i, const char *name);
bool code_map_is_main(const struct code_map *m, size_t i); /* the executable of a process */
/* Is it an interpreter, whose code belongs to the functions that it runs? */
bool code_map_interprets(const struct code_map *m, size_t i);
/* Of code that has a file: points can be there. */
bool code_map_in_scope(const struct code_map *m, size_t i);
const char *code_map_path(const struct code_map *m, size_t i);
/* Opened if need be, owned by the map. NULL: it cannot be, or there are no lines. */
const struct elf_object *code_map_elf(struct code_map *m, size_t i, struct error *e);
struct line_table *code_map_lines(struct code_map *m, size_t i, struct error *e);
/* The same file, read without debug files that only a container has; and its lines, NULL if it has
 * none. Both are the map's. NULL: it cannot be opened. */
const struct elf_object *code_map_strict(struct code_map *m, size_t i,
					 struct line_table **ret_lines, struct error *e);
/* @keep: places in it are held from now on. Else it is closed, unless others are. */
void code_map_strict_done(struct code_map *m, size_t i, bool keep);
/* Closes the file of an object out of scope that was opened to look for something and does not have
 * it. */
void code_map_let_go(struct code_map *m, size_t i);

/* For lists of what can be tried: each executable and library that the process has mapped, the main
 * executable first. @why says why nothing of it can be tried, or is NULL; then @elf and, by line,
 * @lines are there. Stops at non-zero and returns it. */
struct code_listed {
	const char *path;
	bool is_main, in_scope;
	const struct elf_object *elf;
	struct line_table *lines;
	const char *why;
};
int code_map_each(struct code_map *m, int (*cb)(const struct code_listed *o, void *arg), void *arg);
/* Is a source file in scope? */
bool code_map_has_source(const struct code_map *m, const char *file);
/* The source file that keeps a function of @o out of scope, or NULL if it is in. Owned by the line
 * table. */
const char *code_map_source_out_of_scope(const struct code_map *m, const struct code_listed *o,
					 uint64_t vaddr);

/* The first --binary glob that none of the objects so far is called by, or NULL. What excludes may
 * match nothing. */
const char *code_map_unmatched(const struct code_map *m);

/* What was wrong with debug information that could be done without, of an object in scope: one
 * line, or NULL. Owned by the map. */
const char *code_map_warning(const struct code_map *m);
/* How many in-scope objects have nothing to name their code by, no line information or no
 * functions, and the path of one; whether it was functions that were looked for. */
size_t code_map_without_names(struct code_map *m, const char **ret_path, bool *ret_by_function);
