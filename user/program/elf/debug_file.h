/* SPDX-License-Identifier: BSD-2-Clause */
/* The debug sections of one ELF file: of a program, its separate debug file, a split unit (.dwo), a
 * package of those (.dwp), or what dwz moved out. Nothing is mapped (a file that shrinks would be a
 * SIGBUS); big sections are read in pieces where that will do, compressed ones as well. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct Elf;
struct Elf_Scn;

enum debug_section_id {
	DEBUG_INFO,
	DEBUG_ABBREV,
	DEBUG_LINE,
	DEBUG_LINE_STR,
	DEBUG_STR,
	DEBUG_STR_OFFSETS,
	DEBUG_ADDR,
	DEBUG_RANGES,
	DEBUG_RNGLISTS,
	DEBUG_ARANGES,
	DEBUG_CU_INDEX,
	N_DEBUG_SECTIONS,
};

struct debug_section {
	struct debug_file *file;
	struct Elf_Scn *scn;	       /* NULL: the file has no such section */
	uint64_t offset, stored, size; /* in the file; size as unpacked */
	bool packed, old_packed; /* compressed, the second in the way before there was a flag for it
				    (.zdebug_*) */
	bool tried;
	unsigned char *bytes;	     /* all of it, once asked for; owned by the file */
	struct debug_packed *pieces; /* of a big one, packed, that is read in pieces; owned */
};

/* A file that belongs to this one by name and a check. */
struct debug_link {
	char *name;	/* NULL: none; owned */
	char *build_id; /* of an alternate file: hexadecimal; owned */
	uint32_t crc;	/* of a separate debug file */
};

struct debug_file {
	char *path;
	int fd;
	struct Elf *elf;
	uint64_t size;
	dev_t device;
	ino_t inode;
	struct debug_section sections[N_DEBUG_SECTIONS];
	char *build_id; /* lower-case hexadecimal, or NULL; owned */
	struct debug_link debuglink, altlink;
	struct debug_file *alternate; /* what dwz moved out; owned */
};

/* Takes a copy of the descriptor @fd of the file @path. @split: the sections are called
 * .debug_*.dwo. On success *ret is the caller's. Else the file is damaged, not for this machine, or
 * compressed in a way that cannot be read, and @e says so. */
int debug_file_open(const char *path, int fd, bool split, struct debug_file **ret, struct error *e);
void debug_file_close(struct debug_file *f); /* NULL is allowed */
static inline void debug_file_closep(struct debug_file **f)
{
	debug_file_close(*f);
}
#define _cleanup_debug_file_ __attribute__((cleanup(debug_file_closep)))

/* A build id of @n bytes (at least one) as it is written: in lower-case hexadecimal. The caller
 * frees; NULL: out of memory. */
char *debug_build_id(const unsigned char *p, size_t n);
/* The bytes of the build id in ELF notes, which are aligned to @align bytes. NULL: there is none.
 */
const unsigned char *debug_note_id(const unsigned char *notes, size_t size, size_t align,
				   size_t *ret_n);

/* Does it have units and line programs? */
bool debug_file_has_lines(const struct debug_file *f);
/* Does it have a full symbol table? */
bool debug_file_has_symbols(const struct debug_file *f);

/* @n bytes at @at of the file. False: it has shrunk since it was opened. */
bool debug_file_read(const struct debug_file *f, uint64_t at, void *buf, size_t n);
/* Copies up to @n bytes at @at; returns how many there were (0: none, or unreadable). */
size_t debug_section_read(struct debug_section *s, uint64_t at, void *buf, size_t n);
/* All of it, kept until the file is closed; NULL with *ret_n 0 if there is none or it is
 * unreadable. */
const unsigned char *debug_section_bytes(struct debug_section *s, size_t *ret_n);
/* Reads the string at @at. False if it does not end within the section and within @size. */
bool debug_section_string(struct debug_section *s, uint64_t at, char *buf, size_t size);

/* The checksum of .gnu_debuglink over the whole file. False: it cannot be read. */
bool debug_file_crc(const struct debug_file *f, uint32_t *ret);
