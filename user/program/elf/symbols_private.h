/* SPDX-License-Identifier: BSD-2-Clause */
/* What the symbols*.c files and minidebug.c share. */
#pragma once

#include "program/elf/cfi.h"
#include "program/elf/debug_file.h"
#include "program/elf/go_table.h"
#include "program/elf/object.h"
#include "program/elf/object_private.h"

#include "base/error.h"

/* The local symbols that compilers make of one function ("f.part.0", "f.cold",
 * "f.isra.0.constprop.1"), in the order in which they are taken for the function itself. */
enum symbol_kind {
	SYMBOL_WHOLE,	/* no suffix */
	SYMBOL_RENAMED, /* .lto_priv.N .llvm.N .__uniq.N: the function under a name that clashes
			   with nothing; .localalias: its alias */
	SYMBOL_COPY,	/* .isra.N .constprop.N: a copy with other arguments, entered instead of the
			   function */
	SYMBOL_PART, /* .part.N: what inlining left over, called by the function and by the places
			that it was inlined into */
	SYMBOL_COLD, /* .cold, .cold.N: jumped to from the function's middle, never entered */
};

struct symbol {
	uint64_t addr, size;
	const char *name;
	const char *own; /* without suffixes of the compiler's; @name itself if it has none */
	enum symbol_kind kind;
	uint32_t rank;	/* 0 global, 1 weak, 2 local */
	uint32_t unit;	/* which source file's local symbols it stands among; 0: not known */
	uint32_t order; /* in the table */
	/* One bit each: a decoder's answer can have no other values than 0 and 1. */
	unsigned int indirect : 1; /* STT_GNU_IFUNC */
	unsigned int nameless : 1; /* in no table: @name says where it is */
};

/* Mini debug information: the section .gnu_debugdata of a stripped file holds, packed with xz, an
 * ELF file with nothing but the symbols that the dynamic table lacks. Fedora and its kin ship all
 * programs so. Unpacked, none is known to be larger than a few MiB. */
#define MINIDEBUG_MAX (256ULL << 20)

struct minidebug {
	Elf *elf; /* over @image */
	unsigned char *image;
	uint64_t size;
};

struct symbol_index {
	bool loaded, go_tried;
	struct go_table *go; /* of a program of Go's, whose names are free to end in ".cold"; or
				NULL */
	struct symbol *all;  /* by address; at one address the name to show comes first */
	size_t n, n_nameless;
	struct cfi_extent *extents; /* functions by call frame information, or by Go's table of
				       them: by address, each start once */
	size_t n_extents;
	char **copies; /* names that needed one: without their version, without their suffixes */
	size_t n_copies;
	struct minidebug mini;
	struct debug_file *separate; /* with the symbols of a stripped file; or NULL */
	struct error problem;
};

/* A file that has tables of symbols for the object: itself, or its mini debug information. */
struct symbol_source {
	Elf *elf;
	uint64_t size;
};

struct symbol_table {
	Elf_Data *data;
	size_t n;
	size_t strings; /* section of the names */
};

/* symbols_load.c: reads them once, sorted, by who reads the object. -ENOMEM. symbols_read reads
 * them here. */
int symbols_load(const struct elf_object *o);
int symbols_read(const struct elf_object *o);
/* The first table of section type @type. */
bool symbol_table_find(const struct symbol_source *s, uint32_t type, struct symbol_table *ret);

/* go.c: adds the functions of Go's own table to the index: to its extents, or, where no symbol
 * begins, to its symbols, which must be sorted. Both are in no order then. -ENOMEM */
int go_add_extents(const struct elf_object *o);
int go_add_symbols(const struct elf_object *o);

/* symbols.c */
struct elf_symbol symbol_public(const struct symbol *s);
/* How many bytes of @name are the function's own name; the rest are suffixes of the kinds above,
 * one or several. *ret_kind is the last kind in their order: a part of a copy is a part. */
size_t symbol_own_length(const char *name, enum symbol_kind *ret_kind);

/* symbols_find.c: the identifier that a mangled form of @name must contain: the last one before the
 * argument list, outside of template arguments. Empty when there is none to rely on (operators,
 * closures, letters that are written in another way). */
void symbol_key_of(const char *name, char *ret, size_t size);

/* minidebug.c. -ENOENT: the file has none (@e is left alone). -ENOEXEC: corrupt; -EFBIG: larger
 * than MINIDEBUG_MAX; -ENOMEM; @e says so. On success the contents of *ret are the caller's
 * (minidebug_close). */
int minidebug_open(const struct elf_object *o, struct minidebug *ret, struct error *e);
void minidebug_close(struct minidebug *m); /* frees the contents; a zeroed one is allowed */
