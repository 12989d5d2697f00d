// SPDX-License-Identifier: BSD-2-Clause
/* Where functions are, by call frame information alone; and what a file whose names were stripped
 * calls them. */
#include "program/elf/cfi.h"
#include "program/elf/object.h"
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VADDR 0x40000ULL
#define CODE_LO 0x10000ULL
#define CODE_HI 0x20000ULL

/* A common entry as GCC writes it: "zR", pcrel and four bytes for addresses. */
static const uint8_t common[] = {0x14, 0,    0,	 0, 0,	  0,	0, 0, 1,    'z', 'R', 0,
				 1,    0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,	 0,   0};

static uint8_t bytes[512];
static size_t size;

static void put(const void *p, size_t n)
{
	memcpy(bytes + size, p, n);
	size += n;
}

static void entry(uint64_t lo, uint32_t length)
{
	uint32_t head[] = {16, (uint32_t)size + 4}, place;

	put(head, sizeof(head));
	place = (uint32_t)(lo - (VADDR + size));
	put(&place, sizeof(place));
	put(&length, sizeof(length));
	put("\0\0\0", 4); /* no augmentation; three nops */
}

static void by_address_and_each_once(void **state)
{
	static const struct cfi_extent wanted[] = {{CODE_LO, CODE_LO + 0x10},
						   {CODE_LO + 0x40, CODE_LO + 0x60},
						   {CODE_HI - 8, CODE_HI}};
	struct cfi_section s = {.name = "libodd.so",
				.bytes = bytes,
				.vaddr = VADDR,
				.code_lo = CODE_LO,
				.code_hi = CODE_HI};
	struct error e = {.text = ""};
	struct cfi_extent *all;
	size_t n;

	(void)state;
	put(common, sizeof(common));
	entry(CODE_LO + 0x40, 0x20);
	entry(CODE_LO, 0x10);
	entry(CODE_HI - 8, 0x100);     /* past the end */
	entry(CODE_LO + 0x40, 0x30);   /* the first of a place counts */
	entry(CODE_LO - 0x1000, 0x10); /* no code of the file */
	entry(CODE_LO + 0x80, 0);
	s.size = size;
	assert_int_equal(cfi_section_extents(&s, &all, &n, &e), 0);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		assert_true(all[i].lo == wanted[i].lo && all[i].hi == wanted[i].hi);
	free(all);
	s.size = size - 1;
	assert_int_equal(cfi_section_extents(&s, &all, &n, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "libodd.so"));
}

struct seen {
	const struct elf_object *o;
	size_t named, nameless;
	uint64_t end;
};

static int look(const struct elf_symbol *s, void *arg)
{
	struct seen *seen = arg;
	struct elf_symbol again;
	char place[64];

	(void)snprintf(place, sizeof(place), "+0x%llx", (unsigned long long)s->addr);
	if (s->is_nameless) {
		assert_true(strlen(s->name) > strlen(place) &&
			    !strcmp(s->name + strlen(s->name) - strlen(place), place));
		assert_int_equal(strncmp(s->name, "as-it-is-called+", 16), 0);
		/* No table says otherwise of this code. */
		assert_true(s->addr >= seen->end);
		assert_int_equal(elf_object_function_at(seen->o, s->addr, &again), 0);
		assert_string_equal(again.name, s->name);
	}
	seen->named += !s->is_nameless;
	seen->nameless += s->is_nameless;
	if (!s->is_nameless && s->addr + s->size > seen->end)
		seen->end = s->addr + s->size;
	return 0;
}

/* The C library of every Debian is stripped: what it exports has names. */
static void a_stripped_library(void **state)
{
	static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6",
					    "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6"};
	struct seen seen = {0};
	struct elf_object *o = NULL;
	struct elf_symbol s;

	(void)state;
	for (size_t i = 0; !o && i < sizeof(paths) / sizeof(paths[0]); i++)
		(void)elf_object_open(paths[i], &o, NULL);
	if (!o)
		skip();
	elf_object_set_called(o, "/some/where/as-it-is-called");
	seen.o = o;
	assert_int_equal(elf_object_each_function(o, look, &seen), 0);
	assert_true(seen.named > 1000);
	assert_true(elf_object_has_symbols(o) && elf_object_has_functions(o));
	assert_int_equal(elf_object_find_function(o, "malloc", &s), 0);
	assert_false(s.is_nameless);
	/* With its debug symbols installed there are none left without a name. */
	print_message("%zu with a name, %zu without\n", seen.named, seen.nameless);
	elf_object_close(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_address_and_each_once),
					   cmocka_unit_test(a_stripped_library)};

	return cmocka_run_group_tests_name("elf extents", tests, NULL, NULL);
}
