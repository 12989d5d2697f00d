// SPDX-License-Identifier: BSD-2-Clause
/* Databases on a disk: what is added is there, whatever else happens to the files. */
#include "base/error.h"
#include "collect/database/database.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DAY ((uint64_t)20000 * 86400)
#define HOUR(n) (DAY + (uint64_t)(n)*3600)

static char directory[64], path[96];
static char told[512];
static unsigned int n_told;

static void say(const char *text, void *arg)
{
	(void)arg;
	(void)snprintf(told, sizeof(told), "%s", text);
	n_told++;
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(directory, sizeof(directory), "/tmp/cozbpf-database-XXXXXX");
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/db", directory);
	n_told = 0;
	*told = '\0';
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static struct database *writer(void)
{
	struct database *d = NULL;

	assert_int_equal(database_open_writer(path, (gid_t)-1, say, NULL, &d, NULL), 0);
	return d;
}

static int add(struct database *d, uint64_t begin_s, const char *build_id, uint64_t count,
	       struct error *e)
{
	static char file[] = "/usr/bin/a";
	char id[32];
	const struct counts_image image = {COUNTS_FILE, file, id, 1, 2, 3};
	struct counts c = {.begin_s = begin_s, .seconds = 3600};
	int r;

	(void)snprintf(id, sizeof(id), "%s", build_id);
	counts_copy_image(&c.image, &image);
	(void)counts_who(&c, "a", "/", "host");
	(void)counts_event(&c, "cpu-clock", 1000);
	counts_add(&c, 64, 0, 0, count);
	r = database_add(d, &c, e);
	counts_free(&c);
	return r;
}

static int sum_up(struct counts *c, void *arg)
{
	uint64_t *sum = arg;

	for (size_t i = 0; i < c->n_rows; i++)
		*sum += c->rows[i].count;
	return 0;
}

static uint64_t total_between(uint64_t from_s, uint64_t to_s)
{
	struct database *d = NULL;
	uint64_t sum = 0;

	assert_int_equal(database_open(path, say, NULL, &d, NULL), 0);
	assert_int_equal(database_each(d, from_s, to_s, sum_up, &sum, NULL), 0);
	database_close(d);
	return sum;
}

static uint64_t total(void)
{
	return total_between(0, UINT64_MAX);
}

static void adds_up(void **state)
{
	struct database *d = writer();

	(void)state;
	assert_int_equal(add(d, HOUR(0), "aa", 1, NULL), 0);
	assert_int_equal(add(d, HOUR(0), "aa", 10, NULL), 0);
	assert_int_equal(add(d, HOUR(0), "bb", 100, NULL), 0);
	assert_int_equal(add(d, HOUR(1), "aa", 1000, NULL), 0);
	assert_int_equal(total(), 1111);
	assert_int_equal(total_between(HOUR(1), HOUR(2)), 1000);
	assert_int_equal(total_between(HOUR(0) + 10, HOUR(0) + 20), 111);
	assert_int_equal(n_told, 0);
	database_close(d);
}

static void has_one_writer(void **state)
{
	struct database *d = writer(), *other = NULL;
	struct error e;

	(void)state;
	assert_int_equal(database_open_writer(path, (gid_t)-1, say, NULL, &other, &e), -EBUSY);
	assert_non_null(strstr(e.text, "another process"));
	database_close(d);
	database_close(writer());
}

static void other_directories_are_left_alone(void **state)
{
	struct database *d = NULL;
	struct error e;

	(void)state;
	assert_int_equal(database_open_writer(directory, (gid_t)-1, say, NULL, &d, NULL),
			 0); /* empty */
	database_close(d);
	(void)snprintf(path, sizeof(path), "%s/other", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(database_open(path, say, NULL, &d, &e), -EINVAL);
	(void)snprintf(path, sizeof(path), "%s/other/file", directory);
	assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/other", directory);
	assert_int_equal(database_open_writer(path, (gid_t)-1, say, NULL, &d, &e), -ENOTEMPTY);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(database_open_writer(path, (gid_t)-1, say, NULL, &d, &e), -EPERM);
}

static void change_file(const char *name, long at, int how)
{
	char file[192];
	int fd;
	unsigned char byte = 0;

	(void)snprintf(file, sizeof(file), "%s/%s", path, name);
	fd = open(file, O_RDWR);
	assert_true(fd >= 0);
	if (how == 0) {
		assert_int_equal(ftruncate(fd, at), 0);
	} else {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= (unsigned char)how;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	(void)close(fd);
}

#define HOUR_0 "20241004T000000Z-3600"

/* It is named once, what else is there is read, new counts go elsewhere, and the file stays as it
 * is. */
static void a_damaged_file_is_left_out(void **state)
{
	struct database *d = writer();
	struct stat before, after;
	char file[192];

	(void)state;
	assert_int_equal(add(d, HOUR(0), "aa", 1, NULL), 0);
	assert_int_equal(add(d, HOUR(0), "bb", 10, NULL), 0);
	change_file(HOUR_0 "/aa.counts", 30, 4);
	(void)snprintf(file, sizeof(file), "%s/" HOUR_0 "/aa.counts", path);
	assert_int_equal(stat(file, &before), 0);
	assert_int_equal(total(), 10);
	assert_int_equal(n_told, 1);
	assert_non_null(strstr(told, "aa.counts"));
	assert_int_equal(add(d, HOUR(0), "aa", 100, NULL), 0);
	assert_int_equal(add(d, HOUR(0), "aa", 1000, NULL), 0);
	assert_int_equal(n_told, 2); /* this database's first time */
	assert_int_equal(total(), 1110);
	assert_int_equal(stat(file, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	database_close(d);
}

/* Truncated and flipped anywhere: it opens, loses that file at most, and says which. */
static void any_damage_loses_one_file(void **state)
{
	struct database *d = writer();
	struct stat st;
	char file[192];

	(void)state;
	assert_int_equal(add(d, HOUR(0), "aa", 1, NULL), 0);
	assert_int_equal(add(d, HOUR(0), "bb", 10, NULL), 0);
	database_close(d);
	(void)snprintf(file, sizeof(file), "%s/" HOUR_0 "/aa.counts", path);
	assert_int_equal(stat(file, &st), 0);
	srand(7);
	for (int i = 0; i < 1000; i++) {
		long at = rand() % st.st_size;
		int bit = 1 << rand() % 8;

		n_told = 0;
		change_file(HOUR_0 "/aa.counts", at, bit);
		assert_int_equal(total(), 10);
		assert_int_equal(n_told, 1);
		assert_non_null(strstr(told, "aa.counts"));
		change_file(HOUR_0 "/aa.counts", at, bit);
	}
	assert_int_equal(total(), 11);
	for (long at = st.st_size - 1; at >= 0; at--) {
		change_file(HOUR_0 "/aa.counts", at, 0);
		assert_int_equal(total(), 10);
	}
}

static void foreign_things_are_named(void **state)
{
	struct database *d = writer();
	char file[192];

	(void)state;
	assert_int_equal(add(d, HOUR(0), "aa", 1, NULL), 0);
	(void)snprintf(file, sizeof(file), "%s/notes", path);
	assert_int_equal(mknod(file, S_IFREG | 0600, 0), 0);
	assert_int_equal(total(), 1);
	assert_non_null(strstr(told, "notes"));
	/* A link is not followed, a pipe not waited for. */
	(void)snprintf(file, sizeof(file), "%s/" HOUR_0 "/cc.counts", path);
	assert_int_equal(symlink("aa.counts", file), 0);
	assert_int_equal(total(), 1);
	(void)snprintf(file, sizeof(file), "%s/" HOUR_0 "/dd.counts", path);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_int_equal(total(), 1);
	database_close(d);
}

static void keeps_within_bounds(void **state)
{
	struct database *d = writer();
	size_t gone;

	(void)state;
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(add(d, HOUR(i), "aa", 1, NULL), 0);
	assert_int_equal(database_prune(d, HOUR(3), UINT64_MAX, &gone, NULL), 0);
	assert_int_equal(gone, 3);
	assert_int_equal(total(), 7);
	assert_int_equal(database_drop_oldest(d, NULL), 0);
	assert_int_equal(total_between(HOUR(3), HOUR(4)), 0);
	assert_int_equal(database_prune(d, 0, 1, &gone, NULL), 0);
	assert_int_equal(total(), 1); /* the newest stays */
	assert_int_equal(total_between(HOUR(9), HOUR(10)), 1);
	assert_int_equal(database_drop_oldest(d, NULL), -ENOENT);
	database_close(d);
}

static void a_day_becomes_one_epoch(void **state)
{
	struct database *d = writer();
	struct database_epoch *all;
	size_t n;

	(void)state;
	for (unsigned int i = 22; i < 26; i++)
		assert_int_equal(add(d, HOUR(i), "aa", 1, NULL), 0);
	assert_int_equal(database_compact(d, HOUR(25), &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(database_epochs(d, &all, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_int_equal(all[0].seconds, 86400);
	free(all);
	assert_int_equal(total(), 4);
	/* A clock that was set back: the hour is the day's now. */
	assert_int_equal(add(d, HOUR(23), "aa", 100, NULL), 0);
	assert_int_equal(total_between(HOUR(0), HOUR(1)), 102);
	assert_int_equal(database_compact(d, HOUR(48), &n, NULL), 0);
	assert_int_equal(total(), 104);
	database_close(d);
}

/* The hours that a crash left beside their day count no more. */
static void what_was_replaced_is_not_read(void **state)
{
	struct database *d = writer();
	char command[256];
	size_t n;

	(void)state;
	assert_int_equal(add(d, HOUR(0), "aa", 1, NULL), 0);
	(void)snprintf(command, sizeof(command), "cp -a %s/" HOUR_0 " %s/kept", path, directory);
	assert_int_equal(system(command), 0);
	assert_int_equal(database_compact(d, HOUR(24), &n, NULL), 0);
	(void)snprintf(command, sizeof(command), "cp -a %s/kept %s/" HOUR_0, directory, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(total(), 1);
	assert_int_equal(database_compact(d, HOUR(24), &n, NULL), 0);
	(void)snprintf(command, sizeof(command), "! test -e %s/" HOUR_0, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(total(), 1);
	database_close(d);
}

static void a_damaged_day_is_not_compacted(void **state)
{
	struct database *d = writer();
	struct error e;
	size_t n;

	(void)state;
	assert_int_equal(add(d, HOUR(0), "aa", 1, NULL), 0);
	assert_int_equal(add(d, HOUR(1), "aa", 10, NULL), 0);
	change_file(HOUR_0 "/aa.counts", 30, 4);
	assert_int_equal(database_compact(d, HOUR(24), &n, &e), -EINVAL);
	assert_non_null(strstr(e.text, "damaged"));
	assert_int_equal(total(), 10);
	change_file(HOUR_0 "/aa.counts", 30, 4);
	assert_int_equal(total(), 11);
	database_close(d);
}

static int count_profile(int fd, const char *name, void *arg)
{
	unsigned int *n = arg;

	assert_true(fd >= 0);
	assert_int_equal(access(name, R_OK), 0);
	(*n)++;
	return 0;
}

static unsigned int profiles(void)
{
	struct database *d = NULL;
	unsigned int n = 0;

	assert_int_equal(database_open(path, say, NULL, &d, NULL), 0);
	assert_int_equal(database_each_profile(d, 0, UINT64_MAX, count_profile, &n, NULL), 0);
	database_close(d);
	return n;
}

static void add_experiments(struct database *d, uint64_t now_s, const char *host)
{
	char *name = NULL;

	assert_int_equal(database_profile_path(d, now_s, host, &name, NULL), 0);
	assert_null(strstr(name + strlen(path), "/.."));
	assert_int_equal(mknod(name, S_IFREG | 0600, 0), 0);
	free(name);
}

/* Names do not collide, a day has those of its hours, and another database gets copies. */
static void profiles_of_experiments_stay_with_their_time(void **state)
{
	struct database *d = writer(), *other = NULL;
	char second[192];
	size_t n;
	int fd;

	(void)state;
	add_experiments(d, HOUR(0) + 5, "a");
	add_experiments(d, HOUR(0) + 5, "a");
	add_experiments(d, HOUR(1), "../../b");
	assert_int_equal(profiles(), 3);
	assert_int_equal(add(d, HOUR(1), "aa", 1, NULL), 0);
	assert_int_equal(database_compact(d, HOUR(24), &n, NULL), 0);
	assert_int_equal(profiles(), 3);
	assert_int_equal(total(), 1);
	(void)snprintf(second, sizeof(second), "%s/second", directory);
	assert_int_equal(database_open_writer(second, (gid_t)-1, say, NULL, &other, NULL), 0);
	(void)snprintf(second, sizeof(second), "%s/20241004T000000Z-86400/experiments-a-%llu.jsonl",
		       path, (unsigned long long)HOUR(0) + 5);
	fd = open(second, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(database_add_profile(other, fd, second, NULL), 0);
	assert_int_equal(database_add_profile(other, fd, second, NULL), 0);
	(void)close(fd);
	database_close(other);
	database_close(d);
	(void)snprintf(path, sizeof(path), "%s/second", directory);
	assert_int_equal(profiles(), 2);
}

/* No room: nothing changes, and nothing is left lying about. */
static void a_full_disk_changes_nothing(void **state)
{
	struct database *d = writer();
	const struct rlimit none = {16, RLIM_INFINITY};
	struct rlimit before;
	char command[192];
	struct error e;

	(void)state;
	assert_int_equal(add(d, HOUR(0), "aa", 1, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(add(d, HOUR(0), "aa", 10, &e), -EFBIG);
	assert_int_equal(add(d, HOUR(0), "bb", 10, &e), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(e.text, "cannot write"));
	assert_int_equal(total(), 1);
	(void)snprintf(command, sizeof(command), "test $(find %s -name '.new-*' | wc -l) = 0",
		       path);
	assert_int_equal(system(command), 0);
	assert_int_equal(add(d, HOUR(0), "aa", 10, &e), 0);
	assert_int_equal(total(), 11);
	database_close(d);
}

/* A writer that is killed at any moment: what it said to be on the disk is there, and each file is
 * whole. */
static void a_killed_writer_loses_nothing_that_it_added(void **state)
{
	(void)state;
	srand(3);
	for (int i = 0; i < 100; i++) {
		uint64_t done[2] = {0}, had = i ? total() : 0, has;
		int pipe_fds[2];
		pid_t child;

		assert_int_equal(pipe(pipe_fds), 0);
		child = fork();
		if (child == 0) {
			struct database *d = writer();

			for (uint64_t n = 1;; n++)
				if (add(d, HOUR(n % 3), n % 2 ? "aa" : "bb", 1, NULL) < 0 ||
				    write(pipe_fds[1], &n, sizeof(n)) != sizeof(n))
					_exit(1);
		}
		(void)close(pipe_fds[1]);
		assert_int_equal(read(pipe_fds[0], &done[0], sizeof(done[0])), sizeof(done[0]));
		(void)usleep((useconds_t)(rand() % 3000));
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		while (read(pipe_fds[0], &done[1], sizeof(done[1])) == sizeof(done[1]))
			done[0] = done[1];
		(void)close(pipe_fds[0]);
		has = total();
		/* One that was renamed, but not said to be. */
		assert_true(has == had + done[0] || has == had + done[0] + 1);
		assert_int_equal(n_told, 0);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(adds_up),
		TEST(has_one_writer),
		TEST(other_directories_are_left_alone),
		TEST(a_damaged_file_is_left_out),
		TEST(any_damage_loses_one_file),
		TEST(foreign_things_are_named),
		TEST(keeps_within_bounds),
		TEST(a_day_becomes_one_epoch),
		TEST(what_was_replaced_is_not_read),
		TEST(a_damaged_day_is_not_compacted),
		TEST(profiles_of_experiments_stay_with_their_time),
		TEST(a_full_disk_changes_nothing),
		TEST(a_killed_writer_loses_nothing_that_it_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
