/* SPDX-License-Identifier: BSD-2-Clause */
/* What a code map consists of: the objects, where each address space has them, and their unwinding
 * tables. The session loads the tables into the kernel (session/unwind.c): it reads all of this,
 * and takes over the rows of objects out of scope. Everything else uses map.h. */
#pragma once

#include "base/error.h"
#include "base/memory.h"
#include "program/code/map.h"
#include "program/code/python.h"
#include "program/elf/perf_map.h"
#include "shared/abi.h"
#include "target/maps.h"
#include "target/process.h"

#define uthash_fatal(msg) out_of_memory()
#include <uthash.h>

/* A process may map and unmap files for ever; more objects than this are not looked at. */
#define CODE_MAX_OBJECTS 4096
#define CODE_JIT_PARTS 8 /* objects of what one process makes (jit.c) */

struct globs {
	char **all; /* a leading '!' excludes */
	size_t n, n_includes;
};

/* Code of another file's that was inlined, or that is out of scope with its function. */
struct code_inlined {
	struct addr_range range; /* in the object's addresses */
	const char *line;	 /* "<file>:<line>" of the call, interned; NULL: of none in scope */
};

/* What is shown of the function that begins at @addr, of the object's addresses. */
struct code_shown {
	uint64_t addr;
	struct code_name *name;
	UT_hash_handle hh;
};

/* Code that a process makes as it runs. */
struct code_jit {
	pid_t pid;
	bool used;		    /* its address space is there */
	bool compiles;		    /* the runtime has a compiler at work */
	bool interpreted;	    /* the map names functions that an interpreter runs */
	const char *runtime;	    /* "node" and the like */
	struct perf_map map;	    /* n is 0: none, so far */
	struct python python;	    /* no layout: it is no CPython, or a perf map names its code */
	uint64_t python_start;	    /* where CPython is mapped; 0: nowhere */
	struct perf_map_file file;  /* that it was read from */
	uint64_t soon_ns, later_ns; /* when it may be read again */
	uint64_t gone_ns;	    /* not used: since when */
	size_t objects[CODE_JIT_PARTS];
	size_t n_objects;
};

struct code_object {
	struct map_entry entry; /* path, device and inode; one of its mappings */
	pid_t pid;		/* 0: entry.path can be opened as it is */
	bool is_main, is_vdso, in_scope;
	bool is_python;	 /* CPython itself, whose functions are found in its memory */
	bool interprets; /* a perf map names the functions that it runs: it is in no scope that is
			    not asked for */
	struct code_jit *jit;  /* it is what a process makes, of no file; NULL: it is not */
	bool named_here;       /* entry.path is its name for everybody: see map_entry_leads_here */
	struct file_life life; /* of its file, since it was opened first */
	bool mapped; /* entry has device and inode as a mapping has them, which stat may not */
	bool elf_tried, lines_tried, scope_tried, functions_tried;
	const struct debug_options *line_options; /* the map's */
	struct elf_object *elf;			  /* NULL: not opened yet, or it cannot be */
	struct code_shown *shown;  /* of functions that were asked for; the key is @addr */
	char *why;		   /* it cannot be opened */
	bool no_answer;		   /* its file system did not answer; it is not asked again */
	struct line_table *lines;  /* NULL: not opened yet, or there are none */
	char *why_no_lines;	   /* then the reason */
	struct elf_object *strict; /* see code_map_strict; NULL: not asked for */
	struct line_table *strict_lines;
	bool strict_kept;	   /* points have places in it */
	struct addr_range *ranges; /* what is in scope of it, in its own addresses; by function
				      unused: all of it */
	size_t n_ranges;
	struct addr_range *cuts; /* code in the ranges that naming has found to be out of scope
				    since the last refresh */
	size_t n_cuts;
	bool *units_read; /* by the line table's number: its functions out of scope are known; NULL:
			     none is */
	struct code_inlined
		*inlined; /* by address, disjoint: of the functions that samples asked for */
	size_t n_inlined;
	size_t n_added; /* behind these, by address: of functions that are being gone through */
	bool rows_tried;
	bool rows_new;	      /* the table is not what it was when its user cleared this */
	struct abi_row *rows; /* its unwinding table; NULL: the session has taken it, as it does out
				 of scope */
	size_t n_rows;
	uint64_t rows_base; /* what the rows' pc is relative to, in its own addresses */
};

struct code_mapping {
	uint64_t start, end, offset;
	uint64_t bias;
	bool placed;  /* the bias is known */
	bool is_late; /* not looked at yet: the look before had no time left */
	bool is_copy; /* of the file's code: what the process maps there is of no file's (struct
			 map_copy) */
	size_t object;
};

/* Where one process, or several of the same layout, have mapped the objects. */
struct code_space {
	struct code_mapping *mappings; /* by start; NULL: not read yet */
	size_t n, n_copies; /* n_copies: of the process, whether or not they belong to an object */
	struct code_jit *jit; /* what the process makes; NULL: nothing, so far */
	bool used;
	bool is_late; /* at least one mapping is */
};

struct code_function {
	size_t object;
	struct addr_range range;
};

struct code_name {
	UT_hash_handle hh;
	size_t n_read; /* of as many objects every unit with the line's file has been read */
	/* Of this name: the function's own code; of a line, what was inlined into it as far as
	 * samples have fallen into it. */
	struct code_function *functions;
	size_t n_functions;
	const char *place; /* of a wait: the name of the place, interned as well; else NULL */
	char text[];
};

struct code_map {
	struct globs sources, binaries;
	bool functions, inclusive;
	bool automatic; /* by function where an object has no lines */
	struct debug_options lines;
	struct code_object **objects; /* the first is the main executable; they never move or go */
	size_t n_objects;
	size_t n_surplus; /* times that there was no room for one */
	size_t n_changed; /* times that one became an executable, or got another name */
	const struct code_kernel *kernel; /* NULL: its functions are nobody's */
	struct code_space *spaces;	  /* the first is always used */
	size_t n_spaces;
	size_t n_learned; /* units, or functions out of scope */
	bool remade;	  /* since the last refresh, a table was made again: its object's scope has
			     changed */
	struct code_name *names;
	struct code_jit **jits;
	size_t n_jits;
	size_t n_jit_names;	 /* in the names */
	uint64_t jit_bytes;	 /* of all perf maps */
	size_t n_surplus_maps;	 /* times that there was no room for one */
	size_t n_without_rows;	 /* objects whose call frame information cannot be used ... */
	struct error rows_error; /* ... and why, for the first */
};

/* Takes what naming has found out of scope out of all tables. */
void code_map_cut(struct code_map *m, bool *ret_changed);
