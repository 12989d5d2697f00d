// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/object.h"
#include "program/elf/cfi_private.h"
#include "program/elf/debug_find.h"
#include "program/elf/demangle.h"
#include "program/elf/object_private.h"
#include "program/elf/perf_map.h"
#include "base/sandbox/opener.h"
#include "program/elf/symbols_private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/open_file.h"
#include "base/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* A linker makes four; every address lookup walks them, so a file with thousands is refused. */
#define MAX_SEGMENTS 256
#define PAGE_BYTES 4096ULL
/* A program header more than these, or sections beyond what the header itself can count, come from
 * no linker of programs. */
#define MAX_PROGRAM_HEADERS 4096
#define MAX_NOTE_BYTES (64U << 10) /* of one program header's notes ... */
#define MAX_NOTE_HEADERS 16	   /* ... and how many of those are read */
#define MAX_STRINGS                                                                               \
	(64U << 20) /* bytes of names of symbols that a library exports; clang's largest has 3 MB \
		     */

static char *build_id_here(int fd)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	const char *id =
		copy < 0 || elf_object_open_fd(copy, "", &o, NULL) < 0 ? NULL : o->build_id;

	return strdup(id ? id : "");
}

const struct elf_readers elf_readers_here = {
	.symbols = symbols_read,
	.call_frames = cfi_table_read_here,
	.names = demangle_list_here,
	.open_named = debug_open_named,
	.build_id = build_id_here,
	.perf_map = perf_map_read_here,
};
static const struct elf_readers *readers = &elf_readers_here;

void elf_readers_use(const struct elf_readers *r)
{
	readers = r;
}

const struct elf_readers *elf_readers_current(void)
{
	return readers;
}

static int corrupt(struct error *e, const char *path, const char *what)
{
	return fail(e, ENOEXEC, "%s: truncated or corrupt ELF file (%s); build or copy it again",
		    path, what);
}

static const char *machine_name(unsigned int machine)
{
	static const char *const names[] = {
		[EM_386] = "32-bit x86", [EM_ARM] = "32-bit ARM", [EM_AARCH64] = "ARM64",
		[EM_RISCV] = "RISC-V",	 [EM_PPC64] = "POWER",	  [EM_S390] = "s390",
		[EM_BPF] = "BPF",
	};
	const char *name = machine < sizeof(names) / sizeof(names[0]) ? names[machine] : NULL;

	return name ? name : "another architecture";
}

static int check_header(int fd, const char *path, uint64_t size, struct error *e)
{
	Elf64_Ehdr h;
	ssize_t n = pread(fd, &h, sizeof(h), 0);
	uint16_t machine;

	if (n < 0)
		return fail(e, errno, "%s: cannot read: %s", path, strerror(errno));
	if (n >= 2 && !memcmp(h.e_ident, "#!", 2))
		return fail(e, ENOEXEC,
			    "%s: a script, not an ELF executable; profile a compiled program",
			    path);
	if (n < SELFMAG || memcmp(h.e_ident, ELFMAG, SELFMAG))
		return fail(e, ENOEXEC,
			    "%s: not an ELF executable; name a compiled program or library", path);
	if (n < 20)
		return corrupt(e, path, "header cut off");
	memcpy(&machine, (char *)&h + 18, sizeof(machine));
	if (h.e_ident[EI_DATA] == ELFDATA2MSB)
		return fail(e, EINVAL, "%s: big-endian ELF file; build it for x86-64", path);
	if (h.e_ident[EI_CLASS] == ELFCLASS32)
		return fail(e, EINVAL, "%s: 32-bit ELF file (%s); build it for x86-64", path,
			    machine_name(machine));
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
		return corrupt(e, path, "unknown class");
	if (machine != EM_X86_64)
		return fail(e, EINVAL, "%s: built for %s; build it for x86-64", path,
			    machine_name(machine));
	if (n < (ssize_t)sizeof(h))
		return corrupt(e, path, "header cut off");
	if (h.e_type == ET_REL)
		return fail(e, ENOEXEC,
			    "%s: an object file that is not linked yet; name the linked program",
			    path);
	if (h.e_type != ET_EXEC && h.e_type != ET_DYN)
		return fail(e, ENOEXEC, "%s: neither an executable nor a shared object", path);
	if ((h.e_shoff && !h.e_shnum) || h.e_phnum > MAX_PROGRAM_HEADERS)
		return corrupt(e, path, "impossibly many headers");
	if (h.e_shoff &&
	    (h.e_shoff > size || (uint64_t)h.e_shnum * h.e_shentsize > size - h.e_shoff))
		return corrupt(e, path, "section table past the end of the file");
	if (!h.e_phoff || h.e_phoff > size ||
	    (uint64_t)h.e_phnum * h.e_phentsize > size - h.e_phoff)
		return corrupt(e, path, "no program headers inside the file");
	return 0;
}

static void read_build_id(struct elf_object *o, const GElf_Phdr *ph)
{
	_cleanup_free_ unsigned char *notes = NULL;
	const unsigned char *id;
	size_t n;

	if (o->build_id || ph->p_filesz > MAX_NOTE_BYTES || o->note_headers++ >= MAX_NOTE_HEADERS)
		return;
	notes = malloc(ph->p_filesz);
	if (!notes ||
	    pread(o->fd, notes, ph->p_filesz, (off_t)ph->p_offset) != (ssize_t)ph->p_filesz)
		return;
	id = debug_note_id(notes, ph->p_filesz, ph->p_align == 8 ? 8 : 4, &n);
	if (id)
		o->build_id = debug_build_id(id, n);
}

static void read_interpreter(struct elf_object *o, const GElf_Phdr *ph)
{
	char path[PATH_MAX];
	uint64_t n = ph->p_filesz < sizeof(path) ? ph->p_filesz : sizeof(path);

	o->dynamic = true;
	if (!o->interpreter && pread(o->fd, path, n, (off_t)ph->p_offset) == (ssize_t)n &&
	    memchr(path, 0, n))
		o->interpreter = strdup(path);
}

static int add_segment(struct elf_object *o, const GElf_Phdr *ph, struct error *e)
{
	if (ph->p_offset > o->size || ph->p_filesz > o->size - ph->p_offset)
		return corrupt(e, o->path, "a segment reaches past the end of the file");
	if (ph->p_filesz > ph->p_memsz || ph->p_memsz > UINT64_MAX - ph->p_vaddr)
		return corrupt(e, o->path, "a segment of impossible size");
	if (o->n_segments == MAX_SEGMENTS)
		return corrupt(e, o->path, "too many segments");
	o->segments[o->n_segments++] = (struct elf_segment){
		.vaddr = ph->p_vaddr,
		.memsz = ph->p_memsz,
		.offset = ph->p_offset,
		.filesz = ph->p_filesz,
		.exec = ph->p_flags & PF_X,
	};
	return 0;
}

static int read_segments(struct elf_object *o, struct error *e)
{
	size_t n;
	GElf_Phdr ph;
	bool code = false;
	int r;

	if (elf_getphdrnum(o->elf, &n) < 0 || n > INT_MAX)
		return corrupt(e, o->path, "program headers");
	o->segments = calloc(n < MAX_SEGMENTS ? n + 1 : MAX_SEGMENTS, sizeof(*o->segments));
	if (!o->segments)
		return fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(o->elf, (int)i, &ph))
			return corrupt(e, o->path, "program headers");
		if (ph.p_type == PT_INTERP)
			read_interpreter(o, &ph);
		if (ph.p_type == PT_NOTE)
			read_build_id(o, &ph);
		if (ph.p_type != PT_LOAD)
			continue;
		r = add_segment(o, &ph, e);
		if (r < 0)
			return r;
		code |= ph.p_flags & PF_X;
	}
	if (!code)
		return corrupt(e, o->path, "no executable segment");
	return 0;
}

static int open_error(struct error *e, const char *path, int errnum)
{
	if (errnum == ENOENT || errnum == ENOTDIR)
		return fail(e, ENOENT, "%s: no such file", path);
	if (errnum == EREMOTE || (errnum == EACCES && file_is_anothers_fuse(path)))
		return fail(e, EACCES,
			    "%s: on a FUSE file system that only the user who mounted it can read; "
			    "mount it with -o allow_other, or run a copy of "
			    "the program that is elsewhere",
			    path);
	if (errnum == EACCES || errnum == EPERM)
		return fail(e, EACCES,
			    "%s: not readable by this user; make it readable (chmod +r) or run as "
			    "its owner",
			    path);
	if (errnum == ENOEXEC)
		return fail(e, ENOEXEC,
			    "%s: not a regular file of a disk; name a compiled program or library",
			    path);
	if (errnum == ETIMEDOUT)
		return fail(e, ETIMEDOUT,
			    "%s: its file system does not answer; copy the file elsewhere", path);
	return fail(e, errnum, "%s: cannot open: %s", path, strerror(errnum));
}

bool elf_object_has_strings(const struct elf_object *o, size_t index)
{
	GElf_Shdr h;
	Elf_Scn *s = elf_getscn(o->elf, index);

	return s && gelf_getshdr(s, &h) && h.sh_type == SHT_STRTAB &&
	       !(h.sh_flags & SHF_COMPRESSED) && h.sh_size <= MAX_STRINGS;
}

Elf_Scn *elf_object_next_section(const struct elf_object *o, Elf_Scn *after, const char *name,
				 GElf_Shdr *ret)
{
	size_t names;

	if (elf_getshdrstrndx(o->elf, &names) < 0 || !elf_object_has_strings(o, names))
		return NULL;
	while ((after = elf_nextscn(o->elf, after))) {
		const char *its =
			gelf_getshdr(after, ret) ? elf_strptr(o->elf, names, ret->sh_name) : NULL;

		if (its && !strcmp(its, name))
			break;
	}
	return after;
}

Elf_Data *elf_object_linked_section(const struct elf_object *o, uint32_t type, uint64_t max,
				    GElf_Shdr *ret)
{
	Elf_Scn *s = NULL;

	while ((s = elf_nextscn(o->elf, s)))
		if (gelf_getshdr(s, ret) && ret->sh_type == type && ret->sh_offset <= o->size &&
		    ret->sh_size <= o->size - ret->sh_offset && ret->sh_size <= max &&
		    elf_object_has_strings(o, ret->sh_link))
			return elf_getdata(s, NULL);
	return NULL;
}

int elf_object_open_fd(int fd, const char *name, struct elf_object **ret, struct error *e)
{
	_cleanup_elf_object_ struct elf_object *o = calloc(1, sizeof(*o));
	int64_t size;
	int r;

	if (!o) {
		opener_close(fd);
		return fail(e, ENOMEM, "out of memory");
	}
	o->fd = fd;
	o->readers = readers;
	o->rights = *file_rights_usual();
	o->path = strdup(name);
	o->symbols = calloc(1, sizeof(*o->symbols));
	if (!o->path || !o->symbols)
		return fail(e, ENOMEM, "out of memory");
	size = file_size(o->fd);
	if (size < 0)
		return open_error(e, name, (int)-size);
	o->size = (uint64_t)size;
	r = check_header(o->fd, name, o->size, e);
	if (r < 0)
		return r;
	/* Read, not mapped: a file that shrinks while we hold it would be a SIGBUS. */
	if (elf_version(EV_CURRENT) == EV_NONE)
		return fail(e, ENOEXEC,
			    "libelf is older than this program; install libelf1 0.188 or later");
	o->elf = elf_begin(o->fd, ELF_C_READ, NULL);
	if (!o->elf || elf_kind(o->elf) != ELF_K_ELF)
		return corrupt(e, name, "header");
	r = read_segments(o, e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(o);
	return 0;
}

/* Opens @path with the rights @as (NULL: ours), calls it @name. What the file names is opened with
 * the rights @named. */
static int open_as(const char *path, const struct file_rights *as, const char *name,
		   const struct file_rights *named, struct elf_object **ret, struct error *e)
{
	int fd = opener_open(path, as), r;

	r = fd < 0 ? open_error(e, name, -fd) : elf_object_open_fd(fd, name, ret, e);
	if (r == 0)
		(*ret)->rights = *named;
	return r;
}

int elf_object_open(const char *path, struct elf_object **ret, struct error *e)
{
	struct file_rights rights = *file_rights_usual();
	int pid = 0, n = 0, r = 0;
	bool in_root = false;

	if (sscanf(path, "/proc/%d/%n", &pid, &n) == 1 && n > 0) {
		r = file_rights_of_process(pid, &rights);
		in_root = !strncmp(path + n, "root/", 5);
	}
	return r < 0 ? open_error(e, path, -r)
		     : open_as(path, in_root ? &rights : NULL, path, &rights, ret, e);
}

int elf_object_open_strictly(const struct elf_object *o, struct elf_object **ret, struct error *e)
{
	int fd = opener_dup(o->fd), r;

	r = fd < 0 ? open_error(e, o->path, -fd) : elf_object_open_fd(fd, o->path, ret, e);
	if (r < 0)
		return r;
	(*ret)->rights = o->rights;
	(*ret)->without_container_debug = true;
	elf_object_set_options(*ret, o->options);
	if (o->called)
		elf_object_set_called(*ret, o->called);
	return 0;
}

int elf_object_open_named(const struct elf_object *by, const char *path, struct elf_object **ret,
			  struct error *e)
{
	return elf_object_open_as(by ? &by->rights : file_rights_usual(), path, ret, e);
}

int elf_object_open_as(const struct file_rights *rights, const char *path, struct elf_object **ret,
		       struct error *e)
{
	return open_as(path, rights, path, rights, ret, e);
}

int elf_object_open_process(pid_t pid, const char *link, const char *name, struct elf_object **ret,
			    struct error *e)
{
	struct file_rights rights;
	int r = file_rights_of_process(pid, &rights);

	return r < 0 ? open_error(e, name, -r) : open_as(link, NULL, name, &rights, ret, e);
}

int elf_object_open_image(const char *name, const void *image, size_t size, struct elf_object **ret,
			  struct error *e)
{
	_cleanup_close_ int fd = memfd_create("cozbpf-image", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return fail(e, errno, "%s: cannot keep a copy of it: %s", name, strerror(errno));
	r = write_all(fd, image, size);
	if (r < 0)
		return fail(e, -r, "%s: cannot keep a copy of it: %s", name, strerror(-r));
	r = elf_object_open_fd(TAKE_FD(fd), name, ret, e);
	if (r == 0) {
		(*ret)->readers = &elf_readers_here;
		(*ret)->is_image = true;
	}
	return r;
}

void elf_object_close(struct elf_object *o)
{
	if (!o)
		return;
	if (o->readers->close)
		o->readers->close(o);
	symbol_index_free(o->symbols);
	if (o->elf)
		(void)elf_end(o->elf);
	opener_close(o->fd);
	free(o->segments);
	free(o->build_id);
	free(o->interpreter);
	free(o->path);
	free(o->called);
	free(o);
}

void elf_object_set_called(struct elf_object *o, const char *path)
{
	char *copy = strdup(path);

	if (!copy)
		return;
	free(o->called);
	o->called = copy;
}

const char *elf_object_base_name(const struct elf_object *o)
{
	return basename(o->called ? o->called : o->path);
}

void elf_object_set_options(struct elf_object *o, const struct debug_options *options)
{
	o->options = options;
}

const char *elf_object_path(const struct elf_object *o)
{
	return o->path;
}

int elf_object_fd(const struct elf_object *o)
{
	return o->fd;
}

int elf_object_look_at(const struct elf_object *o, struct statx *ret)
{
	return opener_look_at(o->fd, ret);
}

bool elf_object_mounted_on(const struct elf_object *o, dev_t *ret)
{
	return opener_mounted_on(o->fd, ret);
}

char *elf_object_real_path(const struct elf_object *o)
{
	return opener_name(o->fd);
}

bool elf_object_is_copy(const struct elf_object *o)
{
	return opener_is_copy(o->fd);
}

char *elf_object_interpreter(const struct elf_object *o)
{
	return o->interpreter ? strdup(o->interpreter) : NULL;
}

bool elf_object_is_dynamic(const struct elf_object *o)
{
	return o->dynamic;
}

const char *elf_object_build_id(const struct elf_object *o)
{
	return o->build_id;
}

static const struct elf_segment *segment_at(const struct elf_object *o, uint64_t vaddr)
{
	for (size_t i = 0; i < o->n_segments; i++)
		if (vaddr >= o->segments[i].vaddr &&
		    vaddr - o->segments[i].vaddr < o->segments[i].memsz)
			return &o->segments[i];
	return NULL;
}

int elf_object_vaddr_to_offset(const struct elf_object *o, uint64_t vaddr, uint64_t *ret_offset)
{
	const struct elf_segment *s = segment_at(o, vaddr);

	if (!s || vaddr - s->vaddr >= s->filesz)
		return -ERANGE;
	*ret_offset = vaddr - s->vaddr + s->offset;
	return 0;
}

int elf_object_offset_to_vaddr(const struct elf_object *o, uint64_t offset, uint64_t *ret_vaddr)
{
	for (size_t i = 0; i < o->n_segments; i++) {
		const struct elf_segment *s = &o->segments[i];

		if (offset >= s->offset && offset - s->offset < s->filesz) {
			*ret_vaddr = offset - s->offset + s->vaddr;
			return 0;
		}
	}
	return -ERANGE;
}

int elf_object_mapping_bias(const struct elf_object *o, uint64_t start, uint64_t offset,
			    uint64_t *ret_bias)
{
	for (size_t i = 0; i < o->n_segments; i++) {
		const struct elf_segment *s = &o->segments[i];

		/* lld does not align p_offset: the mapping then begins in the page that two
		 * segments share. */
		if (!s->exec || offset < (s->offset & ~(PAGE_BYTES - 1)))
			continue;
		if (offset >= s->offset && offset - s->offset >= s->filesz)
			continue;
		*ret_bias = start - offset + s->offset - s->vaddr;
		return 0;
	}
	return -ERANGE;
}

bool elf_object_is_code(const struct elf_object *o, uint64_t vaddr)
{
	return elf_object_code_left(o, vaddr) > 0;
}

uint64_t elf_object_code_left(const struct elf_object *o, uint64_t vaddr)
{
	const struct elf_segment *s = segment_at(o, vaddr);

	return s && s->exec ? s->memsz - (vaddr - s->vaddr) : 0;
}

uint64_t elf_object_code_base(const struct elf_object *o)
{
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < o->n_segments; i++)
		if (o->segments[i].exec && o->segments[i].vaddr < base)
			base = o->segments[i].vaddr;
	return base & ~(PAGE_BYTES - 1);
}

int elf_object_read(const struct elf_object *o, uint64_t vaddr, void *buf, size_t size)
{
	const struct elf_segment *s = segment_at(o, vaddr);
	uint64_t at, left;
	size_t n;
	ssize_t r = 0;

	if (!s)
		return -ERANGE;
	at = vaddr - s->vaddr;
	left = s->memsz - at;
	if (size > left)
		size = left;
	if (size > INT_MAX)
		size = INT_MAX;
	n = at >= s->filesz ? 0 : size < s->filesz - at ? size : s->filesz - at;
	if (n)
		r = pread(o->fd, buf, n, (off_t)(s->offset + at));
	if (r < 0)
		return -errno;
	if ((size_t)r < n) /* the file has shrunk since */
		return r > 0 ? (int)r : -ERANGE;
	memset((char *)buf + n, 0, size - n);
	return (int)size;
}

char *elf_file_build_id(int fd)
{
	return readers->build_id(fd);
}
