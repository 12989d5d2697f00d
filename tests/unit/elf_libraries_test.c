// SPDX-License-Identifier: BSD-2-Clause
/* Where a program's libraries are looked for, and that a program cannot have it go on for long. */
#include "program/elf/libraries.h"
#include "program/elf/object.h"

#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf_forged.h"

#define MAX_NEEDED 64

/* A directory with one library, which is this program. */
struct place {
	char dir[64], library[96];
};

static void make_place(struct place *p, const char *library)
{
	_cleanup_free_ char *self = realpath("/proc/self/exe", NULL);

	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/cozbpf-libraries.XXXXXX");
	assert_non_null(self);
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->library, sizeof(p->library), "%s/%s", p->dir, library);
	assert_int_equal(symlink(self, p->library), 0);
}

static void remove_place(struct place *p)
{
	(void)unlink(p->library);
	(void)rmdir(p->dir);
}

/* A program that needs lib0.so.1, lib1.so.1, ... and looks for them in @missing directories that
 * are not there, then in @dir. */
static struct elf_object *open_program(size_t needed, size_t missing, const char *dir)
{
	static char strings[1 << 16];
	Elf64_Dyn dynamic[MAX_NEEDED + 2] = {{0}};
	const struct forged_section sections[] = {
		{".text", "\x90", {.sh_type = SHT_PROGBITS, .sh_size = 1}},
		{".dynamic",
		 dynamic,
		 {.sh_type = SHT_DYNAMIC,
		  .sh_size = sizeof(dynamic),
		  .sh_link = 3,
		  .sh_entsize = sizeof(*dynamic)}},
		{".dynstr", strings, {.sh_type = SHT_STRTAB, .sh_size = sizeof(strings)}},
	};
	_cleanup_close_ int fd = -1;
	struct elf_object *o = NULL;
	size_t at = 1;
	char path[64];

	for (size_t i = 0; i < needed; i++) {
		dynamic[i] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = at};
		at += (size_t)snprintf(strings + at, sizeof(strings) - at, "lib%zu.so.1", i) + 1;
	}
	dynamic[needed] = (Elf64_Dyn){.d_tag = DT_RUNPATH, .d_un.d_val = at};
	for (size_t i = 0; i < missing; i++)
		at += (size_t)snprintf(strings + at, sizeof(strings) - at, "/nowhere/%zu:", i);
	(void)snprintf(strings + at, sizeof(strings) - at, "%s", dir);
	fd = forge_elf(sections, 3, 0, path);
	assert_int_equal(elf_object_open(path, &o, NULL), 0);
	return o;
}

static bool finds(size_t missing, const struct place *p)
{
	_cleanup_elf_object_ struct elf_object *o = open_program(0, missing, p->dir);
	_cleanup_free_ char *found = library_find(o, "lib9.so.1");

	assert_true(!found || !strcmp(found, p->library));
	return found;
}

static void test_directories(void **state)
{
	struct place p;

	(void)state;
	make_place(&p, "lib9.so.1");
	assert_true(finds(0, &p));
	assert_true(finds(200, &p));
	assert_false(finds(300, &p));
	remove_place(&p);
}

static int count(const struct elf_object *library, void *arg)
{
	size_t *n = arg;

	*n += strstr(elf_object_path(library), "/cozbpf-libraries.") != NULL;
	return 0;
}

/* How many of the place's libraries a program finds that needs @needed. */
static size_t walk(size_t needed, size_t missing, const struct place *p)
{
	_cleanup_elf_object_ struct elf_object *o = open_program(needed, missing, p->dir);
	size_t n = 0;

	assert_int_equal(library_each_needed(o, count, &n), 0);
	return n;
}

static void test_all_opens(void **state)
{
	struct place p;

	(void)state;
	make_place(&p, "lib50.so.1");
	assert_int_equal(walk(51, 10, &p), 1);
	assert_int_equal(walk(50, 10, &p), 0);
	assert_int_equal(walk(51, 200, &p), 0);
	remove_place(&p);
}

/* Names that no file has, each the end of another: to keep and compare them is not bounded by their
 * number alone. */
static void test_long_names(void **state)
{
	enum { NAMES = 20000, LENGTH = 1 << 20 };
	static Elf64_Dyn dynamic[NAMES];
	static char strings[LENGTH + NAMES + 1];
	const struct forged_section sections[] = {
		{".text", "\x90", {.sh_type = SHT_PROGBITS, .sh_size = 1}},
		{".dynamic",
		 dynamic,
		 {.sh_type = SHT_DYNAMIC,
		  .sh_size = sizeof(dynamic),
		  .sh_link = 3,
		  .sh_entsize = sizeof(*dynamic)}},
		{".dynstr", strings, {.sh_type = SHT_STRTAB, .sh_size = sizeof(strings)}},
	};
	_cleanup_elf_object_ struct elf_object *o = NULL;
	_cleanup_close_ int fd = -1;
	char path[64];
	size_t n = 0;

	(void)state;
	memset(strings, 'x', sizeof(strings) - 1);
	for (size_t i = 0; i < NAMES; i++)
		dynamic[i] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = i};
	fd = forge_elf(sections, 3, 0, path);
	assert_int_equal(elf_object_open(path, &o, NULL), 0);
	(void)alarm(20);
	assert_int_equal(library_each_needed(o, count, &n), 0);
	(void)alarm(0);
	assert_int_equal(n, 0);
}

/* The C library can be executed; it is everybody's library all the same. */
static void test_libraries_that_execute(void **state)
{
	struct elf_object *o = NULL, *library = NULL;
	_cleanup_free_ char *path = NULL;

	(void)state;
	assert_int_equal(elf_object_open("/proc/self/exe", &o, NULL), 0);
	assert_false(library_is_one(o));
	path = library_find(o, "libc.so.6");
	assert_non_null(path);
	assert_int_equal(elf_object_open(path, &library, NULL), 0);
	assert_true(library_is_one(library));
	elf_object_close(library);
	elf_object_close(o);
}

/* A file with DF_1_PIE is a program, also if it has a soname. A file without a dynamic section is a
 * program as well. */
static void test_programs_with_names(void **state)
{
	Elf64_Dyn dynamic[2] = {{.d_tag = DT_SONAME, .d_un.d_val = 1},
				{.d_tag = DT_FLAGS_1, .d_un.d_val = DF_1_NOW}};
	const Elf64_Half shared = ET_DYN;
	const struct forged_section sections[] = {
		{".text", "\x90", {.sh_type = SHT_PROGBITS, .sh_size = 1}},
		{".dynamic",
		 dynamic,
		 {.sh_type = SHT_DYNAMIC,
		  .sh_size = sizeof(dynamic),
		  .sh_link = 3,
		  .sh_entsize = sizeof(*dynamic)}},
		{".dynstr", "\0name", {.sh_type = SHT_STRTAB, .sh_size = 6}},
	};

	(void)state;
	for (int i = 0; i < 3; i++) {
		_cleanup_elf_object_ struct elf_object *o = NULL;
		_cleanup_close_ int fd = -1;
		char path[64];

		dynamic[1].d_un.d_val = i == 1 ? DF_1_PIE : DF_1_NOW;
		fd = forge_elf(sections, i == 2 ? 1 : 3, 0, path);
		assert_int_equal(pwrite(fd, &shared, sizeof(shared), offsetof(Elf64_Ehdr, e_type)),
				 sizeof(shared));
		assert_int_equal(elf_object_open(path, &o, NULL), 0);
		assert_int_equal(library_is_one(o), i == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_all_opens),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_libraries_that_execute),
		cmocka_unit_test(test_programs_with_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
