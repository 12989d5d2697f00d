// SPDX-License-Identifier: BSD-2-Clause
/* Reading /proc/PID/maps, of ourselves and of invented processes. */
#include "base/cleanup.h"
#include "base/error.h"
#include "target/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "rights.h"

static struct map_list parse_bytes(const char *text, size_t size)
{
	_cleanup_fclose_ FILE *f = fmemopen((char *)(uintptr_t)text, size, "r");
	struct map_list l = {0};

	assert_non_null(f);
	assert_int_equal(map_list_parse(f, &l), 0);
	return l;
}

static struct map_list parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

/* The entry that contains @addr. */
static const struct map_entry *find(const struct map_list *l, const void *addr)
{
	for (size_t i = 0; i < l->n; i++)
		if ((uintptr_t)addr - l->entries[i].start < l->entries[i].end - l->entries[i].start)
			return &l->entries[i];
	fail_msg("%p is not mapped", addr);
	return NULL;
}

static void reads_fields(void **state)
{
	struct map_list l =
		parse("00400000-00452000 r-xp 00001000 fe:0a 173521      /usr/bin/dbus daemon\n"
		      "00651000-00652000 r--p 00051000 fe:0a 173521      /usr/bin/dbus daemon\n"
		      "7f00000000-7f00001000 r-xp 00000000 00:1f 12 /tmp/a\\012b (deleted)\n"
		      "7f00002000-7f00003000 rwxp 00000000 00:00 0 \n"
		      "7fff0000-7fff1000 r-xp 00000000 00:00 0 [vdso]\n"
		      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");

	(void)state;
	assert_int_equal(l.n, 2);
	assert_int_equal(l.entries[0].start, 0x400000);
	assert_int_equal(l.entries[0].end, 0x452000);
	assert_int_equal(l.entries[0].offset, 0x1000);
	assert_int_equal(l.entries[0].inode, 173521);
	assert_int_equal(l.entries[0].device, makedev(0xfe, 0x0a));
	assert_string_equal(l.entries[0].path, "/usr/bin/dbus daemon");
	assert_string_equal(l.entries[1].path, "/tmp/a\nb");
	map_list_free(&l);
	assert_int_equal(l.n, 0);
}

/* A program's code that it has copied to memory of its own, in the same place. */
static void finds_copies(void **state)
{
	struct map_list l =
		parse("00400000-00401000 r--p 00000000 fe:0a 7 /usr/bin/a\n"
		      "00401000-00600000 r-xp 00001000 fe:0a 7 /usr/bin/a\n"
		      "00600000-00a00000 r-xp 00000000 00:00 0 \n"
		      "00a00000-00c00000 rwxp 00000000 00:00 0 [anon:code]\n"
		      "00c00000-00e00000 r-xp 00000000 00:0f 9 /anon_hugepage (deleted)\n"
		      "00e00000-00f00000 r-xp 00a00000 fe:0a 7 /usr/bin/a\n"
		      "01000000-01001000 r-xp 00000000 00:00 0 \n"
		      "02000000-02001000 r--p 00000000 00:01 8 /memfd:library (deleted)\n"
		      "02001000-02002000 r-xp 00001000 00:01 8 /memfd:library (deleted)\n"
		      "02002000-02003000 rw-p 00000000 00:00 0 \n"
		      "02003000-02004000 rwxp 00000000 00:00 0 \n");

	(void)state;
	assert_int_equal(l.n, 3);
	assert_int_equal(l.n_copies, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(l.copies[i].start, i == 0   ? 0x600000
						    : i == 1 ? 0xa00000
							     : 0xc00000);
		assert_int_equal(l.copies[i].near.start, 0x401000);
		assert_int_equal(l.copies[i].near.offset, 0x1000);
		assert_int_equal(l.copies[i].near.inode, 7);
		assert_string_equal(l.copies[i].near.path, "/usr/bin/a");
	}
	assert_int_equal(l.copies[2].end, 0xe00000);
	/* What a JIT compiler has made looks the same. */
	assert_int_equal(l.n_made, 3);
	assert_int_equal(l.made[0].start, 0x600000);
	assert_int_equal(l.made[0].end, 0xc00000);
	assert_int_equal(l.made[1].start, 0x1000000);
	assert_int_equal(l.made[2].start, 0x2003000);
	map_list_free(&l);
	assert_int_equal(l.n_made, 0);
	l = parse("01000000-01001000 rwxs 00000000 00:01 8 /memfd:doublemapper (deleted)\n"
		  "01001000-01002000 rw-s 00000000 00:01 8 /memfd:doublemapper (deleted)\n"
		  "01002000-01003000 rwxp 00000000 00:00 0 [heap]\n"
		  "01003000-01004000 --xp 00000000 00:00 0 [vsyscall]\n");
	assert_int_equal(l.n, 0);
	assert_int_equal(l.n_made, 1);
	assert_int_equal(l.made[0].end, 0x1001000);
	map_list_free(&l);
	l = parse("01000000-01001000 rw-s 00000000 00:01 8 /dev/zero (deleted)\n"
		  "01001000-01002000 r-xs 00001000 00:01 8 /dev/zero (deleted)\n"
		  "02000000-02001000 r-xp 00000000 fe:0a 7 /usr/bin/a\n"
		  "02001000-02002000 r-xs 00000000 00:01 9 /dev/zero (deleted)\n");
	assert_int_equal(l.n, 1);
	assert_int_equal(l.n_made, 2);
	assert_int_equal(l.made[0].start, 0x1001000);
	assert_int_equal(l.n_copies, 1);
	assert_int_equal(l.copies[0].start, 0x2001000);
	map_list_free(&l);
	assert_int_equal(l.n_copies, 0);
}

static void skips_nonsense(void **state)
{
	static const char *const bad[] = {
		"",
		"\n\n",
		"x",
		"-",
		"1-2",
		"1-2 r-xp",
		"2000-1000 r-xp 0 0:1 5 /a\n",
		"1000-1000 r-xp 0 0:1 5 /a\n",
		"11111111111111111-22222222222222222 r-xp 0 0:1 5 /a\n",
		"1000-2000 r-xp 0 0:1 99999999999999999999999 /a\n",
		"1000-2000 r-xp 0 0:1 -5 /a\n",
		"1000-2000 r-xp 0 fffffffff:1 5 /a\n",
		"1000-2000 r-x 0 0:1 5 /a\n",
		"1000-2000 r-xp 0 0:1 5 a\n",
		"1000-2000 r-xp 0 0:1 5\n",
		"1000-2000 r-xp ffffffffffffffff 0:1 5 /a\n",
		"1000-2000 r--p 0 0:1 5 /a\n",
		" 1000-2000 r-xp 0 0:1 5 /a\n",
	};
	struct map_list l;
	char nul[] = "1000-2000 r-xp 0 0:1 5 /a?b\n";

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		l = parse(bad[i]);
		assert_int_equal(l.n, 0);
		map_list_free(&l);
	}
	*strchr(nul, '?') = '\0';
	l = parse_bytes(nul, sizeof(nul) - 1);
	assert_int_equal(l.n, 0);
	/* An overlap and a step back are dropped, what follows is kept; the last line needs no
	 * newline. */
	l = parse("3000-5000 r-xp 0 0:1 5 /a\n4000-6000 r-xp 0 0:1 5 /b\n1000-2000 r-xp 0 0:1 5 "
		  "/c\n5000-6000 r-xp 0 0:1 5 /d");
	assert_int_equal(l.n, 2);
	assert_string_equal(l.entries[1].path, "/d");
	map_list_free(&l);
}

static void is_bounded(void **state)
{
	_cleanup_free_ char *text = NULL, *longest = NULL;
	struct map_list l;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	for (unsigned int i = 0; i < MAP_LIST_MAX + 10; i++)
		(void)fprintf(f, "%x-%x r-xp 0 0:1 5 /a\n", i * 4096, (i + 1) * 4096);
	assert_int_equal(fclose(f), 0);
	l = parse_bytes(text, size);
	assert_int_equal(l.n, MAP_LIST_MAX);
	map_list_free(&l);
	assert_true(asprintf(&longest, "1000-2000 r-xp 0 0:1 5 /%0100000d\n", 0) > 0);
	l = parse(longest);
	assert_int_equal(l.n, 0);
	map_list_free(&l);
}

static void reads_ourselves(void **state)
{
	struct map_list l = {0};
	const struct map_entry *m;
	_cleanup_free_ char *path = NULL;
	struct stat exe, opened;

	(void)state;
	assert_int_equal(map_list_read(getpid(), &l, NULL), 0);
	m = find(&l, (const void *)(uintptr_t)reads_ourselves);
	assert_int_equal(stat("/proc/self/exe", &exe), 0);
	assert_int_equal(m->inode, exe.st_ino);
	assert_int_equal(map_entry_open_path(getpid(), m, &path, NULL), 0);
	assert_int_equal(stat(path, &opened), 0);
	assert_int_equal(opened.st_ino, exe.st_ino);
	assert_int_equal(opened.st_dev, exe.st_dev);
	map_list_free(&l);
}

static void no_such_process(void **state)
{
	struct map_list l = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(map_list_read(0x7ffffff0, &l, &e), -ESRCH);
	assert_non_null(strstr(e.text, "does not exist"));
}

static bool is_file(const struct map_entry *m, int fd, const char *name)
{
	struct statx x;

	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x), 0);
	return map_entry_is_file(m, &x, name);
}

/* As a user who may not follow the kernel's links. */
static int open_path_by_name(const struct map_entry *m, char **ret, struct error *e)
{
	int r;

	assert_int_equal(seteuid(rights_follow_mapped() ? 65534 : geteuid()), 0);
	r = map_entry_open_path(getpid(), m, ret, e);
	assert_int_equal(seteuid(getuid()), 0);
	return r;
}

/* A mapped file that was deleted and replaced: the new one must not pass for it. */
static void replaced_file(void **state)
{
	char name[] = "/tmp/cozbpf-maps-XXXXXX", elsewhere[] = "/no/such/file", page[4096] = {0};
	int fd = mkstemp(name), fresh;
	_cleanup_free_ char *path = NULL;
	struct map_list l = {0};
	const struct map_entry *m;
	struct map_entry moved;
	struct error e = {0};
	struct stat mapped, opened;
	void *p;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	p = mmap(NULL, sizeof(page), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(fstat(fd, &mapped), 0);
	assert_int_equal(unlink(name), 0);
	fresh = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
	assert_true(fresh >= 0);
	assert_int_equal(map_list_read(getpid(), &l, NULL), 0);
	m = find(&l, p);
	assert_string_equal(m->path, name);
	if (map_entry_open_path(getpid(), m, &path, &e) == 0) {
		assert_int_equal(stat(path, &opened), 0);
		assert_int_equal(opened.st_ino, mapped.st_ino);
		assert_true(is_file(m, fd, NULL));
		assert_false(is_file(m, fresh, NULL));
		assert_int_equal(is_file(m, fresh, name), major(mapped.st_dev) == 0);
		/* On some file systems stat has another device: on those that have none of their
		 * own. */
		moved = *m;
		moved.device++;
		free(path);
		path = NULL;
		assert_int_equal(map_entry_open_path(getpid(), &moved, &path, &e),
				 major(mapped.st_dev) ? -ESTALE : 0);
	}
	/* So it is with another name. */
	moved = *m;
	moved.device++;
	moved.path = elsewhere;
	free(path);
	path = NULL;
	assert_int_equal(map_entry_open_path(getpid(), &moved, &path, &e),
			 !rights_follow_mapped() ? -ENOENT
			 : major(mapped.st_dev)	 ? -ESTALE
						 : 0);
	moved = *m;
	moved.start += 4096;
	moved.end += 4096;
	assert_int_equal(map_entry_open_path(getpid(), &moved, &path, &e), -ESTALE);
	/* Who may not follow the links has only the path. */
	moved = *m;
	assert_int_equal(open_path_by_name(&moved, &path, &e), -ESTALE);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(open_path_by_name(&moved, &path, &e), -ENOENT);
	assert_null(path);
	/* By path alone, unprivileged readers' way. */
	fresh = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
	assert_int_equal(fstat(fresh, &opened), 0);
	moved.inode = opened.st_ino;
	moved.device = opened.st_dev;
	assert_int_equal(open_path_by_name(&moved, &path, &e), 0);
	assert_non_null(strstr(path, "/root/tmp/"));
	(void)unlink(name);
	(void)munmap(p, sizeof(page));
	(void)close(fd);
	map_list_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_fields),	   cmocka_unit_test(finds_copies),
		cmocka_unit_test(skips_nonsense),  cmocka_unit_test(is_bounded),
		cmocka_unit_test(reads_ourselves), cmocka_unit_test(no_such_process),
		cmocka_unit_test(replaced_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
