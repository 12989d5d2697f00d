// SPDX-License-Identifier: BSD-2-Clause
/* The test's own executable is the well-formed input; what is wrong with a file is made by changing
 * a copy of it. */
#include "program/elf/libraries.h"
#include "program/elf/object.h"
#include "program/elf/usdt.h"

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
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

int elf_test_function(int x);
int elf_test_alias(int x) __attribute__((alias("elf_test_function")));
extern const char elf_test_data[];
const char elf_test_data[] = "only data";

__attribute__((noinline)) int elf_test_function(int x)
{
	return x * 3 + 1;
}

static struct elf_object *open_self(void)
{
	struct elf_object *o;
	struct error e = {0};

	assert_int_equal(elf_object_open("/proc/self/exe", &o, &e), 0);
	return o;
}

/* A copy of the first @size bytes (0: all) in memory; its path goes to @path. */
static int copy_self(size_t size, char path[64], Elf64_Ehdr **ret)
{
	_cleanup_close_ int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct stat st;
	char *p;

	assert_true(in >= 0 && fd >= 0);
	assert_int_equal(fstat(in, &st), 0);
	if (!size)
		size = (size_t)st.st_size;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	for (size_t n = 0; n < size;) {
		ssize_t r = pread(in, p + n, size - n, (off_t)n);

		assert_true(r > 0);
		n += (size_t)r;
	}
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	*ret = (Elf64_Ehdr *)(void *)p;
	return fd;
}

static void expect_open(const char *path, int r, const char *words)
{
	struct elf_object *o = NULL;
	struct error e = {0};

	assert_int_equal(elf_object_open(path, &o, &e), r);
	assert_null(o);
	if (!strstr(e.text, words))
		fail_msg("\"%s\" does not say \"%s\"", e.text, words);
	assert_non_null(strstr(e.text, path));
}

static void test_self(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	struct elf_symbol s, at;
	unsigned char code[8];
	uint64_t offset, vaddr;

	(void)state;
	assert_true(elf_object_is_dynamic(o));
	assert_true(elf_object_has_symbols(o));
	assert_int_equal(elf_object_find_function(o, "elf_test_function", &s), 0);
	assert_string_equal(s.name, "elf_test_function");
	assert_true(s.size > 0 && elf_object_is_code(o, s.addr));
	assert_int_equal(elf_object_function_at(o, s.addr + s.size - 1, &at), 0);
	assert_int_equal(at.addr, s.addr);
	assert_int_equal(elf_object_vaddr_to_offset(o, s.addr, &offset), 0);
	assert_int_equal(elf_object_offset_to_vaddr(o, offset, &vaddr), 0);
	assert_int_equal(vaddr, s.addr);
	assert_int_equal(elf_object_read(o, s.addr, code, sizeof(code)), sizeof(code));
	assert_memory_equal(code, (void *)(uintptr_t)elf_test_function, sizeof(code));
}

static void test_aliases_and_data(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	struct elf_symbol a, f;

	(void)state;
	assert_int_equal(elf_object_find_function(o, "elf_test_alias", &a), 0);
	assert_int_equal(elf_object_find_function(o, "elf_test_function", &f), 0);
	assert_int_equal(a.addr, f.addr);
	assert_int_equal(elf_object_find_function(o, "elf_test_data", &a), -EINVAL);
	assert_int_equal(elf_object_find_function(o, "elf_test_nothing", &a), -ENOENT);
}

static void test_outside(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	struct elf_symbol s;
	uint64_t v;
	char c;

	(void)state;
	assert_int_equal(elf_object_vaddr_to_offset(o, UINT64_MAX, &v), -ERANGE);
	assert_int_equal(elf_object_offset_to_vaddr(o, UINT64_MAX, &v), -ERANGE);
	assert_int_equal(elf_object_mapping_bias(o, 0x1000, UINT64_MAX - 4095, &v), -ERANGE);
	assert_int_equal(elf_object_read(o, UINT64_MAX, &c, 1), -ERANGE);
	assert_int_equal(elf_object_function_at(o, 1, &s), -ENOENT);
	assert_false(elf_object_is_code(o, UINT64_MAX));
}

struct order {
	uint64_t last;
	size_t n;
};

static int check_order(const struct elf_symbol *s, void *arg)
{
	struct order *o = arg;

	assert_true(!o->n || s->addr > o->last);
	assert_non_null(s->name);
	o->last = s->addr;
	o->n++;
	return 0;
}

static int stop_at_once(const struct elf_symbol *s, void *arg)
{
	(void)s;
	++*(int *)arg;
	return 7;
}

static void test_each(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	struct order order = {0};
	int calls = 0;

	(void)state;
	assert_int_equal(elf_object_each_function(o, check_order, &order), 0);
	assert_true(order.n > 5);
	assert_int_equal(elf_object_each_function(o, stop_at_once, &calls), 7);
	assert_int_equal(calls, 1);
}

static void test_similar(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	char *names[4];
	size_t n = elf_object_similar_functions(o, "elf_tset_function", names, 4);
	bool found = false;

	(void)state;
	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		found |= !strcmp(names[i], "elf_test_function");
		free(names[i]);
	}
	assert_true(found);
	assert_int_equal(elf_object_similar_functions(o, "qqqqqqqqqqqqqqqqqqqq", names, 4), 0);
}

static void test_demangle(void **state)
{
	static const char *const cases[][2] = {
		{"_ZN2ns1fEi", "ns::f(int)"},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
		{"main", "main"},
		{"_Z", "_Z"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *s = elf_demangle(cases[i][0]);

		assert_string_equal(s, cases[i][1]);
	}
}

/* Each further S_ reference doubles what is written out. */
static void test_demangle_bomb(void **state)
{
	char name[900] = "_Z1f1aIiiE";
	_cleanup_free_ char *s = NULL;
	size_t n = strlen(name);

	(void)state;
	for (int i = 0; i < 30; i++)
		n += (size_t)snprintf(name + n, sizeof(name) - n, "1aIS%c_S%c_E",
				      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
				      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
	s = elf_demangle(name);
	assert_non_null(s);
	assert_true(strlen(s) < 1 << 20);
}

static void test_bad_paths(void **state)
{
	(void)state;
	expect_open("/nonexistent/program", -ENOENT, "no such file");
	expect_open("/", -ENOEXEC, "not a regular file");
	expect_open("/dev/null", -ENOEXEC, "not a regular file");
}

static void test_foreign(void **state)
{
	char path[64];
	Elf64_Ehdr *h;
	_cleanup_close_ int fd = copy_self(0, path, &h);

	(void)state;
	(void)fd;
	h->e_machine = EM_AARCH64;
	expect_open(path, -EINVAL, "built for ARM64");
	h->e_machine = EM_386;
	h->e_ident[EI_CLASS] = ELFCLASS32;
	expect_open(path, -EINVAL, "32-bit");
	h->e_ident[EI_CLASS] = 9;
	expect_open(path, -ENOEXEC, "corrupt");
	h->e_ident[EI_DATA] = ELFDATA2MSB;
	expect_open(path, -EINVAL, "big-endian");
	memcpy(h->e_ident, "#!/bin/sh\n", 10);
	expect_open(path, -ENOEXEC, "script");
	memcpy(h->e_ident, "whatever\n", 9);
	expect_open(path, -ENOEXEC, "not an ELF");
}

static void test_truncated(void **state)
{
	static const size_t sizes[] = {1, 19, 63, 64, 600, 8192};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char path[64];
		Elf64_Ehdr *h;
		_cleanup_close_ int fd = copy_self(sizes[i], path, &h);

		(void)fd;
		expect_open(path, -ENOEXEC, sizes[i] < 4 ? "not an ELF" : "truncated or corrupt");
	}
}

static void test_corrupt_segments(void **state)
{
	char path[64];
	Elf64_Ehdr *h;
	_cleanup_close_ int fd = copy_self(0, path, &h);
	Elf64_Phdr *ph = (Elf64_Phdr *)(void *)((char *)h + h->e_phoff), saved;
	size_t code = 0;

	(void)state;
	(void)fd;
	while (ph[code].p_type != PT_LOAD || !(ph[code].p_flags & PF_X))
		code++;
	saved = ph[code];
	ph[code].p_offset = UINT64_MAX - 10;
	expect_open(path, -ENOEXEC, "past the end");
	ph[code] = saved;
	ph[code].p_memsz = 1;
	expect_open(path, -ENOEXEC, "impossible size");
	ph[code] = saved;
	ph[code].p_vaddr = UINT64_MAX - 10;
	expect_open(path, -ENOEXEC, "impossible size");
	ph[code] = saved;
	ph[code].p_flags = PF_R;
	expect_open(path, -ENOEXEC, "no executable segment");
	ph[code] = saved;
	h->e_type = ET_REL;
	expect_open(path, -ENOEXEC, "not linked");
}

/* Headers that claim much: refused, or read up to a bound. */
static void test_many_headers(void **state)
{
	enum { HEADERS = 2000, NOTE = 1 << 20 };
	char path[64];
	Elf64_Ehdr *h, saved;
	_cleanup_close_ int fd = copy_self(0, path, &h);
	_cleanup_free_ Elf64_Phdr *many = calloc(HEADERS, sizeof(*many));
	struct elf_object *o;
	struct rusage before, after;
	struct stat st;

	(void)state;
	assert_non_null(many);
	saved = *h;
	h->e_phnum = PN_XNUM;
	expect_open(path, -ENOEXEC, "impossibly many headers");
	*h = saved;
	h->e_shnum = 0;
	expect_open(path, -ENOEXEC, "impossibly many headers");
	*h = saved;
	/* Each has a megabyte of notes, in a hole. */
	assert_int_equal(fstat(fd, &st), 0);
	memcpy(many, (char *)h + h->e_phoff, h->e_phnum * sizeof(*many));
	for (size_t i = 0; i < h->e_phnum; i++)
		if (many[i].p_type == PT_NOTE)
			many[i].p_type = PT_NULL;
	for (size_t i = h->e_phnum; i < HEADERS; i++)
		many[i] = (Elf64_Phdr){.p_type = PT_NOTE,
				       .p_offset = (uint64_t)st.st_size + HEADERS * sizeof(*many) +
						   i * NOTE,
				       .p_filesz = NOTE,
				       .p_memsz = NOTE,
				       .p_align = 4};
	assert_int_equal(pwrite(fd, many, HEADERS * sizeof(*many), st.st_size),
			 HEADERS * sizeof(*many));
	assert_int_equal(ftruncate(fd, st.st_size + (off_t)(HEADERS * sizeof(*many)) +
					       (off_t)HEADERS * NOTE),
			 0);
	h->e_phoff = (uint64_t)st.st_size;
	h->e_phnum = HEADERS;
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	assert_int_equal(elf_object_open(path, &o, NULL), 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	elf_object_close(o);
	assert_true(after.ru_maxrss - before.ru_maxrss < 256 << 10); /* KiB */
}

static int ignore_probe(const struct usdt_probe *p, void *arg)
{
	(void)p;
	(void)arg;
	return 0;
}

/* Tables of strings of a gigabyte, in a hole: libelf would read them whole. */
static void test_large_strings(void **state)
{
	char path[64];
	Elf64_Ehdr *h;
	_cleanup_close_ int fd = copy_self(0, path, &h);
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)((char *)h + h->e_shoff);
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct rusage before, after;
	struct stat st;
	size_t n = 0;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	for (size_t i = 0; i < h->e_shnum; i++) {
		if (sections[i].sh_type != SHT_STRTAB)
			continue;
		sections[i].sh_offset = (uint64_t)st.st_size;
		sections[i].sh_size = 1U << 30;
		n++;
	}
	assert_true(n >= 2);
	assert_int_equal(ftruncate(fd, st.st_size + (1 << 30)), 0);
	assert_int_equal(elf_object_open(path, &o, NULL), 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	assert_int_equal(usdt_each(o, ignore_probe, NULL), 0);
	(void)library_can_come(o);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_true(after.ru_maxrss - before.ru_maxrss < 256 << 10); /* KiB */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_aliases_and_data),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_similar),
		cmocka_unit_test(test_demangle),
		cmocka_unit_test(test_demangle_bomb),
		cmocka_unit_test(test_bad_paths),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_corrupt_segments),
		cmocka_unit_test(test_many_headers),
		cmocka_unit_test(test_large_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
