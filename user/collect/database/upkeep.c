// SPDX-License-Identifier: BSD-2-Clause
/* What keeps a database small. */
#include "collect/database/private.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static int drop(struct database *d, const struct database_epoch *x, struct error *e)
{
	int r = epoch_remove(d, x->name);

	return r < 0 ? fail(e, -r, "cannot remove '%s/%s': %s", d->path, x->name, strerror(-r)) : 0;
}

static uint64_t changed_ns(const struct database *d, const char *epoch)
{
	struct stat st;

	if (fstatat(d->fd, epoch, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

void database_measure(struct database *d, struct database_epoch *x)
{
	_cleanup_close_ int fd = epoch_open(d, x->name, false);
	_cleanup_entries_ struct entries in = entries_of(fd, NULL);

	x->changed_ns = changed_ns(d, x->name);
	x->bytes = 0;
	x->files = 0;
	for (int i = 0; i < in.n; i++) {
		struct stat st;

		if (fstatat(fd, in.all[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			x->bytes += (uint64_t)st.st_blocks * 512 + DATABASE_INODE_BYTES;
			x->files++;
		}
	}
}

/* Measures those of @all that have changed since the last time. In the newest ones profiles of
 * experiments can have grown, which no directory shows. */
static void measure_all(struct database *d, struct database_epoch *all, size_t n)
{
	for (size_t i = 0, at = 0; i < n; i++) {
		while (at < d->n_measured && strcmp(d->measured[at].name, all[i].name) < 0)
			at++;
		if (i + 2 < n && at < d->n_measured &&
		    strcmp(d->measured[at].name, all[i].name) == 0 &&
		    d->measured[at].changed_ns == changed_ns(d, all[i].name))
			all[i] = d->measured[at];
		else
			database_measure(d, &all[i]);
	}
}

int database_prune(struct database *d, uint64_t before_s, uint64_t most_bytes, size_t *ret_n,
		   struct error *e)
{
	struct database_epoch *all = NULL;
	uint64_t bytes = 0;
	size_t n;
	int r = database_epochs(d, &all, &n, e);

	*ret_n = 0;
	if (r < 0)
		return r;
	measure_all(d, all, n);
	for (size_t i = 0; i < n; i++)
		bytes += all[i].bytes;
	for (size_t i = 0; r == 0 && i + 1 < n; i++) {
		if (all[i].begin_s + all[i].seconds > before_s && bytes <= most_bytes)
			continue;
		r = drop(d, &all[i], e);
		bytes -= all[i].bytes;
		*ret_n += r == 0;
	}
	free(d->measured);
	d->measured = all;
	d->n_measured = n;
	return r;
}

int database_drop_oldest(struct database *d, struct error *e)
{
	_cleanup_free_ struct database_epoch *all = NULL;
	size_t n;
	int r = database_epochs(d, &all, &n, e);

	if (r < 0)
		return r;
	return n < 2 ? fail(e, ENOENT, "'%s' has one epoch only", d->path) : drop(d, &all[0], e);
}

struct compacting {
	struct database *d;
	const struct database_epoch *day;
	int fd;
	const char *aside;
	struct error *e;
};

static int add_one(struct counts *c, void *arg)
{
	struct compacting *x = arg;

	c->begin_s = x->day->begin_s;
	c->seconds = x->day->seconds;
	return database_add_to(x->d, x->fd, x->aside, c, x->e);
}

/* The profiles of experiments go over as they are. Those that are left out keep the day from being
 * compacted. */
static int link_profiles(struct database *d, const char *from, int to)
{
	_cleanup_close_ int fd = epoch_open(d, from, false);
	_cleanup_entries_ struct entries in = entries_of(fd, DATABASE_PROFILE);
	int r = in.n < 0 ? in.n : 0;

	for (int i = 0; i < in.n; i++) {
		const char *name = in.all[i]->d_name;
		_cleanup_close_ int file = database_open_file(d, fd, from, name);

		if (r == 0 && file >= 0 && linkat(fd, name, to, name, 0) < 0)
			r = -errno;
	}
	return r;
}

/* Of the epochs @all, which are those of one day, one: it is complete when it gets its name, and in
 * force from then on. */
static int compact_day(struct database *d, const struct database_epoch *all, size_t n,
		       struct error *e)
{
	struct database_epoch day = {.begin_s = all[0].begin_s - all[0].begin_s % DATABASE_DAY_S,
				     .seconds = DATABASE_DAY_S};
	struct compacting x = {.d = d, .day = &day, .e = e};
	char aside[sizeof(day.name) + sizeof(DATABASE_ASIDE)];
	size_t left_out = d->left_out;
	int r = 0;

	epoch_name(day.begin_s, day.seconds, day.name);
	(void)snprintf(aside, sizeof(aside), DATABASE_ASIDE "%s", day.name);
	x.aside = aside;
	(void)epoch_remove(d, aside); /* of a crash */
	x.fd = epoch_open(d, aside, true);
	if (x.fd < 0)
		return fail(e, -x.fd, "cannot make '%s/%s': %s", d->path, aside, strerror(-x.fd));
	for (size_t i = 0; i < n && r == 0; i++) {
		r = database_each_of(d, &all[i], add_one, &x, e);
		if (r == 0 && link_profiles(d, all[i].name, x.fd) < 0)
			r = fail(e, errno, "cannot link what is in '%s/%s': %m", d->path,
				 all[i].name);
	}
	(void)close(x.fd);
	if (r == 0 && d->left_out > left_out)
		r = fail(e, EINVAL,
			 "the day that begins with '%s/%s' is not compacted: a damaged file in it "
			 "would be lost; move that away first",
			 d->path, all[0].name);
	if (r == 0 && (renameat(d->fd, aside, d->fd, day.name) < 0 || fsync(d->fd) < 0))
		r = fail(e, errno, "cannot make '%s/%s': %m", d->path, day.name);
	if (r < 0) {
		(void)epoch_remove(d, aside);
		return r;
	}
	for (size_t i = 0; i < n && r == 0; i++)
		r = drop(d, &all[i], e);
	return r;
}

int database_compact(struct database *d, uint64_t before_s, size_t *ret_n, struct error *e)
{
	_cleanup_free_ struct database_epoch *all = NULL;
	size_t n, with_replaced, end;
	int r = epochs_list(d, &all, &n, &with_replaced, e);

	*ret_n = 0;
	for (size_t i = n; r == 0 && i < with_replaced; i++)
		r = drop(d, &all[i], e);
	for (size_t i = 0; r == 0 && i < n; i = end) {
		uint64_t day = all[i].begin_s / DATABASE_DAY_S;

		end = i + 1;
		while (end < n && all[end].begin_s / DATABASE_DAY_S == day &&
		       all[end].seconds < DATABASE_DAY_S)
			end++;
		if (all[i].seconds >= DATABASE_DAY_S || (day + 1) * DATABASE_DAY_S > before_s)
			continue;
		r = compact_day(d, &all[i], end - i, e);
		*ret_n += r == 0;
	}
	return r;
}
