/* SPDX-License-Identifier: BSD-2-Clause */
/* Mini debug information: the section .gnu_debugdata of a stripped file holds, packed with xz, an ELF file with nothing but the
 * symbols that the dynamic table lacks. Fedora and its kin ship all programs so. */
#pragma once

#include <libelf.h>
#include <stdint.h>

struct elf_object;
struct error;

/* Unpacked, none is known to be larger than a few MiB. */
#define MINIDEBUG_MAX (256ULL << 20)

struct minidebug {
	Elf *elf; /* over @image */
	unsigned char *image;
	uint64_t size;
};

/* -ENOENT: the file has none (@e is left alone). -ENOEXEC: corrupt; -EFBIG: larger than MINIDEBUG_MAX; -ENOMEM; @e says so. On success
 * the contents of *ret are the caller's (minidebug_close). */
int minidebug_open(const struct elf_object *o, struct minidebug *ret, struct error *e);
void minidebug_close(struct minidebug *m); /* frees the contents; a zeroed one is allowed */
