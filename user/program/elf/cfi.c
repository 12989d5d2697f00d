// SPDX-License-Identifier: BSD-2-Clause
/* Finds .eh_frame: by its section header, or, in files without those, by the program header that
 * the C++ run time uses. */
#include "program/elf/cfi_private.h"
#include "program/elf/object_private.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <libdwarf/dwarf.h>
#include <limits.h>
#include <string.h>

/* The largest programs (browsers, LLVM) have some 30 MB. */
#define MAX_BYTES (256ULL << 20)

static bool find_section(const struct elf_object *o, uint64_t *ret_vaddr, uint64_t *ret_size)
{
	Elf_Scn *s = NULL;
	GElf_Shdr h;

	do
		s = elf_object_next_section(o, s, ".eh_frame", &h);
	while (s && (h.sh_type == SHT_NOBITS || !(h.sh_flags & SHF_ALLOC) || !h.sh_size));
	if (!s)
		return false;
	*ret_vaddr = h.sh_addr;
	*ret_size = h.sh_size;
	return true;
}

/* .eh_frame_hdr begins with a version, three encodings, and a pointer to .eh_frame. */
static bool find_by_header(const struct elf_object *o, uint64_t *ret_vaddr)
{
	uint8_t bytes[16];
	size_t n;
	GElf_Phdr ph;

	if (elf_getphdrnum(o->elf, &n) < 0 || n > INT_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct reader c;
		uint8_t pe;
		int got;

		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		got = elf_object_read(o, ph.p_vaddr, bytes, sizeof(bytes));
		if (got < 8 || bytes[0] != 1)
			return false;
		pe = bytes[1];
		c = cfi_reader(bytes + 4, (size_t)got - 4, ph.p_vaddr + 4);
		*ret_vaddr = cfi_pointer(&c, pe);
		return !c.bad && pe != DW_EH_PE_omit;
	}
	return false;
}

/* Bytes of the file from @vaddr to the end of its segment. */
static uint64_t file_bytes_at(const struct elf_object *o, uint64_t vaddr)
{
	for (size_t i = 0; i < o->n_segments; i++) {
		const struct elf_segment *s = &o->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
			return s->filesz - (vaddr - s->vaddr);
	}
	return 0;
}

static uint64_t code_end(const struct elf_object *o)
{
	uint64_t end = 0;

	for (size_t i = 0; i < o->n_segments; i++)
		if (o->segments[i].exec && o->segments[i].vaddr + o->segments[i].memsz > end)
			end = o->segments[i].vaddr + o->segments[i].memsz;
	return end;
}

/* *ret_bytes, which the section points to, is the caller's. */
static int read_section(const struct elf_object *o, struct cfi_section *ret, uint8_t **ret_bytes,
			struct error *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct cfi_section s = {.name = o->path};
	uint64_t size = 0, left;
	int got;

	if (!find_section(o, &s.vaddr, &size)) {
		if (!find_by_header(o, &s.vaddr))
			return fail(e, ENODATA,
				    "%s: no call frame information (.eh_frame); calls out of it "
				    "are followed by frame pointers",
				    o->path);
		s.stop_at_zero = 1;
		size = MAX_BYTES;
	}
	left = file_bytes_at(o, s.vaddr);
	if (s.stop_at_zero && size > left)
		size = left;
	if (!size || size > left)
		return fail(e, EBADMSG,
			    "%s: malformed .eh_frame (outside of the file); calls out of it are "
			    "followed by frame pointers",
			    o->path);
	if (size > MAX_BYTES)
		return fail(e, E2BIG,
			    "%s: .eh_frame has %llu MiB, at most %llu are read; calls out of it "
			    "are followed by frame pointers",
			    o->path, (unsigned long long)(size >> 20), MAX_BYTES >> 20);
	bytes = malloc(size);
	if (!bytes)
		return fail(e, ENOMEM, "out of memory for the call frame information of %s",
			    o->path);
	got = elf_object_read(o, s.vaddr, bytes, size);
	if (got < 0 || (uint64_t)got < size)
		return fail(
			e, EBADMSG,
			"%s: cannot read .eh_frame; calls out of it are followed by frame pointers",
			o->path);
	s.bytes = bytes;
	s.size = size;
	s.code_lo = elf_object_code_base(o);
	s.code_hi = code_end(o);
	*ret = s;
	*ret_bytes = TAKE_PTR(bytes);
	return 0;
}

int cfi_table_read_here(const struct elf_object *o, size_t max_rows, struct cfi_table *ret,
			struct error *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct cfi_section s;
	int r = read_section(o, &s, &bytes, e);

	s.max_rows = max_rows;
	return r < 0 ? r : cfi_section_parse(&s, ret, e);
}

int cfi_extents_read_here(const struct elf_object *o, struct cfi_extent **ret, size_t *ret_n,
			  struct error *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct cfi_section s;
	int r = read_section(o, &s, &bytes, e);

	return r < 0 ? r : cfi_section_extents(&s, ret, ret_n, e);
}

int cfi_table_read(const struct elf_object *o, size_t max_rows, struct cfi_table *ret,
		   struct error *e)
{
	return o->readers->call_frames(o, max_rows, ret, e);
}
