// SPDX-License-Identifier: BSD-2-Clause
/* Reads ".note.stapsdt": type 3 of owner "stapsdt", three addresses (probe, base, semaphore) and
 * three strings (provider, name, arguments). The base is where ".stapsdt.base" was when the note
 * was written; prelink moves the section and leaves the note.
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation */
#include "program/elf/usdt.h"

#include "program/elf/object.h"
#include "program/elf/object_private.h"

#include <stdbool.h>
#include <string.h>

#define NOTE_TYPE 3
#define MAX_NOTES_SIZE \
	(64U << 20) /* bytes of one section; a large database server has some 100 KiB */

/* The string at *at, which ends before @end; moves *at behind it. */
static const char *take_string(const char **at, const char *end)
{
	const char *s = *at, *zero = memchr(s, 0, (size_t)(end - s));

	if (!zero)
		return NULL;
	*at = zero + 1;
	return s;
}

/* @base: the section ".stapsdt.base"; NULL where the file has none. */
static bool read_note(const struct elf_object *o, const char *at, size_t size,
		      const GElf_Shdr *base, struct usdt_probe *ret)
{
	const char *end = at + size;
	uint64_t addresses[3], shift = 0;

	if (size < sizeof(addresses))
		return false;
	memcpy(addresses, at, sizeof(addresses));
	at += sizeof(addresses);
	ret->provider = take_string(&at, end);
	ret->name = ret->provider ? take_string(&at, end) : NULL;
	if (!ret->name || !*ret->provider || !*ret->name)
		return false;
	if (base)
		shift = base->sh_addr - addresses[1];
	ret->vaddr = addresses[0] + shift;
	ret->semaphore = addresses[2] ? addresses[2] + shift : 0;
	return elf_object_is_code(o, ret->vaddr);
}

static int read_notes(const struct elf_object *o, Elf_Data *d,
		      int (*cb)(const struct usdt_probe *p, void *arg), void *arg)
{
	size_t at = 0, name, desc;
	GElf_Shdr base;
	bool has_base = elf_object_next_section(
		o, NULL, ".stapsdt.base",
		&base); /* once: a file may have as many sections as notes */
	GElf_Nhdr nh;
	int r = 0;

	while (r == 0 && at < d->d_size) {
		size_t next = gelf_getnote(d, at, &nh, &name, &desc);
		struct usdt_probe p;

		if (next <= at || next > d->d_size || desc > d->d_size ||
		    nh.n_descsz > d->d_size - desc)
			return 0;
		at = next;
		if (nh.n_type == NOTE_TYPE && nh.n_namesz == 8 &&
		    !memcmp((char *)d->d_buf + name, "stapsdt", 8) &&
		    read_note(o, (char *)d->d_buf + desc, nh.n_descsz, has_base ? &base : NULL, &p))
			r = cb(&p, arg);
	}
	return r;
}

int usdt_each(const struct elf_object *o, int (*cb)(const struct usdt_probe *p, void *arg),
	      void *arg)
{
	Elf_Scn *s = NULL;
	Elf_Data *d;
	GElf_Shdr h;

	/* There is one; libelf keeps what it reads. */
	do
		s = elf_object_next_section(o, s, ".note.stapsdt", &h);
	while (s && (h.sh_type != SHT_NOTE || h.sh_offset > o->size ||
		     h.sh_size > o->size - h.sh_offset || h.sh_size > MAX_NOTES_SIZE));
	d = s ? elf_getdata(s, NULL) : NULL;
	return d && d->d_buf ? read_notes(o, d, cb, arg) : 0;
}
