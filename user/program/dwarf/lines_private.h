/* SPDX-License-Identifier: BSD-2-Clause */
/* What the lines*.c files share.
 *
 * A unit is a line program (a contribution to .debug_line): partial units and hostile files have
 * many compilation units on one program, which is then decoded once. Where the lines are those of
 * Go's own table (elf/go_table.h) it is a package. */
#pragma once

#include "base/error.h"
#include "base/sort.h"
#include "program/dwarf/ranges.h"
#include "program/dwarf/lines.h"
#include "program/elf/object.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define NO_FILE UINT32_MAX
/* File numbers have 29 bits in a row; far fewer is still more than any program has. */
#define MAX_FILES (1U << 24)

struct line_row {
	uint64_t addr;
	uint32_t line; /* 0: no line */
	uint32_t file : 29;
	uint32_t stmt : 1;
	uint32_t end : 1; /* the first address after a sequence */
};

struct line_file {
	UT_hash_handle hh;
	uint32_t id;
	char name[];
};

enum unit_state {
	UNIT_UNREAD,
	UNIT_READ,
	UNIT_BAD,
};

/* File ids by the numbers that a line program and the entries of its unit have for them; NO_FILE:
 * none. */
struct file_numbers {
	uint32_t *ids;
	size_t n;
};

struct line_unit {
	uint64_t program;     /* offset in .debug_line; Go's: place of its first file in the list */
	const uint64_t *dies; /* its compilation units: offsets in .debug_info; Go's: its
				 functions, by number. The table's */
	size_t n_dies;
	enum unit_state rows_state, files_state;
	struct line_row
		*rows; /* sequences by address, each closed by an end row; addresses never fall */
	size_t n_rows;
	struct line_row *folded; /* sequences of code that others in @rows have as well; only where
				    it was read */
	size_t n_folded;
	uint32_t *files; /* ids in the file table, ascending, each once */
	size_t n_files;
	struct file_numbers numbers;
	enum unit_state inlined_state;
	struct line_inlined *inlined; /* by address, outer before inner; file: an id, or NO_FILE */
	size_t n_inlined;
};

struct unit_range {
	uint64_t lo, hi;
	size_t unit;
};

struct line_table {
	const struct elf_object *object;
	struct debug_options options;	    /* its arrays are the caller's */
	const struct line_readers *readers; /* who reads it. Not this process: what is about debug
					       files and units' places stays empty */
	char *debug_path; /* of the file that has the line information: the object's own, or a
			     separate one */
	struct debug_file *debug;
	const struct go_table *go;  /* what lines are read from instead; the object's. Or NULL */
	struct debug_file *package; /* of split units */
	bool package_tried;
	struct debug_roots roots;
	struct line_unit *units; /* by program */
	size_t n_units;
	uint64_t *dies;		  /* where the units' compilation units are, by unit and place */
	struct unit_range *index; /* by lo, disjoint */
	size_t n_index;
	struct line_file *by_name;
	struct line_file **files; /* by id */
	size_t n_files;
	uint64_t names_size;  /* bytes of all names */
	struct error warning; /* the first; "" if none */
	struct error several; /* files that the last name with -ENOTUNIQ could mean */
};

/* Who reads line tables (elf/readers.h). Each is asked once about a unit. */
struct line_readers {
	/* Finds the units and what they cover, and t->debug_path. Errors as of
	 * line_table_open. */
	int (*open)(struct line_table *t, struct error *e);
	/* Fill in what the unit has of that kind. False: it is damaged, and t->warning says so. */
	bool (*files)(struct line_table *t, struct line_unit *u);
	bool (*rows)(struct line_table *t, struct line_unit *u);
	/* As line_unit_inlined. */
	bool (*inlined)(struct line_table *t, struct line_unit *u, uint64_t most);
	/* As line_table_statements. */
	int (*statements)(struct line_table *t, const char *file, uint32_t line, uint64_t **ret,
			  size_t *ret_n, uint32_t *ret_nearest);
	/* As line_table_copies. */
	int (*copies)(struct line_table *t, const char *name, struct line_copy **ret,
		      size_t *ret_n);
};
/* Those of this process, in the files of the same names. */
bool line_unit_files_here(struct line_table *t, struct line_unit *u);
bool line_unit_rows_here(struct line_table *t, struct line_unit *u);
bool line_unit_inlined_here(struct line_table *t, struct line_unit *u, uint64_t most);
int line_statements_here(struct line_table *t, const char *file, uint32_t line, uint64_t **ret,
			 size_t *ret_n, uint32_t *ret_nearest);
int line_copies_here(struct line_table *t, const char *name, struct line_copy **ret, size_t *ret_n);

/* lines.c: keeps the first warning. */
void line_table_warn(struct line_table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* lines_units.c: finds the units and what they cover, from their roots alone. -ENODATA: none has
 * code; -ENOMEM. */
int line_units_open(struct line_table *t);

/* lines_program.c: a line program's header (section 6.2.4), and the program behind it if it was
 * asked for. */
struct line_header {
	unsigned char *bytes;			  /* owned */
	uint64_t size;				  /* of the whole contribution to .debug_line */
	const unsigned char *tables, *tables_end; /* of directories and files */
	const unsigned char *program, *end;
	unsigned int version, word, min_length, line_range, opcode_base;
	int line_base;
	bool stmt;
	const unsigned char *operands; /* of the standard opcodes */
};
bool line_header_read(struct debug_file *f, uint64_t program, bool whole, struct line_header *ret);
void line_header_free(struct line_header *h);
/* Fills @u->rows from its program and @u->numbers. */
bool line_program_run(struct line_table *t, struct line_unit *u);

/* lines_decode.c. Both read once; false: the unit is bad. */
bool line_unit_rows(struct line_table *t, struct line_unit *u);
bool line_unit_files(struct line_table *t, struct line_unit *u);
/* The files that the program at @program of @f has numbers for; @f may be a split unit's. False:
 * damaged. ret->ids is the caller's. */
bool line_files_read(struct line_table *t, const struct line_unit *u, struct debug_file *f,
		     uint64_t program, struct file_numbers *ret);

/* lines_files.c: the id of a file by its absolute name, or relative to @dir, which may be relative
 * to @comp_dir (both may be NULL); NO_FILE: out of memory or of numbers. */
uint32_t line_file_intern(struct line_table *t, const char *comp_dir, const char *dir,
			  const char *name);
/* A further file, whose name has @n bytes. NULL: out of memory or of numbers. */
struct line_file *line_file_add(struct line_table *t, const char *name, size_t n);

/* lines_instances.c: the functions and inlined copies in a unit's code. */
struct line_instance {
	size_t parent;		 /* SIZE_MAX: none */
	struct addr_range entry; /* the range that holds it */
	uint64_t entered;	 /* where; only as of a search for a name, like @origin */
	uint64_t origin;	 /* of a copy: where its tree has the function */
	bool inlined;
	uint32_t call_file, call_line; /* where, if it was inlined: NO_FILE, not said */
};
struct instance_range {
	uint64_t lo, hi;
	size_t instance;
};
struct line_instances {
	struct line_instance *all;
	size_t n;
	struct instance_range *ranges; /* by lo, outer before inner */
	size_t n_ranges;
};
/* A search for functions by name in the trees that are read. */
struct line_search {
	const char *name;
	bool over;	 /* all functions are known: only copies are looked for */
	uint64_t *found; /* owned, ascending: places of entries in .debug_info */
	size_t n;
	uint32_t file, line; /* where the first one is declared; line 0: none was found */
	bool several;	     /* others are declared elsewhere */
};
/* Of those with code that @wanted(lo, hi, arg) says true to (NULL: all); trees of others are passed
 * over. What was readable; empty when nothing was. @search may be NULL; else only copies of what it
 * finds are in *ret. -ENOMEM. */
int line_instances_read(struct line_table *t, const struct line_unit *u,
			bool (*wanted)(uint64_t lo, uint64_t hi, void *arg), void *arg,
			struct line_search *search, struct line_instances *ret);
void line_instances_free(struct line_instances *i);

/* Of .debug_info: the tree of a larger unit, of a whole program that was optimised at link time,
 * would take too long and too much memory to look at all of it. */
#define LINE_MAX_TREE (32ULL << 20)

/* lines_inlined.c: finds u->inlined, once; false: there is none, or the unit's entries have more
 * than @most bytes, which may be asked again. */
bool line_unit_inlined(struct line_table *t, struct line_unit *u, uint64_t most);
/* lines.c: the unit that covers @vaddr, or NULL. */
struct line_unit *line_unit_at(struct line_table *t, uint64_t vaddr);
/* lines_go.c: as line_files_read, line_program_run and line_instances_read, with Go's table. For
 * the last one the unit's rows must have been read. */
bool line_go_files(struct line_table *t, struct line_unit *u);
bool line_go_rows(struct line_table *t, struct line_unit *u);
int line_go_instances(struct line_table *t, const struct line_unit *u,
		      bool (*wanted)(uint64_t lo, uint64_t hi, void *arg), void *arg,
		      struct line_instances *ret);

/* lines_instances.c: bytes of .debug_info that the unit's entries take, without those of split
 * units. */
uint64_t line_unit_size(struct line_table *t, const struct line_unit *u);

/* lines_query.c: which files are wanted, each asked once. */
struct file_filter {
	struct line_table *t;
	bool (*match)(const char *file, void *arg);
	void *arg;
	unsigned char *known; /* by id: 0 not asked, 1 no, 2 yes */
	size_t n;
};
bool file_filter_wants(struct file_filter *f, uint32_t id);
/* By line_file_matches; @written must outlive it. */
struct file_filter file_filter_named(struct line_table *t, const char *written);
/* Does @u's file table have a wanted file? Reads the table. */
bool file_filter_unit(struct file_filter *f, struct line_unit *u);
void file_filter_free(struct file_filter *f);

/* Growing arrays of ranges. */
struct range_list {
	struct addr_range *all;
	size_t n;
};
int range_list_add(struct range_list *l, uint64_t lo, uint64_t hi);
/* Merges, and hands the array over if @r is 0; else, or if there is nothing in it (-ENOENT), frees
 * it and returns why. */
int range_list_finish(struct range_list *l, int r, struct addr_range **ret, size_t *ret_n);
