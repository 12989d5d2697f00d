// SPDX-License-Identifier: BSD-2-Clause
/* Compressed sections. libelf can unpack them too, with zlib; libdeflate takes a third of the time, and for a program with much debug
 * information that is the greater part of its start-up. */
#include "elf/debug_unpack.h"

#include "base/cleanup.h"

#include <libdeflate.h>
#include <libelf.h>

#define OLD_HEADER 12 /* "ZLIB", the size */

static void free_decompressor(struct libdeflate_decompressor **d)
{
	libdeflate_free_decompressor(*d);
}

unsigned char *debug_unpack(const struct debug_section *s)
{
	_cleanup_(free_decompressor) struct libdeflate_decompressor *d = NULL;
	_cleanup_free_ unsigned char *stored = NULL, *bytes = NULL;
	size_t header = s->old_packed ? OLD_HEADER : sizeof(Elf64_Chdr), n;

	/* What compression makes larger is stored as it is; the header and the checksum are extra. */
	if (s->stored <= header || s->stored - header > s->size + 64)
		return NULL;
	n = s->stored - header;
	stored = malloc(n);
	if (!stored || !debug_file_read(s->file, s->offset + header, stored, n))
		return NULL;
	d = libdeflate_alloc_decompressor();
	bytes = malloc(s->size);
	if (!d || !bytes || libdeflate_zlib_decompress(d, stored, n, bytes, s->size, NULL) != LIBDEFLATE_SUCCESS)
		return NULL;
	return TAKE_PTR(bytes);
}
