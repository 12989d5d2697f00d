// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/symbols_private.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#define SECTION ".gnu_debugdata"
/* The highest preset of xz takes 65 MiB to unpack. */
#define MAX_DECODER (80ULL << 20)
#define FIRST_ROOM (64U << 10)

static Elf_Data *packed_section(const struct elf_object *o)
{
	Elf_Scn *s = NULL;
	GElf_Shdr h;

	do
		s = elf_object_next_section(o, s, SECTION, &h);
	while (s && h.sh_type == SHT_NOBITS);
	if (!s || h.sh_offset > o->size || h.sh_size > o->size - h.sh_offset ||
	    h.sh_size > MINIDEBUG_MAX)
		return NULL;
	return elf_rawdata(s, NULL);
}

static int corrupt(const struct elf_object *o, struct error *e, const char *what)
{
	return fail(e, ENOEXEC, "%s: its mini debug information (" SECTION ") is left out: %s",
		    o->path, what);
}

static int grow(struct minidebug *m, lzma_stream *z)
{
	uint64_t room = m->size ? 2 * m->size : FIRST_ROOM;
	unsigned char *grown = realloc(m->image, room);

	if (!grown)
		return -ENOMEM;
	m->image = grown;
	z->next_out = grown + z->total_out;
	z->avail_out = room - z->total_out;
	m->size = room;
	return 0;
}

static int unpack(const struct elf_object *o, const Elf_Data *d, struct minidebug *m,
		  struct error *e)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret r = lzma_stream_decoder(&z, MAX_DECODER, 0);
	int err = 0;

	z.next_in = d->d_buf;
	z.avail_in = d->d_size;
	while (r == LZMA_OK && err == 0) {
		if (!z.avail_out && m->size >= MINIDEBUG_MAX)
			err = fail(e, EFBIG,
				   "%s: its mini debug information (" SECTION
				   ") is left out: it unpacks to more than %llu MiB",
				   o->path, MINIDEBUG_MAX >> 20);
		else if (!z.avail_out && grow(m, &z) < 0)
			err = fail(e, ENOMEM, "out of memory");
		else
			r = lzma_code(&z, LZMA_FINISH);
	}
	m->size = z.total_out;
	lzma_end(&z);
	if (err < 0)
		return err;
	if (r == LZMA_MEM_ERROR)
		return fail(e, ENOMEM, "out of memory");
	return r == LZMA_STREAM_END ? 0 : corrupt(o, e, "the packed data is corrupt");
}

int minidebug_open(const struct elf_object *o, struct minidebug *ret, struct error *e)
{
	const Elf_Data *d = packed_section(o);
	_cleanup_(minidebug_close) struct minidebug m = {0};
	GElf_Ehdr h;
	int r;

	if (!d || !d->d_buf || !d->d_size)
		return -ENOENT;
	r = unpack(o, d, &m, e);
	if (r < 0)
		return r;
	m.elf = m.size ? elf_memory((char *)m.image, m.size) : NULL;
	if (!m.elf || elf_kind(m.elf) != ELF_K_ELF || !gelf_getehdr(m.elf, &h) ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB ||
	    h.e_machine != EM_X86_64)
		return corrupt(o, e, "it unpacks to no ELF file for x86-64");
	*ret = m;
	m = (struct minidebug){0};
	return 0;
}

void minidebug_close(struct minidebug *m)
{
	if (m->elf)
		(void)elf_end(m->elf);
	free(m->image);
	*m = (struct minidebug){0};
}
