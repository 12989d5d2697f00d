/* SPDX-License-Identifier: BSD-2-Clause */
/* What debug_file.c and its helpers share. */
#pragma once

#include "program/elf/debug_file.h"

/* debug_links.c: how files that belong together know each other. Takes what the section @name of @f
 * (@size bytes at @offset) says into f->build_id, f->debuglink and f->altlink. */
void debug_links_add(struct debug_file *f, uint64_t offset, uint64_t size, const char *name);

/* debug_packed.c. All of a compressed section, s->size bytes; the caller frees. NULL: it does not
 * unpack to that, or out of memory. */
unsigned char *debug_unpack(const struct debug_section *s);

/* A big one, read in pieces: what is kept of it is a few of them, and places in the stream from
 * which the next can be unpacked. */

struct debug_packed;

/* Smaller ones are better unpacked as a whole. */
#define DEBUG_PACKED_LEAST (8ULL << 20)

/* NULL: its stream cannot be read, or out of memory. @s must outlive it. */
struct debug_packed *debug_packed_open(const struct debug_section *s);
void debug_packed_close(struct debug_packed *p); /* NULL is allowed */
/* Copies up to @n bytes at @at, as unpacked; returns how many there were. *ret_slow is set if the
 * stream has no places to begin at where they are needed: it is better unpacked as a whole. */
size_t debug_packed_read(struct debug_packed *p, uint64_t at, void *buf, size_t n, bool *ret_slow);
