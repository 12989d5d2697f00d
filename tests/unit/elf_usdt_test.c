// SPDX-License-Identifier: BSD-2-Clause
/* The notes of USDT probes: those that this file has, and what becomes of them when their bytes are
 * others. */
#include "program/elf/object.h"
#include "program/elf/usdt.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "elf_forged.h"

/* As <sys/sdt.h> writes them. */
#define NOTE(place, semaphore, provider, name)                                      \
	".balign 4\n.4byte 8, 9f - 8f, 3\n.asciz \"stapsdt\"\n8: .8byte " place     \
	"\n.8byte 0\n.8byte " semaphore "\n.asciz \"" provider "\"\n.asciz \"" name \
	"\"\n.asciz \"8@%rax\"\n9: .balign 4\n"
void usdt_test_place(void);
extern unsigned short usdt_test_semaphore;
unsigned short usdt_test_semaphore = 1;
__asm__(".text\n.globl usdt_test_place\n.type usdt_test_place, @function\nusdt_test_place: "
	"nop\nnop\nret\n"
	".size usdt_test_place, . - usdt_test_place\n"
	".pushsection .note.stapsdt, \"\", \"note\"\n" NOTE("usdt_test_place", "0", "prov", "first")
		NOTE("usdt_test_place + 1", "usdt_test_semaphore", "prov", "second")
	/* What another tool could put there. */
	".balign 4\n.4byte 4, 0, 1\n.asciz \"GNU\"\n" NOTE("usdt_test_place + 2", "0", "other",
							   "first") ".popsection\n");

struct seen {
	const struct elf_object *o;
	size_t n;
	struct {
		char text[64];
		uint64_t vaddr, semaphore;
	} all[16];
	int stop_at;
};

static int see(const struct usdt_probe *p, void *arg)
{
	struct seen *s = arg;

	/* Promised of every probe, whatever the file is. */
	assert_true(*p->provider && *p->name);
	assert_true(elf_object_is_code(s->o, p->vaddr));
	if (s->n < 16) {
		(void)snprintf(s->all[s->n].text, sizeof(s->all[0].text), "%s:%s", p->provider,
			       p->name);
		s->all[s->n].vaddr = p->vaddr;
		s->all[s->n].semaphore = p->semaphore;
	}
	s->n++;
	return s->stop_at && s->n == (size_t)s->stop_at ? 77 : 0;
}

static void own_notes(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct seen s = {0};
	struct elf_symbol place;

	(void)state;
	assert_int_equal(elf_object_open("/proc/self/exe", &o, NULL), 0);
	assert_int_equal(elf_object_find_function(o, "usdt_test_place", &place), 0);
	s.o = o;
	assert_int_equal(usdt_each(o, see, &s), 0);
	assert_int_equal(s.n, 3);
	assert_string_equal(s.all[0].text, "prov:first");
	assert_string_equal(s.all[1].text, "prov:second");
	assert_string_equal(s.all[2].text, "other:first");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(s.all[i].vaddr, place.addr + i);
	assert_int_equal(s.all[0].semaphore, 0);
	/* It is where the program has it: as far from the place as in memory. */
	assert_int_equal(s.all[1].semaphore - place.addr,
			 (uintptr_t)&usdt_test_semaphore - (uintptr_t)usdt_test_place);
	s = (struct seen){.o = o, .stop_at = 2};
	assert_int_equal(usdt_each(o, see, &s), 77);
	assert_int_equal(s.n, 2);
}

/* A copy of this program in memory, and where in it the notes are. */
struct copy {
	int fd;
	unsigned char *bytes;
	size_t size;
	Elf64_Shdr *section;
};

static struct copy copy_self(void)
{
	_cleanup_close_ int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct copy c = {.fd = memfd_create("usdt", MFD_CLOEXEC)};
	Elf64_Shdr *sections;
	Elf64_Ehdr *h;
	struct stat st;

	assert_true(in >= 0 && c.fd >= 0 && fstat(in, &st) == 0);
	c.size = (size_t)st.st_size;
	assert_int_equal(ftruncate(c.fd, st.st_size), 0);
	c.bytes = mmap(NULL, c.size, PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, 0);
	assert_true(c.bytes != MAP_FAILED);
	for (size_t n = 0; n < c.size;) {
		ssize_t r = pread(in, c.bytes + n, c.size - n, (off_t)n);

		assert_true(r > 0);
		n += (size_t)r;
	}
	h = (Elf64_Ehdr *)(void *)c.bytes;
	sections = (Elf64_Shdr *)(void *)(c.bytes + h->e_shoff);
	for (size_t i = 0; i < h->e_shnum; i++)
		if (!strcmp((char *)c.bytes + sections[h->e_shstrndx].sh_offset +
				    sections[i].sh_name,
			    ".note.stapsdt"))
			c.section = &sections[i];
	assert_non_null(c.section);
	return c;
}

static void copy_free(struct copy *c)
{
	(void)munmap(c->bytes, c->size);
	(void)close(c->fd);
}

/* How many probes the copy has now. */
static size_t read_copy(const struct copy *c)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct seen s = {0};
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", c->fd);
	if (elf_object_open(path, &o, NULL) < 0)
		return 0;
	s.o = o;
	assert_int_equal(usdt_each(o, see, &s), 0);
	return s.n;
}

/* No byte of the notes can do more than lose probes. */
static void hostile_notes(void **state)
{
	static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	struct copy c = copy_self();
	unsigned char *notes = c.bytes + c.section->sh_offset;
	size_t lost = 0;

	(void)state;
	assert_int_equal(read_copy(&c), 3);
	for (size_t i = 0; i < c.section->sh_size; i++)
		for (size_t k = 0; k < sizeof(values); k++) {
			unsigned char was = notes[i];
			size_t n;

			notes[i] = values[k];
			n = read_copy(&c);
			assert_true(n <= 3);
			lost += n < 3;
			notes[i] = was;
		}
	assert_true(lost > 50);
	/* Names that do not end, and notes that end nowhere. */
	memset(notes + 12 + 8 + 24, 'x', c.section->sh_size - 44);
	assert_int_equal(read_copy(&c), 0);
	memset(notes, 0xff, c.section->sh_size);
	assert_int_equal(read_copy(&c), 0);
	memset(notes, 0, c.section->sh_size);
	assert_int_equal(read_copy(&c), 0);
	copy_free(&c);
}

static void hostile_section(void **state)
{
	struct copy c = copy_self();
	Elf64_Shdr was = *c.section;

	(void)state;
	c.section->sh_size = UINT64_MAX;
	assert_int_equal(read_copy(&c), 0);
	c.section->sh_size = c.size;
	assert_int_equal(read_copy(&c), 0);
	*c.section = was;
	c.section->sh_offset = c.size - 4;
	assert_int_equal(read_copy(&c), 0);
	*c.section = was;
	c.section->sh_type = SHT_PROGBITS;
	assert_int_equal(read_copy(&c), 0);
	for (size_t n = 0; n < was.sh_size; n++) {
		*c.section = was;
		c.section->sh_size = n;
		assert_true(read_copy(&c) < 3);
	}
	copy_free(&c);
}

/* As many sections as notes: what is said once is looked for once. */
static void many_sections(void **state)
{
	enum { NOTES = 50000, SECTIONS = 60000 };
	static struct {
		uint32_t name, desc, type;
		char owner[8];
		uint64_t place, base, semaphore;
		char text[8];
	} __attribute__((packed)) notes[NOTES];
	const struct forged_section sections[] = {
		{".text", "\x90\x90", {.sh_type = SHT_PROGBITS, .sh_size = 2}},
		{".note.stapsdt",
		 notes,
		 {.sh_type = SHT_NOTE, .sh_size = sizeof(notes), .sh_addralign = 4}},
	};
	_cleanup_elf_object_ struct elf_object *o = NULL;
	_cleanup_close_ int fd = -1;
	struct seen s = {0};
	char path[64];

	(void)state;
	for (size_t i = 0; i < NOTES; i++) {
		notes[i].name = 8;
		notes[i].desc = 32;
		notes[i].type = 3;
		memcpy(notes[i].owner, "stapsdt", 8);
		notes[i].place = FORGED_CODE + 1;
		memcpy(notes[i].text, "pro\0now", 8);
	}
	fd = forge_elf(sections, 2, SECTIONS, path);
	assert_int_equal(elf_object_open(path, &o, NULL), 0);
	s.o = o;
	(void)alarm(20);
	assert_int_equal(usdt_each(o, see, &s), 0);
	(void)alarm(0);
	assert_int_equal(s.n, NOTES);
	assert_int_equal(s.all[0].vaddr, FORGED_CODE + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_notes),
		cmocka_unit_test(hostile_notes),
		cmocka_unit_test(hostile_section),
		cmocka_unit_test(many_sections),
	};

	return cmocka_run_group_tests_name("elf usdt", tests, NULL, NULL);
}
