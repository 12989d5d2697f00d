// SPDX-License-Identifier: BSD-2-Clause
/* Databases that others have written: names of epochs and what lies in them, and files of counts in
 * the wrong place. Reading, pruning and compacting ends, takes no time that is not there, and
 * leaves what is sound. */
#include "fuzz.h"

#include "base/error.h"
#include "collect/database/database.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY ((uint64_t)20000 * 86400)
#define SOUND "20241004T000000Z-3600"
#define ROOM 128 /* of a name */

static char directory[64];
static int at = -1; /* the directory, open */
static unsigned char *sound;
static size_t n_sound;

const unsigned long fuzz_iterations = 4000;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at_depth)
{
	(void)st;
	(void)type;
	(void)at_depth;
	(void)remove(path);
	return 0;
}

static void remove_all(void)
{
	(void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

bool fuzz_begin(void)
{
	static char path[] = "/usr/lib/x.so", id[] = "00ff";
	const struct counts_image image = {COUNTS_FILE, path, id, 8, 9, 10, 0};
	struct counts c = {.begin_s = DAY, .seconds = DATABASE_EPOCH_S};

	counts_copy_image(&c.image, &image);
	counts_add(&c, 7, counts_who(&c, "sh", "/", "h"), counts_event(&c, "cpu-clock", 1000), 3);
	sound = counts_encode(&c, &n_sound);
	counts_free(&c);
	(void)snprintf(directory, sizeof(directory), "/dev/shm/cozbpf-fuzz-XXXXXX");
	return mkdtemp(directory) &&
	       (at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0;
}

void fuzz_end(void)
{
	remove_all();
	free(sound);
	(void)close(at);
}

static size_t put_name(struct rng *r, unsigned char *out)
{
	static const char *const seeds[] = {SOUND,
					    "20241004T000000Z-86400",
					    "20241004T010000Z-3600",
					    "20241004T000000Z-18446744073709551615",
					    "00010101T000000Z-86400",
					    "99991231T000000Z-86400",
					    ".new-20241004T000000Z-86400",
					    "cozbpf-database"};
	char name[ROOM];
	size_t n;

	(void)snprintf(name, sizeof(name), "%s",
		       seeds[rng_below(r, sizeof(seeds) / sizeof(seeds[0]))]);
	n = strlen(name);
	for (uint64_t k = rng_below(r, 3); k > 0; k--)
		name[rng_below(r, n)] = "0123456789TZ-+ x"[rng_below(r, 16)];
	memcpy(out, name, n + 1);
	return n + 1;
}

/* Records: what it is (a byte), a name of an epoch, its end. */
size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	size_t n = 0;

	if (room < 16 * ROOM)
		return 0;
	for (uint64_t k = 1 + rng_below(r, 6); k > 0; k--) {
		out[n++] = (unsigned char)rng_below(r, 8);
		n += put_name(r, out + n);
	}
	return n;
}

static void put_file(int epoch, const char *name)
{
	int fd = openat(epoch, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	(void)!write(fd, sound, n_sound);
	(void)close(fd);
}

static void make(unsigned int what, const char *name)
{
	int epoch;

	if (what == 7) {
		(void)symlinkat(SOUND, at, name);
		return;
	}
	(void)mkdirat(at, name, 0700);
	epoch = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (epoch < 0)
		return;
	if (what & 1)
		put_file(epoch, "00ff.counts");
	if (what & 2)
		(void)mkfifoat(epoch, "x.counts", 0600);
	if (what & 4)
		(void)mkfifoat(epoch, "x.jsonl", 0600);
	(void)close(epoch);
}

static int sum_up(struct counts *c, void *arg)
{
	fuzz_must(c->begin_s == DAY && c->seconds == DATABASE_EPOCH_S);
	*(uint64_t *)arg += counts_samples(c);
	return 0;
}

static int no_profile(int fd, const char *path, void *arg)
{
	(void)fd;
	(void)path;
	(void)arg;
	fuzz_broken("a pipe is no profile", __FILE__, __LINE__);
}

static uint64_t read_all(struct database *d)
{
	struct error e = {0};
	uint64_t sum = 0;

	fuzz_must(database_each(d, 0, UINT64_MAX, sum_up, &sum, &e) == 0);
	fuzz_must(database_each_profile(d, 0, UINT64_MAX, no_profile, NULL, &e) == 0);
	return sum;
}

static void check(void)
{
	struct database *d = NULL;
	struct database_epoch *all;
	struct error e = {0};
	uint64_t sum;
	size_t n, days;

	if (database_open_writer(directory, (gid_t)-1, NULL, NULL, &d, &e) < 0) {
		fuzz_must(e.text[0]);
		return;
	}
	fuzz_must(database_epochs(d, &all, &n, &e) == 0);
	for (size_t i = 0; i < n; i++) {
		fuzz_must(all[i].seconds == DATABASE_EPOCH_S || all[i].seconds == DATABASE_DAY_S);
		fuzz_must(all[i].begin_s % all[i].seconds == 0 &&
			  all[i].begin_s + all[i].seconds > all[i].begin_s);
		fuzz_must(!i || all[i - 1].begin_s + all[i - 1].seconds <= all[i].begin_s);
	}
	free(all);
	sum = read_all(d);
	fuzz_must(sum == 0 || sum == 3);
	if (sum)
		fuzz_read();
	/* What is compacted is the day's then, and a day that cannot be is as it was. */
	if (database_compact(d, UINT64_MAX / 2, &days, &e) < 0)
		fuzz_must(e.text[0]);
	fuzz_must(database_prune(d, 0, 1 << 30, &n, &e) == 0 || e.text[0]);
	database_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;

	remove_all();
	if (mkdir(directory, 0700) < 0)
		return 0;
	(void)close(at);
	at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(at, DATABASE_MARK, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	(void)!write(fd, "cozbpf database 2\n", 18);
	(void)close(fd);
	for (size_t i = 0; i + 1 < size;) {
		const unsigned char *end = memchr(data + i + 1, 0, size - i - 1);

		if (!end)
			break;
		if (!memchr(data + i + 1, '/', (size_t)(end - data) - i - 1))
			make(data[i] & 7, (const char *)data + i + 1);
		i = (size_t)(end - data) + 1;
	}
	check();
	return 0;
}
