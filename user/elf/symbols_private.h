/* SPDX-License-Identifier: BSD-2-Clause */
/* What the symbols*.c files share. */
#pragma once

#include "elf/debug_file.h"
#include "elf/minidebug.h"
#include "elf/object.h"
#include "elf/object_private.h"
#include "elf/symbol_clone.h"

#include "base/error.h"

struct symbol {
	uint64_t addr, size;
	const char *name;
	const char *own; /* without suffixes of the compiler's; @name itself if it has none */
	enum symbol_kind kind;
	uint32_t rank;	/* 0 global, 1 weak, 2 local */
	uint32_t unit;	/* which source file's local symbols it stands among; 0: not known */
	uint32_t order; /* in the table */
	bool indirect;	/* STT_GNU_IFUNC */
};

struct symbol_index {
	bool loaded;
	bool go;	    /* a program of Go, whose names are free to end in ".cold" */
	struct symbol *all; /* by address; at one address the name to show comes first */
	size_t n;
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

/* symbols_load.c: reads them once, sorted, by who reads the object. -ENOMEM. symbols_read reads them here. */
int symbols_load(const struct elf_object *o);
int symbols_read(const struct elf_object *o);
/* The first table of section type @type. */
bool symbol_table_find(const struct symbol_source *s, uint32_t type, struct symbol_table *ret);

/* symbols.c */
struct elf_symbol symbol_public(const struct symbol *s);
