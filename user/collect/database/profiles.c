// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of experiments in a database: files of their own, one for each run, that others write.
 */
#include "collect/database/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/write_all.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_NAMES 1000

/* @base with a number where it is taken; *ret is the caller's. */
static int free_name(struct database *d, const char *epoch, const char *base, char **ret,
		     struct error *e)
{
	_cleanup_close_ int fd = epoch_open(d, epoch, true);

	if (fd < 0)
		return fail(e, -fd, "cannot make '%s/%s': %s", d->path, epoch, strerror(-fd));
	for (int i = 0; i < MOST_NAMES; i++) {
		char name[NAME_MAX + 1], number[16] = "";

		if (i)
			(void)snprintf(number, sizeof(number), "-%d", i);
		(void)snprintf(name, sizeof(name), "%.200s%s" DATABASE_PROFILE, base, number);
		if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		*ret = xasprintf("%s/%s/%s", d->path, epoch, name);
		return 0;
	}
	return fail(e, EEXIST, "'%s/%s' has too many profiles of one time", d->path, epoch);
}

int database_profile_path(struct database *d, uint64_t now_s, const char *host, char **ret,
			  struct error *e)
{
	char epoch[EPOCH_NAME], base[NAME_MAX + 1];
	int r = epoch_of(d, now_s - now_s % DATABASE_EPOCH_S, DATABASE_EPOCH_S, epoch, e);

	if (r < 0)
		return r;
	(void)snprintf(base, sizeof(base), "experiments-%.100s-%llu", host,
		       (unsigned long long)now_s);
	/* A host's name is whatever somebody has set it to. */
	for (char *c = base; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.')
			*c = '_';
	return free_name(d, epoch, base, ret, e);
}

static int each_of(struct database *d, const char *epoch,
		   int (*cb)(int fd, const char *path, void *arg), void *arg, struct error *e)
{
	_cleanup_close_ int fd = -1;
	_cleanup_entries_ struct entries in = {0};
	int r = epoch_entries(d, epoch, DATABASE_PROFILE, &fd, &in, e);

	for (int i = 0; r == 0 && i < in.n; i++) {
		const char *name = in.all[i]->d_name;
		_cleanup_close_ int file = database_open_file(d, fd, epoch, name);
		_cleanup_free_ char *path = xasprintf("%s/%s/%s", d->path, epoch, name);

		if (file >= 0)
			r = cb(file, path, arg);
	}
	return r;
}

int database_each_profile(struct database *d, uint64_t from_s, uint64_t to_s,
			  int (*cb)(int fd, const char *path, void *arg), void *arg,
			  struct error *e)
{
	_cleanup_free_ struct database_epoch *all = NULL;
	size_t n;
	int r = database_epochs(d, &all, &n, e);

	for (size_t i = 0; i < n && r == 0; i++)
		if (all[i].begin_s < to_s && all[i].begin_s + all[i].seconds > from_s)
			r = each_of(d, all[i].name, cb, arg, e);
	return r;
}

static int copy_bytes(int from, int to)
{
	char buffer[1 << 16];
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(from, buffer, sizeof(buffer))) > 0)
		r = write_all(to, buffer, (size_t)n);
	return r < 0 ? r : n < 0 || fsync(to) < 0 ? -errno : 0;
}

int database_add_profile(struct database *d, int fd, const char *path, struct error *e)
{
	_cleanup_free_ char *copy = xstrdup(path), *to = NULL;
	_cleanup_close_ int out = -1;
	struct database_epoch epoch;
	char *base, *directory, name[EPOCH_NAME];
	int r;

	base = strrchr(copy, '/');
	if (!base)
		return fail(e, EINVAL, "'%s' is in no epoch", path);
	*base++ = '\0';
	directory = strrchr(copy, '/');
	if (!epoch_parse(directory ? directory + 1 : copy, &epoch) ||
	    strlen(base) <= strlen(DATABASE_PROFILE))
		return fail(e, EINVAL, "'%s' is in no epoch", path);
	base[strlen(base) - strlen(DATABASE_PROFILE)] = '\0';
	r = epoch_of(d, epoch.begin_s, epoch.seconds, name, e);
	if (r == 0)
		r = free_name(d, name, base, &to, e);
	if (r < 0)
		return r;
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = out < 0 ? -errno : copy_bytes(fd, out);
	if (r < 0 && out >= 0)
		(void)unlink(to);
	return r < 0 ? fail(e, -r, "cannot write '%s': %s", to, strerror(-r)) : 0;
}
