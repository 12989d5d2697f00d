// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/debug_file.h"
#include "program/elf/debug_private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/open_file.h"
#include "base/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* zlib cannot do better than 1032:1: a section that claims more wants our memory. No big one comes
 * near that. */
#define MAX_RATIO 1032
#define BIG (64ULL << 20)
#define MAX_BIG_RATIO 64
#define MAX_UNPACKED (4ULL << 30)
#define MAX_WHOLE                                                                                 \
	(2ULL << 30) /* of a section that is kept in memory as it is; a file with holes can claim \
			any size */
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

static const char *const names[N_DEBUG_SECTIONS] = {
	[DEBUG_INFO] = "info",	       [DEBUG_ABBREV] = "abbrev",
	[DEBUG_LINE] = "line",	       [DEBUG_LINE_STR] = "line_str",
	[DEBUG_STR] = "str",	       [DEBUG_STR_OFFSETS] = "str_offsets",
	[DEBUG_ADDR] = "addr",	       [DEBUG_RANGES] = "ranges",
	[DEBUG_RNGLISTS] = "rnglists", [DEBUG_ARANGES] = "aranges",
	[DEBUG_CU_INDEX] = "cu_index",
};

static int corrupt(const struct debug_file *f, const char *what, struct error *e)
{
	return fail(e, ENOEXEC,
		    "%s: truncated or corrupt ELF file (section %s); build or copy it again",
		    f->path, what);
}

/* "debug_line" or "zdebug_line", with ".dwo" in split files. False: not one that is wanted. */
static bool identify(const char *name, bool split, enum debug_section_id *ret, bool *ret_old)
{
	*ret_old = !strncmp(name, ".zdebug_", 8);
	if (!*ret_old && strncmp(name, ".debug_", 7))
		return false;
	name += *ret_old ? 8 : 7;
	for (int i = 0; i < N_DEBUG_SECTIONS; i++) {
		size_t n = strlen(names[i]);

		if (strncmp(name, names[i], n) ||
		    strcmp(name + n, split && i != DEBUG_CU_INDEX ? ".dwo" : ""))
			continue;
		*ret = (enum debug_section_id)i;
		return true;
	}
	return false;
}

/* The old way: "ZLIB", the unpacked size (big-endian), the stream. */
static int old_size(const struct debug_file *f, const GElf_Shdr *h, const char *name, uint64_t *ret,
		    struct error *e)
{
	unsigned char head[12];

	if (h->sh_size < sizeof(head) ||
	    pread(f->fd, head, sizeof(head), (off_t)h->sh_offset) != sizeof(head) ||
	    memcmp(head, "ZLIB", 4))
		return corrupt(f, name, e);
	*ret = 0;
	for (int i = 4; i < 12; i++)
		*ret = *ret << 8 | head[i];
	return 0;
}

static int add_section(struct debug_file *f, Elf_Scn *scn, const GElf_Shdr *h, const char *name,
		       bool split, struct error *e)
{
	enum debug_section_id id;
	struct debug_section *s;
	Elf64_Chdr c;
	bool old;
	int r;

	if (!identify(name, split, &id, &old) || f->sections[id].scn)
		return 0;
	s = &f->sections[id];
	*s = (struct debug_section){.file = f,
				    .scn = scn,
				    .offset = h->sh_offset,
				    .stored = h->sh_size,
				    .size = h->sh_size};
	if (h->sh_flags & SHF_COMPRESSED) {
		/* libelf would read the whole section, and keep it. */
		if (h->sh_size < sizeof(c) || !debug_file_read(f, h->sh_offset, &c, sizeof(c)))
			return corrupt(f, name, e);
		if (c.ch_type == ELFCOMPRESS_ZSTD)
			return fail(e, ENOTSUP,
				    "%s: debug information compressed with zstd is not supported; "
				    "build with -gz=zlib, or "
				    "objcopy --decompress-debug-sections",
				    f->path);
		if (c.ch_type != ELFCOMPRESS_ZLIB)
			return corrupt(f, name, e);
		s->size = c.ch_size;
		s->packed = true;
	} else if (old) {
		r = old_size(f, h, name, &s->size, e);
		if (r < 0)
			return r;
		s->packed = s->old_packed = true;
	}
	if (s->packed && (s->size / (s->size > BIG ? MAX_BIG_RATIO : MAX_RATIO) > h->sh_size ||
			  s->size > MAX_UNPACKED))
		return corrupt(f, name, e);
	return 0;
}

static int read_sections(struct debug_file *f, bool split, struct error *e)
{
	size_t strings;
	Elf_Scn *scn = NULL;
	GElf_Shdr h;
	int r = 0;

	if (elf_getshdrstrndx(f->elf, &strings) < 0)
		return 0; /* stripped of them all */
	while (r == 0 && (scn = elf_nextscn(f->elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &h) || h.sh_type == SHT_NOBITS || h.sh_type == SHT_NULL)
			continue;
		name = elf_strptr(f->elf, strings, h.sh_name);
		if (h.sh_offset > f->size || h.sh_size > f->size - h.sh_offset)
			return corrupt(f, name ? name : "?", e);
		if (!name)
			continue;
		r = add_section(f, scn, &h, name, split, e);
		debug_links_add(f, h.sh_offset, h.sh_size, name);
	}
	return r;
}

static int check_header(const struct debug_file *f, struct error *e)
{
	Elf64_Ehdr h;

	if (pread(f->fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG))
		return fail(e, ENOEXEC, "%s: not an ELF file", f->path);
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB ||
	    h.e_machine != EM_X86_64)
		return fail(e, EINVAL, "%s: built for another architecture", f->path);
	if (h.e_shoff > f->size || (uint64_t)h.e_shnum * h.e_shentsize > f->size - h.e_shoff)
		return corrupt(f, "table", e);
	return 0;
}

int debug_file_open(const char *path, int fd, bool split, struct debug_file **ret, struct error *e)
{
	_cleanup_debug_file_ struct debug_file *f = calloc(1, sizeof(*f));
	struct stat st;
	int64_t size;
	int r;

	if (!f)
		return fail(e, ENOMEM, "out of memory");
	f->fd = -1;
	f->path = strdup(path);
	if (!f->path)
		return fail(e, ENOMEM, "out of memory");
	for (int i = 0; i < N_DEBUG_SECTIONS; i++)
		f->sections[i].file = f;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	size = f->fd < 0 ? -errno : file_size(f->fd);
	if (size < 0)
		return fail(e, (int)-size, "%s: cannot open: %s", path, strerror((int)-size));
	f->size = (uint64_t)size;
	if (fstat(f->fd, &st) == 0) {
		f->device = st.st_dev;
		f->inode = st.st_ino;
	}
	r = check_header(f, e);
	if (r < 0)
		return r;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return fail(e, ENOEXEC,
			    "libelf is older than this program; install libelf1 0.188 or later");
	f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF)
		return corrupt(f, "table", e);
	r = read_sections(f, split, e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(f);
	return 0;
}

void debug_file_close(struct debug_file *f)
{
	if (!f)
		return;
	debug_file_close(f->alternate);
	for (int i = 0; i < N_DEBUG_SECTIONS; i++) {
		free(f->sections[i].bytes);
		debug_packed_close(f->sections[i].pieces);
	}
	if (f->elf)
		(void)elf_end(f->elf);
	if (f->fd >= 0)
		(void)close(f->fd);
	free(f->debuglink.name);
	free(f->altlink.name);
	free(f->altlink.build_id);
	free(f->build_id);
	free(f->path);
	free(f);
}

bool debug_file_has_lines(const struct debug_file *f)
{
	return f->sections[DEBUG_INFO].size && f->sections[DEBUG_LINE].size;
}

bool debug_file_has_symbols(const struct debug_file *f)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr h;

	while ((scn = elf_nextscn(f->elf, scn)))
		if (gelf_getshdr(scn, &h) && h.sh_type == SHT_SYMTAB && h.sh_size)
			return true;
	return false;
}

bool debug_file_read(const struct debug_file *f, uint64_t at, void *buf, size_t n)
{
	return pread_all(f->fd, buf, n, at) == (ssize_t)n; /* else it has shrunk since */
}

const unsigned char *debug_section_bytes(struct debug_section *s, size_t *ret_n)
{
	if (!s->tried && s->scn && s->size) {
		if (s->packed) {
			s->bytes = debug_unpack(s);
		} else if (s->size <= MAX_WHOLE) {
			s->bytes = malloc(s->size);
			if (s->bytes && !debug_file_read(s->file, s->offset, s->bytes, s->size)) {
				free(s->bytes);
				s->bytes = NULL;
			}
		}
	}
	s->tried = true;
	*ret_n = s->bytes ? s->size : 0;
	return s->bytes;
}

/* False: not so, because it is small, damaged, or is there as a whole. */
static bool read_pieces(struct debug_section *s, uint64_t at, void *buf, size_t n, size_t *ret)
{
	bool slow;

	if (s->tried || s->size < DEBUG_PACKED_LEAST)
		return false;
	if (!s->pieces)
		s->pieces = debug_packed_open(s);
	if (!s->pieces)
		return false;
	*ret = debug_packed_read(s->pieces, at, buf, n, &slow);
	if (!slow)
		return true;
	debug_packed_close(s->pieces);
	s->pieces = NULL;
	(void)debug_section_bytes(s, ret);
	return false;
}

size_t debug_section_read(struct debug_section *s, uint64_t at, void *buf, size_t n)
{
	const unsigned char *p;
	size_t size = 0;

	if (!s->scn || at >= s->size)
		return 0;
	if (n > s->size - at)
		n = s->size - at;
	if (!s->packed && !s->bytes)
		return debug_file_read(s->file, s->offset + at, buf, n) ? n : 0;
	if (read_pieces(s, at, buf, n, &size))
		return size;
	p = debug_section_bytes(s, &size);
	if (!p)
		return 0;
	memcpy(buf, p + at, n);
	return n;
}

bool debug_section_string(struct debug_section *s, uint64_t at, char *buf, size_t size)
{
	return memchr(buf, 0, debug_section_read(s, at, buf, size));
}
