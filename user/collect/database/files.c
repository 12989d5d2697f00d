// SPDX-License-Identifier: BSD-2-Clause
/* Files of counts. An image has one in an epoch until it is full, then another one: so what is read
 * in order to add to it is bounded. */
#include "collect/database/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "base/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FULL_BYTES (512 << 10)
/* Reading a file takes up to forty times its bytes. */
#define LARGEST_BYTES (4 << 20)
#define MOST_NAMES 10000 /* of files of one image */
#define MOST_OTHERS 16	 /* files that are called like one of the image and are none of its own */

static int read_bytes(int fd, unsigned char **ret, size_t *ret_n)
{
	struct stat st;
	_cleanup_free_ unsigned char *bytes = NULL;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > LARGEST_BYTES)
		return -EFBIG;
	bytes = xcalloc(1, (size_t)st.st_size);
	n = pread_all(fd, bytes, (size_t)st.st_size, 0);
	if (n < 0)
		return (int)n;
	*ret = TAKE_PTR(bytes);
	*ret_n = (size_t)n;
	return 0;
}

/* What is no file of counts is -EINVAL. */
static int why_not(int r, struct error *e)
{
	if (r == -ELOOP)
		return fail(e, EINVAL, "it is a symbolic link");
	if (r == -ENOEXEC)
		return fail(e, EINVAL, "it is no regular file");
	if (r == -EFBIG)
		return fail(e, EINVAL, "it has more than %d MiB", LARGEST_BYTES >> 20);
	return fail(e, -r, "%s", strerror(-r));
}

int database_open_file(struct database *d, int epoch_fd, const char *epoch, const char *name)
{
	struct error why = {0};
	int fd = open_file_at(epoch_fd, name);

	if (fd < 0 && fd != -ENOENT) {
		(void)why_not(fd, &why);
		database_left_out(d, epoch, name, why.text);
	}
	return fd;
}

/* Reads one file of counts. -ENOENT: there is none; -EINVAL: it is damaged, or no file of counts
 * (@e says it); -ENOMEM and others. *ret is the caller's. */
static int read_counts(int epoch_fd, const char *name, struct counts *ret, struct error *e)
{
	_cleanup_close_ int fd = open_file_at(epoch_fd, name);
	_cleanup_free_ unsigned char *bytes = NULL;
	size_t n = 0;
	int r = fd < 0 ? fd : read_bytes(fd, &bytes, &n);

	if (r < 0)
		return why_not(r, e);
	return counts_decode(bytes, n, ret, e);
}

/* A file of @n bytes, flushed to the disk before it takes the place of an older one. */
static int write_whole(struct database *d, int epoch_fd, const char *name,
		       const unsigned char *bytes, size_t n)
{
	_cleanup_close_ int fd = -1;
	char aside[sizeof(DATABASE_ASIDE) + NAME_MAX];
	int r;

	(void)snprintf(aside, sizeof(aside), DATABASE_ASIDE "%s", name);
	(void)unlinkat(epoch_fd, aside, 0);
	fd = openat(epoch_fd, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, bytes, n);
	if (r == 0 && d->group != (gid_t)-1 &&
	    (fchown(fd, (uid_t)-1, d->group) < 0 || fchmod(fd, 0640) < 0))
		r = -errno;
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(epoch_fd, aside, epoch_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(epoch_fd, aside, 0);
	else if (fsync(epoch_fd) < 0)
		r = -errno;
	return r;
}

/* Adds @c to the file @name of the epoch that is @old_bytes long (-1: there is none); @n: the bytes
 * of @c alone. -EAGAIN: it is full. -EXDEV: it is no file of this
 * image. */
static int add_to_file(struct database *d, int epoch_fd, const char *epoch, const char *name,
		       int64_t old_bytes, const struct counts *c, const unsigned char *bytes,
		       size_t n)
{
	_cleanup_(counts_free) struct counts old = {0};
	_cleanup_free_ unsigned char *merged = NULL;
	struct error why = {0};
	int r;

	if (old_bytes >= 0) {
		r = read_counts(epoch_fd, name, &old, &why);
		if (r == -EINVAL)
			database_left_out(d, epoch, name, why.text);
		if (r == -EINVAL || r == -ENOENT ||
		    (r == 0 && !counts_same_image(&old.image, &c->image)))
			return -EXDEV;
		if (r < 0)
			return r;
		counts_merge(&old, c);
		if (counts_samples(&old) > COUNTS_MOST_SAMPLES)
			return -EAGAIN;
		counts_bound_who(&old);
		bytes = merged = counts_encode(&old, &n);
	}
	/* What says how the rest was counted always has room. */
	r = c->image.kind == COUNTS_SAMPLER || c->image.kind == COUNTS_OTHER
		    ? 0
		    : budget_take(d, epoch_fd, epoch, c->image.owner, old_bytes, (int64_t)n);
	if (r == 0)
		r = write_whole(d, epoch_fd, name, bytes, n);
	if (r < 0 && r != -E2BIG)
		d->budget.epoch[0] = '\0'; /* to be looked at again */
	return r;
}

int database_add_to(struct database *d, int epoch_fd, const char *epoch, struct counts *c,
		    struct error *e)
{
	_cleanup_free_ unsigned char *bytes = NULL;
	char name[NAME_MAX + 1] = "";
	size_t n = 0;
	unsigned int others = 0;
	int r;

	counts_bound_who(c);
	bytes = counts_encode(c, &n);
	r = n > LARGEST_BYTES ? -EFBIG : 0;
	for (int turn = 0; r == 0 && turn < MOST_NAMES; turn++) {
		struct stat st = {.st_size = -1};

		r = file_name(&c->image, turn, name, sizeof(name));
		if (r < 0)
			break;
		if (fstatat(epoch_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
			r = -errno;
		else if (st.st_size >= 0 && st.st_size + (int64_t)n > FULL_BYTES)
			continue;
		else
			r = add_to_file(d, epoch_fd, epoch, name, st.st_size, c, bytes, n);
		if (r == 0)
			return 0;
		/* Each of the others was read for nothing. */
		if (r == -EXDEV)
			r = ++others < MOST_OTHERS ? 0 : -E2BIG;
		r = r == -EAGAIN ? 0 : r;
	}
	if (r == 0)
		return fail(e, EEXIST, "'%s/%s' has too many files of one image", d->path, epoch);
	return fail(e, -r, "cannot write '%s/%s/%s': %s", d->path, epoch, name,
		    r == -E2BIG ? "its owner's files have no room left in the epoch"
				: strerror(-r));
}

int database_each_of(struct database *d, const struct database_epoch *epoch,
		     int (*cb)(struct counts *c, void *arg), void *arg, struct error *e)
{
	_cleanup_close_ int fd = -1;
	_cleanup_entries_ struct entries in = {0};
	int r = epoch_entries(d, epoch->name, DATABASE_ENDING, &fd, &in, e);

	for (int i = 0; r == 0 && i < in.n; i++) {
		_cleanup_(counts_free) struct counts c = {0};
		const char *name = in.all[i]->d_name;
		struct error why = {0};
		int got = read_counts(fd, name, &c, &why);

		if (got == 0 && (c.begin_s != epoch->begin_s || c.seconds != epoch->seconds))
			database_left_out(d, epoch->name, name, "it is of another epoch");
		else if (got == 0)
			r = cb(&c, arg);
		else if (got == -ENOMEM)
			r = fail(e, ENOMEM, "out of memory");
		else if (got != -ENOENT) /* gone since it was listed: nothing is wrong */
			database_left_out(d, epoch->name, name, why.text);
	}
	return r;
}

int database_add(struct database *d, struct counts *c, struct error *e)
{
	_cleanup_close_ int fd = -1;
	struct database_epoch epoch;
	char name[EPOCH_NAME];
	int r = epoch_of(d, c->begin_s, c->seconds, name, e);

	if (r < 0)
		return r;
	fd = epoch_open(d, name, true);
	if (fd < 0)
		return fail(e, -fd, "cannot make '%s/%s': %s", d->path, name, strerror(-fd));
	/* It can be a longer one. */
	if (epoch_parse(name, &epoch)) {
		c->begin_s = epoch.begin_s;
		c->seconds = epoch.seconds;
	}
	return database_add_to(d, fd, name, c, e);
}

int database_each(struct database *d, uint64_t from_s, uint64_t to_s,
		  int (*cb)(struct counts *c, void *arg), void *arg, struct error *e)
{
	_cleanup_free_ struct database_epoch *all = NULL;
	size_t n;
	int r = database_epochs(d, &all, &n, e);

	for (size_t i = 0; i < n && r == 0; i++)
		if (all[i].begin_s < to_s && all[i].begin_s + all[i].seconds > from_s)
			r = database_each_of(d, &all[i], cb, arg, e);
	return r;
}
