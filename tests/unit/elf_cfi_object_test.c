// SPDX-License-Identifier: BSD-2-Clause
/* Call frame information of whole objects: this executable, changed copies of it, and the vDSO. */
#include "program/elf/cfi.h"
#include "program/elf/object.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <cmocka.h>

#define MAX_ROWS (1U << 22)

struct image {
	unsigned char *bytes;
	size_t size;
};

static struct image self(void)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct image i;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	i.size = (size_t)st.st_size;
	i.bytes = malloc(i.size);
	assert_non_null(i.bytes);
	for (size_t n = 0; n < i.size;) {
		ssize_t r = pread(fd, i.bytes + n, i.size - n, (off_t)n);

		assert_true(r > 0);
		n += (size_t)r;
	}
	return i;
}

static int read_image(const struct image *i, struct cfi_table *t, struct error *e)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;

	assert_int_equal(elf_object_open_image("changed", i->bytes, i->size, &o, e), 0);
	return cfi_table_read(o, MAX_ROWS, t, e);
}

static Elf64_Shdr *section(const struct image *i, const char *name)
{
	Elf64_Ehdr *h = (void *)i->bytes;
	Elf64_Shdr *s = (void *)(i->bytes + h->e_shoff);
	const char *names = (const char *)i->bytes + s[h->e_shstrndx].sh_offset;

	for (int n = 0; n < h->e_shnum; n++)
		if (!strcmp(names + s[n].sh_name, name))
			return &s[n];
	return NULL;
}

static void own_executable(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct error e = {.text = ""};
	const struct abi_row *row;
	struct elf_symbol sym;
	struct cfi_table t;

	(void)state;
	assert_int_equal(elf_object_open("/proc/self/exe", &o, &e), 0);
	if (cfi_table_read(o, MAX_ROWS, &t, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(t.base, elf_object_code_base(o));
	assert_int_equal(elf_object_find_function(o, "main", &sym), 0);
	row = &t.rows[t.n - 1];
	while (row > t.rows && row->pc > sym.addr - t.base)
		row--;
	assert_int_equal(row->kind, ABI_ROW_RSP);
	assert_int_equal(row->cfa_offset, 8);
	cfi_table_free(&t);
	assert_int_equal(cfi_table_read(o, 10, &t, &e), -E2BIG);
	assert_non_null(strstr(e.text, "more than 10 rows"));
}

static void without_section_headers(void **state)
{
	struct image i = self();
	Elf64_Ehdr *h = (void *)i.bytes;
	struct error e = {.text = ""};
	struct cfi_table a, b;

	(void)state;
	if (read_image(&i, &a, &e) < 0)
		fail_msg("%s", e.text);
	h->e_shoff = 0;
	h->e_shnum = h->e_shstrndx = 0;
	if (read_image(&i, &b, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.rows, b.rows, a.n * sizeof(*a.rows));
	cfi_table_free(&a);
	cfi_table_free(&b);
	/* Nor the program header. */
	for (Elf64_Phdr *p = (void *)(i.bytes + h->e_phoff), *end = p + h->e_phnum; p < end; p++)
		if (p->p_type == PT_GNU_EH_FRAME)
			p->p_type = PT_NULL;
	assert_int_equal(read_image(&i, &b, &e), -ENODATA);
	assert_non_null(strstr(e.text, "changed"));
	free(i.bytes);
}

static void section_outside_of_the_file(void **state)
{
	struct image i = self();
	Elf64_Shdr *s = section(&i, ".eh_frame");
	uint64_t addr;
	struct error e = {.text = ""};
	struct cfi_table t;

	(void)state;
	assert_non_null(s);
	addr = s->sh_addr;
	s->sh_size = UINT64_MAX / 2;
	assert_int_equal(read_image(&i, &t, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "outside of the file"));
	s->sh_size = 1000;
	s->sh_addr = 1ULL << 60;
	assert_int_equal(read_image(&i, &t, &e), -EBADMSG);
	s->sh_addr = addr + 1; /* shifted: every field is nonsense */
	assert_int_equal(read_image(&i, &t, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "malformed"));
	free(i.bytes);
}

static void code_too_far_apart(void **state)
{
	struct image i = self();
	Elf64_Ehdr *h = (void *)i.bytes;
	struct error e = {.text = ""};
	struct cfi_table t;

	(void)state;
	for (Elf64_Phdr *p = (void *)(i.bytes + h->e_phoff), *end = p + h->e_phnum; p < end; p++)
		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			p->p_memsz = 1ULL << 32;
	assert_int_equal(read_image(&i, &t, &e), -E2BIG);
	assert_non_null(strstr(e.text, "4 GiB"));
	free(i.bytes);
}

static void vdso(void **state)
{
	const Elf64_Ehdr *h = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct error e = {.text = ""};
	struct elf_object *o;
	struct cfi_table t;

	(void)state;
	assert_non_null(h);
	if (elf_object_open_image("[vdso]", h, h->e_shoff + h->e_shnum * (size_t)h->e_shentsize, &o,
				  &e) < 0 ||
	    cfi_table_read(o, MAX_ROWS, &t, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(t.n > 5);
	assert_string_equal(elf_object_path(o), "[vdso]");
	cfi_table_free(&t);
	elf_object_close(o);
	assert_int_equal(elf_object_open_image("[odd]", "odd", 3, &o, &e), -ENOEXEC);
	assert_non_null(strstr(e.text, "[odd]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_executable),
		cmocka_unit_test(without_section_headers),
		cmocka_unit_test(section_outside_of_the_file),
		cmocka_unit_test(code_too_far_apart),
		cmocka_unit_test(vdso),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
