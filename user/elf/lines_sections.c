// SPDX-License-Identifier: BSD-2-Clause
/* What can be checked before libdwarf sees the file: sections inside it, no compressed bombs, and the headers that the 2021 release
 * frees twice when they are damaged. */
#include "elf/lines_private.h"
#include "elf/object_private.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

/* zlib cannot do better than 1032:1: a section that claims more wants our memory. */
#define MAX_RATIO 1032

static int bad_section(const struct elf_object *o, const char *name, struct error *e)
{
	return fail(e, ENOEXEC, "%s: truncated or corrupt ELF file (section %s); build or copy it again", o->path, name ? name : "?");
}

/* The section's bytes, unpacked; libelf's. */
static Elf_Data *contents(Elf_Scn *s)
{
	GElf_Shdr h;

	if (gelf_getshdr(s, &h) && h.sh_flags & SHF_COMPRESSED && elf_compress(s, 0, 0) < 0)
		return NULL;
	return elf_getdata(s, NULL);
}

/* .debug_rnglists and .debug_loclists: a chain of headers, each with a table of offsets behind it. */
static bool lists_are_sound(const unsigned char *p, uint64_t left)
{
	while (left) {
		uint64_t length = 0, word = 4, head;
		uint16_t version;
		uint32_t count;

		if (left < 4)
			return false;
		memcpy(&length, p, 4);
		if (length == 0xffffffff) {
			if (left < 12)
				return false;
			memcpy(&length, p + 4, 8);
			word = 8;
		}
		head = word == 8 ? 12 : 4;
		if (length < 8 || length > left - head)
			return false;
		memcpy(&version, p + head, 2);
		memcpy(&count, p + head + 4, 4);
		if (version != 5 || p[head + 2] != 8 || p[head + 3] || count > (length - 8) / word)
			return false;
		p += head + length;
		left -= head + length;
	}
	return true;
}

static int check(struct line_table *t, Elf_Scn *s, const char *name, struct error *e)
{
	const struct {
		const char *name;
		struct section_bytes *keep;
		bool lists;
	} wanted[] = {
		{".debug_line", &t->program, false},
		{".debug_addr", &t->addresses, false},
		{".debug_rnglists", &t->lists, true},
		{".debug_loclists", NULL, true},
	};
	Elf_Data *d;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (strcmp(name, wanted[i].name))
			continue;
		d = contents(s);
		if (!d || (d->d_buf && wanted[i].lists && !lists_are_sound(d->d_buf, d->d_size)))
			return bad_section(t->object, name, e);
		if (d->d_buf && wanted[i].keep)
			*wanted[i].keep = (struct section_bytes){d->d_buf, d->d_size};
	}
	return 0;
}

int line_sections_check(struct line_table *t, struct error *e)
{
	const struct elf_object *o = t->object;
	bool info = false;
	size_t names;
	Elf_Scn *s = NULL;
	GElf_Shdr h;
	GElf_Chdr c;
	int r;

	if (elf_getshdrstrndx(o->elf, &names) < 0)
		names = 0;
	while ((s = elf_nextscn(o->elf, s))) {
		const char *name;

		if (!gelf_getshdr(s, &h) || h.sh_type == SHT_NOBITS || h.sh_type == SHT_NULL)
			continue;
		name = elf_strptr(o->elf, names, h.sh_name);
		if (h.sh_offset > o->size || h.sh_size > o->size - h.sh_offset)
			return bad_section(o, name, e);
		if (h.sh_flags & SHF_COMPRESSED && (!gelf_getchdr(s, &c) || c.ch_size / MAX_RATIO > h.sh_size))
			return bad_section(o, name, e);
		/* The older way of compressing has no flag (.zdebug_line); no linker of the last ten years writes it. */
		if (!name)
			continue;
		info |= !strcmp(name, ".debug_info");
		r = check(t, s, name, e);
		if (r < 0)
			return r;
	}
	return info && t->program.n ? 0 : -ENODATA;
}
