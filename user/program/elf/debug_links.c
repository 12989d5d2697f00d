// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/debug_private.h"
#include "program/elf/numbers.h"

#include "base/cleanup.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <libdeflate.h>

#define MAX_LINK 4096 /* bytes of a section that names a file */
#define MAX_BUILD_ID 64
#define MAX_SUMMED \
	(8ULL << 30) /* bytes to read for a checksum; a file with holes can claim any size */

char *debug_build_id(const unsigned char *p, size_t n)
{
	char *s = malloc(2 * n + 1);

	for (size_t i = 0; s && i < n; i++)
		(void)snprintf(s + 2 * i, 3, "%02x", p[i]);
	return s;
}

const unsigned char *debug_note_id(const unsigned char *notes, size_t size, size_t align,
				   size_t *ret_n)
{
	Elf64_Nhdr h;

	for (size_t at = 0, name, desc; at + sizeof(h) <= size;
	     at = (desc + h.n_descsz + align - 1) & -align) {
		memcpy(&h, notes + at, sizeof(h));
		name = at + sizeof(h);
		desc = (name + h.n_namesz + align - 1) & -align;
		if (desc + h.n_descsz > size)
			return NULL;
		if (h.n_type != NT_GNU_BUILD_ID || h.n_namesz != 4 ||
		    memcmp(notes + name, "GNU", 4) != 0 || !h.n_descsz || h.n_descsz > MAX_BUILD_ID)
			continue;
		*ret_n = h.n_descsz;
		return notes + desc;
	}
	return NULL;
}

/* .debug_sup of DWARF 5: a version, which of the two files this is, the other's name and a checksum
 * in place of a build id. */
static void add_supplement(struct debug_file *f, const unsigned char *p, size_t n)
{
	struct reader r = {.at = p, .end = p + n};
	bool sound = fixed(&r, 2) == 5, is_other = fixed(&r, 1) == 1;
	const char *name = (const char *)r.at;
	size_t len = strnlen(name, (size_t)(r.end - r.at));
	uint64_t id;

	if (!sound || r.bad || len == (size_t)(r.end - r.at))
		return;
	r.at += len + 1;
	id = leb(&r, false);
	if (r.bad || id < 2 || id > MAX_BUILD_ID || id > (uint64_t)(r.end - r.at))
		return;
	if (is_other && !f->build_id) {
		f->build_id = debug_build_id(r.at, id);
	} else if (!is_other && len && !f->altlink.name) {
		f->altlink.build_id = debug_build_id(r.at, id);
		f->altlink.name = strdup(name);
	}
}

void debug_links_add(struct debug_file *f, uint64_t offset, uint64_t size, const char *name)
{
	unsigned char buf[MAX_LINK];
	size_t n = size < sizeof(buf) ? size : sizeof(buf), len;
	const unsigned char *id;

	if (strcmp(name, ".note.gnu.build-id") && strcmp(name, ".debug_sup") &&
	    strncmp(name, ".gnu_debug", 10))
		return;
	if (!n || !debug_file_read(f, offset, buf, n))
		return;
	if (!strcmp(name, ".note.gnu.build-id")) {
		id = f->build_id ? NULL : debug_note_id(buf, n, 4, &len);
		if (id)
			f->build_id = debug_build_id(id, len);
		return;
	}
	if (!strcmp(name, ".debug_sup")) {
		add_supplement(f, buf, n);
		return;
	}
	len = strnlen((char *)buf, n);
	if (!len || len == n)
		return;
	if (!strcmp(name, ".gnu_debuglink") && !f->debuglink.name && ((len + 4) & ~3UL) + 4 <= n) {
		memcpy(&f->debuglink.crc, buf + ((len + 4) & ~3UL), 4);
		f->debuglink.name = strdup((char *)buf);
	} else if (!strcmp(name, ".gnu_debugaltlink") && !f->altlink.name && n - len - 1 >= 2 &&
		   n - len - 1 <= MAX_BUILD_ID) {
		f->altlink.build_id = debug_build_id(buf + len + 1, n - len - 1);
		f->altlink.name = strdup((char *)buf);
	}
}

bool debug_file_crc(const struct debug_file *f, uint32_t *ret)
{
	_cleanup_free_ unsigned char *buf = malloc(1 << 16);
	uint32_t crc = 0;

	if (!buf || f->size > MAX_SUMMED)
		return false;
	for (uint64_t at = 0, n; at < f->size; at += n) {
		n = f->size - at < 1 << 16 ? f->size - at : 1 << 16;
		if (!debug_file_read(f, at, buf, n))
			return false;
		crc = libdeflate_crc32(crc, buf, n);
	}
	*ret = crc;
	return true;
}
