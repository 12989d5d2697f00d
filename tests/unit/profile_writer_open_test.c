// SPDX-License-Identifier: BSD-2-Clause
/* Which files a profile is written to: not to others' files, nor to one that another run writes. */
#include "base/error.h"
#include "profile/reader.h"
#include "profile/writer.h"

#include "profile_writer_file.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void refused(int expected, const char *words)
{
	struct profile_writer *w = NULL;
	struct error e = {0};

	assert_int_equal(open_writer(&w, &e), -expected);
	assert_null(w);
	assert_non_null(strstr(e.text, words));
	assert_null(strchr(e.text, '\n'));
}

static void foreign_files_are_refused_and_kept(void **state)
{
	(void)state;
	put_file("dear diary\n");
	refused(EEXIST, "not a profile");
	assert_string_equal(get_file(), "dear diary\n");
	put_file("{\"type\":\"config\"}\n");
	refused(EEXIST, "not a profile");
	put_file("startup\ttime=1\n");
	refused(EEXIST, "Coz's text form");
	assert_string_equal(get_file(), "startup\ttime=1\n");
}

static void only_regular_files(void **state)
{
	struct profile_writer *w = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(symlink("other", path), 0);
	refused(ELOOP, "symbolic link");
	assert_int_equal(access(other, F_OK), -1); /* a dangling link creates nothing */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(EINVAL, "not a regular file");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(profile_writer_open(directory, -1, -1, &w, &e), -EINVAL);
	assert_int_equal(profile_writer_open("/dev/null", -1, -1, &w, &e), -EINVAL);
	assert_int_equal(profile_writer_open("-", -1, -1, &w, &e), -EINVAL);
	assert_int_equal(profile_writer_open("/nonexistent/x", -1, -1, &w, &e), -ENOENT);
	assert_null(w);
}

static void other_users_files_are_refused(void **state)
{
	struct profile_writer *w = NULL;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root can give files away\n");
		skip();
	}
	put_file("{\"type\":\"startup\",\"time\":1}\n");
	assert_int_equal(chown(path, 65534, 65534), 0);
	refused(EPERM, "belongs to another user");
	/* It is the invoking user's own. */
	assert_int_equal(profile_writer_open(path, 65534, 65534, &w, NULL), 0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_string_equal(get_file(), "{\"type\":\"startup\",\"time\":1}\n");
}

static void nothing_written_leaves_nothing(void **state)
{
	struct profile_writer *w = NULL;
	struct stat st;

	(void)state;
	assert_int_equal(open_writer(&w, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~0644, 0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_int_equal(access(path, F_OK), -1);
	/* What was there before stays, and so does what somebody put there meanwhile. */
	put_file("");
	assert_int_equal(open_writer(&w, NULL), 0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(open_writer(&w, NULL), 0);
	assert_int_equal(rename(path, other), 0);
	put_file("mine");
	assert_int_equal(profile_writer_close(w), 0);
	assert_string_equal(get_file(), "mine");
	assert_int_equal(profile_writer_close(NULL), 0);
}

static void two_runs_at_once_are_refused(void **state)
{
	struct profile_writer *w = NULL;

	(void)state;
	assert_int_equal(open_writer(&w, NULL), 0);
	refused(EBUSY, "another run");
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(profile_writer_close(w), 0);
}

/* Stands in for libc's: what another run does before we have the lock. */
static void (*before_lock)(void);

int flock(int fd, int operation);
int flock(int fd, int operation)
{
	void (*first)(void) = before_lock;

	before_lock = NULL;
	if (first)
		first();
	return (int)syscall(SYS_flock, fd, operation);
}

static const char other_record[] =
	"{\"type\":\"experiment\",\"selected\":\"other\",\"speedup\":0,\"duration\":1}\n";

/* It writes its last record, and ends. */
static void append_record(void)
{
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	assert_true(fputs(other_record, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* It removes what it has not written to. */
static void remove_file(void)
{
	assert_int_equal(unlink(path), 0);
}

static struct profile_writer *faster;

/* Between our creation of the file and our lock it opens the file, and writes. */
static void write_first(void)
{
	assert_int_equal(open_writer(&faster, NULL), 0);
	assert_int_equal(profile_write_startup(faster, &(struct profile_startup){.time = 2}), 0);
}

static void another_run_that_ends_loses_nothing(void **state)
{
	const struct profile_startup s = {.time = 3};
	struct profile_writer *w = NULL;
	struct profile p = {0};
	struct error e = {0};

	(void)state;
	put_file("{\"type\":\"startup\",\"time\":1}\n");
	before_lock = append_record;
	assert_int_equal(open_writer(&w, NULL), 0);
	assert_int_equal(profile_write_startup(w, &s), 0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_int_equal(profile_read(&p, path, NULL), 0);
	assert_int_equal(p.n_runs, 2);
	assert_int_equal(p.n_experiments, 1);
	profile_free(&p);
	/* What has no name any more is not written to. */
	before_lock = remove_file;
	assert_int_equal(open_writer(&w, &e), -EBUSY);
	assert_non_null(strstr(e.text, "another run"));
	/* Whoever creates it, it belongs to the one that has the lock. */
	before_lock = write_first;
	assert_int_equal(open_writer(&w, &e), -EBUSY);
	assert_int_equal(profile_writer_close(faster), 0);
	assert_int_equal(profile_read(&p, path, NULL), 0);
	assert_int_equal(p.n_runs, 1);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(foreign_files_are_refused_and_kept, remove_files),
		cmocka_unit_test_teardown(only_regular_files, remove_files),
		cmocka_unit_test_teardown(other_users_files_are_refused, remove_files),
		cmocka_unit_test_teardown(nothing_written_leaves_nothing, remove_files),
		cmocka_unit_test_teardown(two_runs_at_once_are_refused, remove_files),
		cmocka_unit_test_teardown(another_run_that_ends_loses_nothing, remove_files),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
