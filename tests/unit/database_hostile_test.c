// SPDX-License-Identifier: BSD-2-Clause
/* Databases of which users, or other hosts, have made what they could: files, code and names
 * without end, builds of others, epochs that hide those of others, and things that are no files. */
#include "base/error.h"
#include "collect/database/database.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DAY ((uint64_t)20000 * 86400)
#define HOUR(n) (DAY + (uint64_t)(n)*3600)
#define HOUR_0 "20241004T000000Z-3600"
#define HOUR_1 "20241004T010000Z-3600"
#define FLUSHES 120 /* in an hour */
#define GIB (1ULL << 30)
#define SMALL (64ULL << 20)

static char directory[64], path[96], told[512];
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
	n_told = 0, *told = '\0';
	(void)alarm(300); /* nothing waits for a pipe */
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static struct database *writer(uint64_t most_bytes)
{
	struct database *d = NULL;

	assert_int_equal(database_open_writer(path, (gid_t)-1, say, NULL, &d, NULL), 0);
	if (most_bytes)
		database_bound(d, most_bytes);
	return d;
}

/* Of a file of @owner, without rows. */
static struct counts counts_of(uint64_t begin_s, uint32_t owner, const char *id)
{
	char file[] = "/usr/bin/a", build_id[64];
	const struct counts_image image = {COUNTS_FILE, file, build_id, 1, 2, 3, owner};
	struct counts c = {.begin_s = begin_s, .seconds = 3600};

	(void)snprintf(build_id, sizeof(build_id), "%s", id);
	counts_copy_image(&c.image, &image);
	assert_int_equal(counts_event(&c, "cpu-clock", 1000), 0);
	return c;
}

static void count(struct counts *c, const char *process, uint64_t offset, uint64_t n)
{
	counts_add(c, offset, counts_who(c, process, "/user.slice", "host"), 0, n);
}

static int add(struct database *d, struct counts *c)
{
	int r;

	counts_sort(c);
	r = database_add(d, c, NULL);
	counts_free(c);
	return r;
}

static int add_one(struct database *d, uint64_t begin_s, uint32_t owner, const char *id, uint64_t n)
{
	struct counts c = counts_of(begin_s, owner, id);

	count(&c, "a", 64, n);
	return add(d, &c);
}

struct sums {
	uint64_t all, honest;
	size_t files, most_who;
};

static int sum_up(struct counts *c, void *arg)
{
	struct sums *s = arg;

	s->files++;
	s->most_who = c->n_who > s->most_who ? c->n_who : s->most_who;
	s->all += counts_samples(c);
	for (size_t i = 0; i < c->n_rows; i++)
		if (strcmp(c->who[c->rows[i].who].process, "honest") == 0)
			s->honest += c->rows[i].count;
	return 0;
}

static struct sums sums_of(uint64_t from_s, uint64_t to_s)
{
	struct database *d = NULL;
	struct sums s = {0};

	assert_int_equal(database_open(path, say, NULL, &d, NULL), 0);
	assert_int_equal(database_each(d, from_s, to_s, sum_up, &s, NULL), 0);
	database_close(d);
	return s;
}

static uint64_t total(void)
{
	return sums_of(0, UINT64_MAX).all;
}

/* Of one file. */
static int64_t largest(const char *epoch)
{
	char name[192];
	struct dirent **all;
	int64_t most = 0;
	int n;

	(void)snprintf(name, sizeof(name), "%s/%s", path, epoch);
	n = scandir(name, &all, NULL, NULL);
	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		char file[512];
		struct stat st;

		(void)snprintf(file, sizeof(file), "%s/%s", name, all[i]->d_name);
		assert_int_equal(lstat(file, &st), 0);
		most = S_ISREG(st.st_mode) && st.st_size > most ? st.st_size : most;
		free(all[i]);
	}
	free((void *)all);
	return most;
}

/* A process that has a new name each millisecond, on the only CPU, sampled 100 times a second: an
 * hour of that in root's interpreter. The others keep their names and samples. */
static void names_without_end(void **state)
{
	struct database *d = writer(GIB);
	uint64_t added = 0;
	struct sums s;

	(void)state;
	for (unsigned int flush = 0, name = 0; flush < FLUSHES; flush++) {
		struct counts c = counts_of(HOUR(0), 0, "aa");

		for (unsigned int i = 0; i < 3000; i++) {
			char process[16];

			(void)snprintf(process, sizeof(process), "n%u", name++);
			count(&c, process, 64 + i % 200, 1);
			added++;
		}
		count(&c, "honest", 7, 10);
		added += 10;
		assert_int_equal(add(d, &c), 0);
	}
	database_close(d);
	s = sums_of(0, UINT64_MAX);
	assert_int_equal(s.all, added);
	assert_int_equal(s.honest, 10 * FLUSHES);
	assert_int_equal(s.files, 1);
	assert_true(s.most_who <= COUNTS_MOST_WHO);
	assert_true(largest(HOUR_0) < 512 << 10);
}

static uint64_t bytes_of(struct database *d, const char *epoch)
{
	struct database_epoch *all;
	uint64_t bytes = 0;
	size_t n;

	assert_int_equal(database_epochs(d, &all, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		database_measure(d, &all[i]);
		bytes += strcmp(all[i].name, epoch) == 0 ? all[i].bytes : 0;
	}
	free(all);
	return bytes;
}

/* As many new files as there are samples: what they take is bounded, also after the collector was
 * started again, and root and other users have their room. */
static void files_without_end(void **state)
{
	struct database *d = writer(SMALL);
	unsigned int refused = 0;

	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		char id[16];
		int r;

		(void)snprintf(id, sizeof(id), "%08x", i);
		r = add_one(d, HOUR(0), 1000, id, 1);
		assert_true(r == 0 || r == -E2BIG);
		refused += r < 0;
		if (i == 10) {
			database_close(d);
			d = writer(SMALL);
		}
	}
	assert_true(refused > 200);
	assert_true(bytes_of(d, HOUR_0) <= SMALL / 512);
	assert_int_equal(total(), 300 - refused);
	/* Its own that it has still count. */
	assert_int_equal(add_one(d, HOUR(0), 1000, "00000000", 1), 0);
	assert_int_equal(add_one(d, HOUR(0), 1001, "aa", 1), 0);
	assert_int_equal(add_one(d, HOUR(0), 0, "aa", 1), 0);
	assert_int_equal(add_one(d, HOUR(1), 1000, "aa", 1), 0);
	/* With many users' ids, as one in a container has. */
	for (uint32_t i = 0; i < 300; i++)
		assert_true(add_one(d, HOUR(1), 100000 + i, "bb", 1) <= 0);
	assert_true(bytes_of(d, HOUR_1) <= SMALL / 128);
	assert_int_equal(add_one(d, HOUR(1), 0, "aa", 1), 0);
	database_close(d);
}

/* A file full of code, each place of which is executed. */
static void places_without_end(void **state)
{
	struct database *d = writer(GIB);
	uint64_t added = 0;
	int r = 0;

	(void)state;
	for (unsigned int flush = 0; flush < FLUSHES; flush++) {
		struct counts c = counts_of(HOUR(0), 1000, "aa");

		for (unsigned int i = 0; i < 6000; i++)
			count(&c, "a", (uint64_t)(flush * 6000 + i) * 4099, 1);
		r = add(d, &c);
		if (r < 0)
			break;
		added += 6000;
	}
	assert_int_equal(r, -E2BIG);
	assert_true(added > 100000);
	assert_int_equal(total(), added);
	assert_true(largest(HOUR_0) <= 512 << 10);
	assert_true(bytes_of(d, HOUR_0) <= GIB / 512);
	database_close(d);
}

/* What has no bound goes on in another file. */
static void a_full_file_has_a_next_one(void **state)
{
	struct database *d = writer(0);
	struct sums s;

	(void)state;
	for (unsigned int part = 0; part < 3; part++) {
		struct counts c = counts_of(HOUR(0), 0, "aa");

		for (unsigned int i = 0; i < 60000; i++)
			count(&c, "a", (uint64_t)(part * 60000 + i) * 4099, 1);
		assert_int_equal(add(d, &c), 0);
	}
	s = sums_of(0, UINT64_MAX);
	assert_int_equal(s.all, 180000);
	assert_true(s.files >= 2);
	assert_true(largest(HOUR_0) < 1 << 20);
	database_close(d);
}

/* Files of a hundred bytes take a block and an inode each. */
static void small_files_take_blocks(void **state)
{
	struct database *d = writer(0);
	size_t gone;

	(void)state;
	for (unsigned int hour = 0; hour < 8; hour++)
		for (unsigned int i = 0; i < 20; i++) {
			char id[16];

			(void)snprintf(id, sizeof(id), "%08x", i);
			assert_int_equal(add_one(d, HOUR(hour), 0, id, 1), 0);
		}
	assert_true(bytes_of(d, HOUR_0) >= (uint64_t)20 * (4096 + 256));
	assert_int_equal(database_prune(d, 0, 400 << 10, &gone, NULL), 0);
	assert_true(gone >= 4);
	assert_int_equal(total(), 20 * (8 - gone));
	/* What was measured before is measured again where it has changed. */
	for (unsigned int i = 100; i < 200; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "%08x", i);
		assert_int_equal(add_one(d, HOUR(gone), 0, id, 1), 0);
	}
	assert_int_equal(database_prune(d, 0, 400 << 10, &gone, NULL), 0);
	assert_true(gone > 0);
	database_close(d);
}

/* Anyone can link a file with the build id of another one. */
static void builds_of_two_owners_are_two(void **state)
{
	struct database *d = writer(0);

	(void)state;
	assert_int_equal(add_one(d, HOUR(0), 1000, "aa", 1), 0);
	assert_int_equal(add_one(d, HOUR(0), 0, "aa", 10), 0);
	assert_int_equal(add_one(d, HOUR(0), 1000, "aa", 100), 0);
	assert_int_equal(sums_of(0, UINT64_MAX).files, 2);
	assert_int_equal(total(), 111);
	database_close(d);
}

static void command(const char *form, const char *a, const char *b)
{
	char text[512];

	(void)snprintf(text, sizeof(text), form, path, a, path, b);
	assert_int_equal(system(text), 0);
}

/* Of a file without build id. */
static struct counts counts_without_id(unsigned int i)
{
	const uint64_t prime = 0x100000001b3;
	uint64_t hash = 0xcbf29ce484222325;
	struct counts c = counts_of(HOUR(0), 1000, "");

	for (const char *p = c.image.path; *p; p++)
		hash = (hash ^ (unsigned char)*p) * prime;
	c.image.inode = i;
	c.image.changed_ns = (hash ^ i) * prime; /* FNV-1a over all three is 0 */
	count(&c, "a", 64, 1);
	return c;
}

static int is_counts(const struct dirent *entry)
{
	return strstr(entry->d_name, ".counts") != NULL;
}

/* A user can set the time at which a file was changed. Were the names to collide, each file would
 * be read for each image. */
static void names_of_images_do_not_collide(void **state)
{
	struct database *d = writer(0);
	struct dirent **all;
	char name[192];
	int n;

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		struct counts c = counts_without_id(i);

		assert_int_equal(add(d, &c), 0);
	}
	assert_int_equal(total(), 100);
	(void)snprintf(name, sizeof(name), "%s/" HOUR_0, path);
	n = scandir(name, &all, is_counts, alphasort);
	assert_int_equal(n, 100);
	for (int i = 0; i < n; i++) {
		assert_string_equal(strstr(all[i]->d_name, "-u1000"), "-u1000.counts");
		free(all[i]);
	}
	free((void *)all);
	database_close(d);
}

static void few_files_of_others_are_read(void **state)
{
	struct database *d = writer(0);
	struct counts c;
	char name[64];

	(void)state;
	assert_int_equal(add_one(d, HOUR(0), 0, "aa", 1), 0);
	for (unsigned int i = 0; i < 16; i++) {
		(void)snprintf(name, sizeof(name), HOUR_0 "/bb-%u.counts", i);
		command("cp '%s/%s' '%s/%s'", HOUR_0 "/aa.counts", i ? name : HOUR_0 "/bb.counts");
	}
	assert_int_equal(add_one(d, HOUR(0), 0, "bb", 1), -E2BIG);
	command("rm '%s/%s'; : '%s/%s'", HOUR_0 "/bb-15.counts", "");
	c = counts_of(HOUR(0), 0, "bb");
	count(&c, "a", 64, 1);
	assert_int_equal(add(d, &c), 0);
	database_close(d);
}

/* Each of these has counts of its own, and would hide the hour if it were taken. */
static void epochs_are_hours_and_days(void **state)
{
	static const char *const names[] = {
		"20241004T000000Z-4294967296",
		"20241004T000000Z-18446744073709551615",
		"20241004T000000Z-18446744073709555216",
		"20241004T000000Z-3601",
		"20241004T003000Z-3600",
		"20241004T010000Z-86400",
		"20241003T230000Z-86400",
		"19600101T000000Z-86400",
		"20241004T000000Z-03600",
		"20241004T000000Z--3600",
		"20241004T000000Z-+3600",
		"20241004T000000Z-0",
		"20241004T000000Z-",
		"20241004T000000Z- 3600",
		" 20241004T000000Z-3600",
		"20241304T000000Z-3600",
		"00010101T000000Z-86400",
		"20241004T000000Z-3600x",
	};
	const unsigned int n = sizeof(names) / sizeof(names[0]);
	struct database *d = writer(0);
	struct database_epoch *all;
	size_t n_all, days;

	(void)state;
	assert_int_equal(add_one(d, HOUR(0), 0, "aa", 1), 0);
	for (unsigned int i = 0; i < n; i++)
		command("cp -a '%s/%s' '%s/%s'", HOUR_0, names[i]);
	assert_int_equal(total(), 1);
	assert_int_equal(n_told, n);
	assert_int_equal(database_epochs(d, &all, &n_all, NULL), 0);
	assert_int_equal(n_all, 1);
	assert_int_equal(all[0].begin_s, HOUR(0));
	free(all);
	assert_int_equal(database_prune(d, HOUR(200), 1, &n_all, NULL), 0);
	assert_int_equal(n_all, 0);
	assert_int_equal(database_compact(d, HOUR(200), &days, NULL), 0);
	assert_int_equal(days, 1);
	assert_int_equal(total(), 1);
	database_close(d);
}

/* A file says its epoch, too. */
static void files_are_of_their_epoch(void **state)
{
	struct database *d = writer(0);
	size_t n;

	(void)state;
	assert_int_equal(add_one(d, HOUR(0), 0, "aa", 1), 0);
	assert_int_equal(add_one(d, HOUR(1), 0, "bb", 10), 0);
	command("cp '%s/%s' '%s/%s'", HOUR_0 "/aa.counts", HOUR_1 "/aa.counts");
	assert_int_equal(total(), 11);
	assert_int_equal(n_told, 1);
	assert_non_null(strstr(told, "another epoch"));
	assert_true(database_compact(d, HOUR(200), &n, NULL) < 0);
	assert_int_equal(total(), 11);
	database_close(d);
}

/* Of one host there are hours, of another one a day that holds them. */
static void a_day_hides_no_hour(void **state)
{
	struct database *d = writer(0);
	struct counts c = counts_of(DAY, 0, "aa");
	struct error e = {0};

	(void)state;
	assert_int_equal(add_one(d, HOUR(3), 0, "aa", 1), 0);
	c.seconds = 86400;
	count(&c, "a", 64, 100);
	assert_int_equal(database_add(d, &c, &e), -EEXIST);
	assert_non_null(strstr(e.text, "would hide"));
	assert_int_equal(total(), 1);
	c.begin_s = DAY + 86400;
	assert_int_equal(add(d, &c), 0);
	assert_int_equal(add_one(d, HOUR(25), 0, "aa", 10), 0);
	assert_int_equal(total(), 111);
	assert_int_equal(sums_of(HOUR(40), HOUR(41)).all, 110);
	/* No other lengths are written. */
	c = counts_of(DAY, 0, "aa");
	c.seconds = UINT32_MAX;
	count(&c, "a", 64, 1);
	assert_int_equal(add(d, &c), -EINVAL);
	database_close(d);
}

static int count_profile(int fd, const char *name, void *arg)
{
	unsigned int *n = arg;
	char byte;

	(void)name;
	assert_int_equal(read(fd, &byte, 1), 1);
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

/* Pipes are not waited for, links not followed, and neither is lost in a day. */
static void only_files_are_opened(void **state)
{
	struct database *d = writer(0);
	struct error e = {0};
	char name[192];
	size_t n;

	(void)state;
	assert_int_equal(add_one(d, HOUR(0), 0, "aa", 1), 0);
	command("echo x >'%s/%s'; mkfifo '%s/%s'", HOUR_0 "/one.jsonl", HOUR_0 "/pipe.jsonl");
	(void)snprintf(name, sizeof(name), "%s/" HOUR_0 "/link.jsonl", path);
	assert_int_equal(symlink("one.jsonl", name), 0);
	assert_int_equal(profiles(), 1);
	assert_int_equal(n_told, 2);
	command("ln -s '%s/%s' '%s/%s'", HOUR_0 "/aa.counts", HOUR_0 "/bb.counts");
	command("mkfifo '%s/%s' '%s/%s'", HOUR_0 "/cc.counts", HOUR_0 "/aa-1.counts");
	assert_int_equal(total(), 1);
	assert_int_equal(n_told, 5);
	assert_int_equal(add_one(d, HOUR(0), 0, "cc", 10), 0);
	assert_int_equal(total(), 11);
	assert_int_equal(database_compact(d, HOUR(200), &n, &e), -EINVAL);
	assert_int_equal(total(), 11);
	database_close(d);
	command("rm '%s/%s'; mkfifo '%s/%s'", DATABASE_MARK, DATABASE_MARK);
	assert_true(database_open(path, say, NULL, &d, &e) < 0);
	assert_non_null(strstr(e.text, "no regular file"));
	assert_true(database_open_writer(path, (gid_t)-1, say, NULL, &d, &e) < 0);
}

static void another_version_is_refused(void **state)
{
	struct database *d = writer(0);
	struct error e = {0};

	(void)state;
	database_close(d);
	command("echo 'cozbpf database 1' >'%s/%s'; : '%s/%s'", DATABASE_MARK, "");
	assert_int_equal(database_open(path, say, NULL, &d, &e), -EPROTO);
	assert_non_null(strstr(e.text, "another version of cozbpf"));
	assert_int_equal(database_open_writer(path, (gid_t)-1, say, NULL, &d, &e), -EPROTO);
}

/* Many bad files: they are all left out, and not all named. */
static void complaints_end(void **state)
{
	(void)state;
	database_close(writer(0));
	command("cd '%s%s' && seq -f 'no-epoch-%%.0f' 3000 | xargs touch; : '%s%s'", "", "");
	assert_int_equal(total(), 0);
	assert_int_equal(n_told, 1000);
	assert_non_null(strstr(told, "not named"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(names_without_end),
					   TEST(files_without_end),
					   TEST(places_without_end),
					   TEST(a_full_file_has_a_next_one),
					   TEST(small_files_take_blocks),
					   TEST(builds_of_two_owners_are_two),
					   TEST(epochs_are_hours_and_days),
					   TEST(files_are_of_their_epoch),
					   TEST(a_day_hides_no_hour),
					   TEST(only_files_are_opened),
					   TEST(another_version_is_refused),
					   TEST(complaints_end),
					   TEST(names_of_images_do_not_collide),
					   TEST(few_files_of_others_are_read)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
