/* SPDX-License-Identifier: BSD-2-Clause */
/* What object.c, symbols*.c, the line tables and the decoders share. */
#pragma once

#include "program/elf/object.h"
#include "program/elf/readers.h"

#include "base/open_file.h"

#include <gelf.h>
#include <libelf.h>

struct decoder;
struct debug_options;
struct symbol_index;

struct elf_segment {
	uint64_t vaddr, memsz;	 /* vaddr + memsz does not wrap */
	uint64_t offset, filesz; /* inside the file; filesz <= memsz */
	bool exec;
};

struct elf_object {
	char *path;
	char *called; /* what its file is called, where it was opened by another name; NULL: as
			 @path says */
	int fd;
	Elf *elf;
	uint64_t size; /* of the file when it was opened */
	struct elf_segment *segments;
	size_t n_segments, note_headers;
	bool dynamic;
	char *interpreter; /* owned; NULL: none, or none that makes sense */
	char *build_id;
	const struct debug_options
		*options;	      /* where debug files are; NULL: where the system has them */
	bool is_image;		      /* not a file's, but one in memory */
	struct symbol_index *symbols; /* empty until first asked for */
	struct file_rights
		rights; /* what files that it names are opened with: those of the program's user */
	const struct elf_readers *readers; /* who reads it */
	struct decoder *decoder; /* theirs; NULL: nothing has been asked for, or it is read here */
	bool container_debug;	 /* see elf_object_has_container_debug */
	bool without_container_debug; /* such files are not opened */
};

/* As elf_object_open, of an open file, which it takes over; @name is what errors call it. */
int elf_object_open_fd(int fd, const char *name, struct elf_object **ret, struct error *e);

/* Can the section @index be taken for strings? Of bounded size, and not compressed: libelf would
 * unpack it whole. */
bool elf_object_has_strings(const struct elf_object *o, size_t index);

/* The next section behind @after (NULL: of all) that is called @name; NULL: there is none. */
Elf_Scn *elf_object_next_section(const struct elf_object *o, Elf_Scn *after, const char *name,
				 GElf_Shdr *ret);
/* The contents of the first section of @type that lies inside the file, has at most @max bytes, and
 * links to sound strings; or NULL. */
Elf_Data *elf_object_linked_section(const struct elf_object *o, uint32_t type, uint64_t max,
				    GElf_Shdr *ret);

void symbol_index_free(struct symbol_index *x);

/* Bytes from @vaddr to the end of the executable segment that holds it; 0 if none does. */
uint64_t elf_object_code_left(const struct elf_object *o, uint64_t vaddr);
