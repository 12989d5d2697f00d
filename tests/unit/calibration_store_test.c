// SPDX-License-Identifier: BSD-2-Clause
/* Keeping a calibration: what comes back is what was kept, and nothing that anybody else can have
 * had a hand in. */
#include "kernel/calibration/store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct calibration_key key = {"calibration-2", "boot=b1 build=0a payer=2"};
static const struct abi_costs some = {.pay = {4321, 0, 17}, .hit = {0, CALIBRATION_MAX, 640}, 7};

static char run[64], directory[96], file[128];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(run, sizeof(run), "/tmp/cozbpf-calibration-XXXXXX");
	assert_non_null(mkdtemp(run));
	(void)snprintf(directory, sizeof(directory), "%s/cozbpf", run);
	(void)snprintf(file, sizeof(file), "%s/calibration-2", directory);
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", run);
	return system(command);
}

static int recall(void)
{
	const struct abi_costs untouched = {{-1, -2, -3}, {-4, -5, -6}};
	struct abi_costs c = untouched;
	int r = calibration_recall(run, &key, &c);

	assert_memory_equal(&c, r == 0 ? &some : &untouched, sizeof(c));
	return r;
}

static void keep(void)
{
	assert_int_equal(calibration_keep(run, &key, &some), 0);
	assert_int_equal(recall(), 0);
}

static void write_text(const char *text, size_t size)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	assert_int_equal(close(fd), 0);
}

static size_t read_text(char *buf, size_t size)
{
	int fd = open(file, O_RDONLY);
	ssize_t n = read(fd, buf, size);

	assert_true(n > 0);
	assert_int_equal(close(fd), 0);
	return (size_t)n;
}

static void comes_back(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(recall(), -ENOENT);
	keep();
	assert_int_equal(stat(directory, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	keep(); /* over the first */
	assert_int_equal(unlink(file), 0);
	assert_int_equal(recall(), -ENOENT);
	assert_int_equal(rmdir(directory), 0); /* nothing else was left behind */
}

static void belongs_to_its_key(void **state)
{
	const struct calibration_key others[] = {
		{"calibration-2", "boot=b2 build=0a payer=2"},
		{"calibration-2", "boot=b1 build=0b payer=2"},
		{"calibration-2", "boot=b1 build=0a payer=2 more"},
		{"calibration-2", "boot=b1 build=0a payer="},
		{"calibration-3", "boot=b1 build=0a payer=2"},
		{"calibration-2", ""},
	};
	struct abi_costs c;

	(void)state;
	keep();
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_true(calibration_recall(run, &others[i], &c) < 0);
	assert_int_equal(calibration_keep(run, &others[5], &some), -ENODATA);
}

static void figures_are_sound(void **state)
{
	const struct abi_costs bad[] = {
		{.pay = {-1, 0, 0}},
		{.pay = {0, -1, 0}},
		{.pay = {0, 0, -1}},
		{.hit = {-1, 0, 0}},
		{.hit = {0, -1, 0}},
		{.hit = {0, 0, -1}},
		{.pay = {CALIBRATION_MAX + 1, 0, 0}},
		{.hit = {0, INT64_MAX, 0}},
		{.tick_ns = -1},
		{.tick_ns = CALIBRATION_MAX + 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(calibration_keep(run, &key, &bad[i]), -ERANGE);
	assert_int_equal(recall(), -ENOENT);
}

/* Every way in which the text can be off by a little, and some by which it is off by much. */
static void odd_texts(void **state)
{
	static const char *const figures[] = {
		"",
		"pay 1\n",
		"pay 1 beside 2 slope 3\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope 6\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 10000001\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\n\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\n ",
		"pay -1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\n",
		"pay +1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\n",
		"pay  1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\n",
		"pay 0x1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope  tick 7\n",
		"pay 1 beside 2 slope 3 hit 4 beside 10000001 slope 6 tick 7\n",
		"pay 1 beside 2 slope 3 hit 99999999999999999999 beside 5 slope 6 tick 7\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope 184467440737095516160 tick 7\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7 7\n",
		"hit 4 beside 5 slope 6 tick 7 pay 1 beside 2 slope 3\n",
		"pay 1 beside 2 slope 3\nhit 4 beside 5 slope 6 tick 7\n",
		"pay 1 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\r\n",
		"pay 1e3 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\n",
		"pay 00000000000000001 beside 2 slope 3 hit 4 beside 5 slope 6 tick 7\n",
	};
	static char long_text[1 << 16];
	char good[1024], text[1024];
	size_t n, head;

	(void)state;
	keep();
	n = read_text(good, sizeof(good));
	head = (size_t)((char *)memmem(good, n, "pay 4321", 8) - good);
	for (size_t cut = 0; cut < n; cut++) {
		write_text(good, cut);
		assert_true(recall() < 0);
	}
	/* A changed figure is another calibration, and none of its digits is in the head. */
	for (size_t at = 0; at < n; at++) {
		memcpy(text, good, n);
		text[at] = at < head ? (char)(text[at] ^ 1) : 'x';
		write_text(text, n);
		assert_true(recall() < 0);
		text[at] = 0;
		write_text(text, n);
		assert_true(recall() < 0);
	}
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		memcpy(text, good, head);
		(void)snprintf(text + head, sizeof(text) - head, "%s", figures[i]);
		write_text(text, strlen(text));
		assert_true(recall() < 0);
	}
	memset(long_text, '1', sizeof(long_text));
	memcpy(long_text, good, n);
	write_text(long_text, sizeof(long_text));
	assert_true(recall() < 0);
	write_text(good, n);
	assert_int_equal(recall(), 0);
}

static void open_to_others(void **state)
{
	static const mode_t modes[] = {0640, 0620, 0604, 0602, 0601, 0677};
	char other[160];

	(void)state;
	keep();
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		assert_int_equal(chmod(file, modes[i]), 0);
		assert_int_equal(recall(), -EPERM);
	}
	assert_int_equal(chmod(file, 0600), 0);
	assert_int_equal(recall(), 0);
	assert_int_equal(chmod(directory, 0710), 0);
	assert_int_equal(recall(), -EPERM);
	assert_int_equal(calibration_keep(run, &key, &some), -EPERM);
	assert_int_equal(chmod(directory, 0700), 0);
	assert_int_equal(chmod(run, 0702), 0);
	assert_int_equal(recall(), -EPERM);
	assert_int_equal(calibration_keep(run, &key, &some), -EPERM);
	assert_int_equal(chmod(run, 0700), 0);
	(void)snprintf(other, sizeof(other), "%s/second", run);
	assert_int_equal(link(file, other), 0);
	assert_int_equal(recall(), -EPERM);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(recall(), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(file, 12345, 12345), 0);
	assert_int_equal(recall(), -EPERM);
	keep(); /* replaces what is odd where the directory is ours */
	assert_int_equal(chown(directory, 12345, 12345), 0);
	assert_int_equal(recall(), -EPERM);
	assert_int_equal(calibration_keep(run, &key, &some), -EPERM);
}

static void something_else_in_its_place(void **state)
{
	char other[160];
	struct stat st;

	(void)state;
	keep();
	(void)snprintf(other, sizeof(other), "%s/elsewhere", run);
	assert_int_equal(rename(file, other), 0);
	assert_int_equal(symlink(other, file), 0);
	assert_int_equal(recall(), -ELOOP);
	keep(); /* replaces the link, not what it names */
	assert_int_equal(lstat(file, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_int_equal(recall(), -EPERM); /* and does not wait for a writer */
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	assert_true(recall() < 0);
	assert_true(calibration_keep(run, &key, &some) < 0);
	assert_int_equal(rmdir(file), 0);
	assert_int_equal(rename(directory, other), -1); /* a file is there */
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rename(directory, other), 0);
	assert_int_equal(symlink(other, directory), 0);
	assert_true(recall() < 0);
	assert_true(calibration_keep(run, &key, &some) < 0);
}

static void key_of_this_program(void **state)
{
	struct calibration_key a, b;
	char how[512];

	(void)state;
	calibration_key_make(&a, 2, "payer=2");
	calibration_key_make(&b, 3, "payer=3");
	assert_non_null(strstr(a.text, "boot="));
	assert_non_null(strstr(a.text, "payer=2"));
	assert_string_not_equal(a.text, b.text);
	assert_string_not_equal(a.file, b.file);
	calibration_key_make(&b, 2, "payer=2");
	assert_string_equal(a.text, b.text);
	memset(how, 'x', sizeof(how));
	how[sizeof(how) - 1] = 0;
	calibration_key_make(&a, 2, how);
	assert_string_equal(a.text, "");
	calibration_key_make(&a, 2, "two\nlines");
	assert_string_equal(a.text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(belongs_to_its_key, setup, teardown),
		cmocka_unit_test_setup_teardown(figures_are_sound, setup, teardown),
		cmocka_unit_test_setup_teardown(odd_texts, setup, teardown),
		cmocka_unit_test_setup_teardown(open_to_others, setup, teardown),
		cmocka_unit_test_setup_teardown(something_else_in_its_place, setup, teardown),
		cmocka_unit_test(key_of_this_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
