// SPDX-License-Identifier: BSD-2-Clause
/* Perf maps: their lines, and which files are taken for them. */
#include "program/elf/perf_map.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rights.h"

static struct perf_map parse(const char *text)
{
	struct perf_map m = {0};

	assert_int_equal(perf_map_parse(text, strlen(text), &m), 0);
	assert_true(perf_map_is_sound(&m));
	return m;
}

static const char *name_at(const struct perf_map *m, uint64_t addr)
{
	const struct perf_map_entry *x = perf_map_at(m, addr);

	return x ? m->names + x->name : "";
}

static void lines_of_all_runtimes(void **state)
{
	struct perf_map m =
		parse("7f0000001000 40 JS:*fib /srv/app.js:12:17\n"
		      "7f0000001040 40 JS:~ /srv/app.js:1:1\n"
		      "7f0000001080 40 LazyCompile:^fib /srv/app.js:12:17\n"
		      "0x00007f0000002000 0x0000000000000080 int java.lang.String.hashCode()\n"
		      "0x7f0000003000 20 py::fib:/srv/app.py\n"
		      "00007F0000004000 a0 void [app] Program::Work(int32)[OptimizedTier1]\n"
		      "7f0000005000 10 TRACE_1::app.lua:3\r\n");

	(void)state;
	assert_int_equal(m.n, 7);
	assert_string_equal(name_at(&m, 0x7f0000001000), "fib /srv/app.js:12:17");
	assert_string_equal(name_at(&m, 0x7f000000107f), "(anonymous) /srv/app.js:1:1");
	assert_string_equal(name_at(&m, 0x7f0000001080), "fib /srv/app.js:12:17");
	assert_string_equal(name_at(&m, 0x7f00000010c0), "");
	assert_string_equal(name_at(&m, 0x7f0000000fff), "");
	assert_string_equal(name_at(&m, 0x7f0000002001), "int java.lang.String.hashCode()");
	assert_string_equal(name_at(&m, 0x7f000000301f), "py::fib:/srv/app.py");
	assert_string_equal(name_at(&m, 0x7f0000004000), "void [app] Program::Work(int32)");
	assert_string_equal(name_at(&m, 0x7f0000005000), "TRACE_1::app.lua:3");
	assert_int_equal(m.all[0].hash, perf_map_hash("fib /srv/app.js:12:17", 21));
	assert_int_equal(m.all[0].hash, m.all[2].hash);
	perf_map_free(&m);
}

/* A place is given to another function when the one before is thrown away. */
static void later_lines_override(void **state)
{
	struct perf_map m = parse("1000 1000 whole\n"
				  "1100 100 inside\n"
				  "1f00 200 across\n"
				  "3000 100 first\n"
				  "3000 100 second\n"
				  "4000 10 covered\n"
				  "3ff0 100 cover\n");

	(void)state;
	assert_string_equal(name_at(&m, 0x10ff), "whole");
	assert_string_equal(name_at(&m, 0x1100), "inside");
	assert_string_equal(name_at(&m, 0x11ff), "inside");
	assert_string_equal(name_at(&m, 0x1200), "whole");
	assert_string_equal(name_at(&m, 0x1eff), "whole");
	assert_string_equal(name_at(&m, 0x1f00), "across");
	assert_string_equal(name_at(&m, 0x20ff), "across");
	assert_string_equal(name_at(&m, 0x3000), "second");
	assert_string_equal(name_at(&m, 0x4008), "cover");
	assert_int_equal(m.n, 6);
	/* What nothing is called by any more is not kept. */
	for (size_t i = 0; i < m.names_size; i += strlen(m.names + i) + 1)
		assert_true(strcmp(m.names + i, "first") && strcmp(m.names + i, "covered"));
	perf_map_free(&m);
}

static void skips_nonsense(void **state)
{
	static const char *const bad[] = {
		"",
		"\n\n\n",
		"1000\n",
		"1000 10\n",
		"1000 10 \n",
		"1000 0 empty\n",
		"-1000 10 negative\n",
		"1000 -10 negative\n",
		"10g0 10 no number\n",
		"\x11\x10\x10\x10 10 no number\n",
		"0x 10 no number\n",
		"fffffffffffff000 1000 beyond\n",
		"7fffffffff00 ffffffffffffffff too long\n",
		"11111111111111111 10 too large\n",
		"1000 10 unfinished", /* it is being written */
	};
	struct perf_map m;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m = parse(bad[i]);
		assert_int_equal(m.n, 0);
		perf_map_free(&m);
	}
	m = parse("nonsense\n1000 10 good\nnonsense");
	assert_string_equal(name_at(&m, 0x1000), "good");
	perf_map_free(&m);
}

/* They reach terminals and files with a record on each line. */
static void names_are_harmless(void **state)
{
	char text[2000] = "1000 10 a\tb\033[31m\177\n2000 10 a";
	size_t n = strlen(text);
	struct perf_map m;

	(void)state;
	for (size_t i = 0; i < 400; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\xe2\x82\xac");
	(void)strcpy(text + n, "\n");
	m = parse(text);
	assert_string_equal(name_at(&m, 0x1000), "a?b?[31m?");
	/* Cut, but not within a character. */
	assert_int_equal(PERF_MAP_MAX_NAME % 3, 0);
	assert_int_equal(strlen(name_at(&m, 0x2000)), PERF_MAP_MAX_NAME - 2);
	perf_map_free(&m);
}

static void is_bounded(void **state)
{
	const size_t lines = PERF_MAP_MAX_LINES + 1000;
	_cleanup_free_ char *text = malloc(lines * 32);
	struct perf_map m = {0};
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < lines; i++)
		n += (size_t)snprintf(text + n, 32, "%zx 8 f%zu\n", 0x100000 + 16 * i, i);
	assert_int_equal(perf_map_parse(text, n, &m), 0);
	assert_int_equal(m.n, PERF_MAP_MAX_LINES);
	/* The newest ones. */
	assert_null(perf_map_at(&m, 0x100000));
	assert_string_equal(name_at(&m, 0x100000 + 16 * (lines - 1)), "f525287");
	assert_int_equal(lines, 525288);
	perf_map_free(&m);
}

/* What a decoder that somebody has taken over could send. */
static void unsound_ones_are_found(void **state)
{
	struct perf_map m = parse("1000 10 a\n2000 10 b\n");
	struct perf_map_entry saved = m.all[1];
	char last = m.names[m.names_size - 1];

	(void)state;
	m.all[1].lo = 0x100f;
	assert_false(perf_map_is_sound(&m));
	m.all[1] = saved;
	m.all[1].hi = m.all[1].lo;
	assert_false(perf_map_is_sound(&m));
	m.all[1] = saved;
	m.all[1].hi = UINT64_MAX;
	assert_false(perf_map_is_sound(&m));
	m.all[1] = saved;
	m.all[1].name = (uint32_t)m.names_size;
	assert_false(perf_map_is_sound(&m));
	m.all[1] = saved;
	m.names[m.names_size - 1] = 'x';
	assert_false(perf_map_is_sound(&m));
	m.names[m.names_size - 1] = last;
	m.names[m.all[1].name] = '\0';
	assert_false(perf_map_is_sound(&m));
	perf_map_free(&m);
}

/* The map of this process. */
static char path[64];

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path) == 0 || errno == ENOENT ? 0 : -1;
}

static void put(const char *text)
{
	_cleanup_fclose_ FILE *f = fopen(path, "ae");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static void follows_the_file(void **state)
{
	struct perf_map_file known = {0};
	struct perf_map m = {0};

	(void)state;
	assert_int_equal(perf_map_read(getpid(), &known, &m), -ENOENT);
	put("1000 10 first\n");
	assert_int_equal(perf_map_read(getpid(), &known, &m), 0);
	assert_string_equal(name_at(&m, 0x1000), "first");
	perf_map_free(&m);
	assert_int_equal(perf_map_read(getpid(), &known, &m), -EALREADY);
	put("2000 10 second\n");
	assert_int_equal(perf_map_read(getpid(), &known, &m), 0);
	assert_string_equal(name_at(&m, 0x1000), "first");
	assert_string_equal(name_at(&m, 0x2000), "second");
	perf_map_free(&m);
	/* Wherever the process is. */
	assert_int_equal(chdir("/proc"), 0);
	known = (struct perf_map_file){0};
	assert_int_equal(perf_map_read(getpid(), &known, &m), 0);
	perf_map_free(&m);
}

static void other_files_are_not_taken(void **state)
{
	const struct timespec old[] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	char other[80];
	struct perf_map_file known = {0};
	struct perf_map m = {0};

	(void)state;
	put("1000 10 stale\n");
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(perf_map_read(getpid(), &known, &m), -ESTALE);
	(void)snprintf(other, sizeof(other), "%s.other", path);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(perf_map_read(getpid(), &known, &m), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(other), 0);
	/* Nobody waits for who writes into it. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(perf_map_read(getpid(), &known, &m), -ENOEXEC);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(perf_map_read(getpid(), &known, &m), -ENOEXEC);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(known.inode, 0);
	assert_null(m.all);
}

/* Of a process that belongs to nobody: its own and root's are taken, others' are not. */
static void others_files_are_not_taken(void **state)
{
	struct perf_map_file known = {0};
	struct perf_map m = {0};
	int ready[2];
	char c;
	pid_t pid;

	(void)state;
	if (!rights_have(CAP_SYS_PTRACE) || !rights_have(CAP_SETUID) || !rights_have(CAP_CHOWN))
		skip();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0)
			(void)!write(ready[1], "r", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	put("1000 10 f\n");
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(perf_map_read(pid, &known, &m), -EPERM);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(perf_map_read(pid, &known, &m), 0);
	perf_map_free(&m);
	known = (struct perf_map_file){0};
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(perf_map_read(pid, &known, &m), 0);
	perf_map_free(&m);
	/* It is opened with the process's rights. */
	known = (struct perf_map_file){0};
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(perf_map_read(pid, &known, &m), -EACCES);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_true(perf_map_read(pid, &known, &m) < 0);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

/* The end of a file that is too long, from its first whole line on. */
static void long_files_are_cut(void **state)
{
	_cleanup_free_ char *filling = malloc(1 << 20);
	struct perf_map_file known = {0};
	struct perf_map m = {0};

	(void)state;
	assert_non_null(filling);
	memset(filling, 'x', 1 << 20);
	filling[(1 << 20) - 1] = '\0';
	put("1000 10 lost\n");
	for (size_t i = 0; i <= PERF_MAP_MAX_BYTES >> 20; i++)
		put(filling);
	put("\n2000 10 last\n");
	assert_int_equal(perf_map_read(getpid(), &known, &m), 0);
	assert_null(perf_map_at(&m, 0x1000));
	assert_string_equal(name_at(&m, 0x2000), "last");
	perf_map_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_all_runtimes),
		cmocka_unit_test(later_lines_override),
		cmocka_unit_test(skips_nonsense),
		cmocka_unit_test(names_are_harmless),
		cmocka_unit_test(is_bounded),
		cmocka_unit_test(unsound_ones_are_found),
		cmocka_unit_test_setup_teardown(follows_the_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_files_are_not_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_files_are_not_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_files_are_cut, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
