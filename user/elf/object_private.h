/* SPDX-License-Identifier: BSD-2-Clause */
/* What object.c, symbols.c and lines*.c share. */
#pragma once

#include "elf/object.h"

#include <gelf.h>
#include <libelf.h>

struct symbol_index;

struct elf_segment {
	uint64_t vaddr, memsz; /* vaddr + memsz does not wrap */
	uint64_t offset, filesz; /* inside the file; filesz <= memsz */
	bool exec;
};

struct elf_object {
	char *path;
	int fd;
	Elf *elf;
	uint64_t size; /* of the file when it was opened */
	struct elf_segment *segments;
	size_t n_segments;
	bool dynamic;
	char *interpreter; /* owned; NULL: none, or none that makes sense */
	char *build_id;
	struct symbol_index *symbols; /* empty until first asked for */
};

struct symbol_index *symbol_index_new(void);
void symbol_index_free(struct symbol_index *x);
/* As elf_object_each_function, but every alias too. */
int symbol_index_each_name(const struct elf_object *o, int (*cb)(const char *name, void *arg), void *arg);

/* Bytes from @vaddr to the end of the executable segment that holds it; 0 if none does. */
uint64_t elf_object_code_left(const struct elf_object *o, uint64_t vaddr);
