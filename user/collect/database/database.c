// SPDX-License-Identifier: BSD-2-Clause
#include "collect/database/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define MOST_SAID 1000
static const char mark[] = "cozbpf database 2\n";
/* Up to its number all versions are called alike. */
#define MARK_BEGINS "cozbpf database "

void database_left_out(struct database *d, const char *epoch, const char *name, const char *why)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	d->left_out++;
	path = xasprintf("%s/%s%s%s", d->path, epoch ? epoch : "", epoch ? "/" : "", name);
	for (size_t i = 0; i < d->n_said; i++)
		if (strcmp(d->said[i], path) == 0)
			return;
	if (d->n_said == MOST_SAID)
		return;
	text = d->n_said == MOST_SAID - 1 ? xstrdup("more is left out, and not named")
					  : xasprintf("'%s' is left out: %s", path, why);
	if (d->say)
		d->say(text, d->arg);
	xarray_add(d->said, d->n_said, TAKE_PTR(path));
}

/* *ret: it is a database of this version. -EPROTO: it is one of another version. */
static int is_marked(struct database *d, bool *ret, struct error *e)
{
	_cleanup_close_ int file = open_file_at(d->fd, DATABASE_MARK);
	char text[sizeof(mark)] = "";

	*ret = false;
	if (file == -ENOENT)
		return 0;
	if (file < 0 || read(file, text, sizeof(text) - 1) < 0)
		return fail(e, file < 0 ? -file : errno, "cannot read '%s/" DATABASE_MARK "': %s",
			    d->path,
			    file == -ENOEXEC ? "it is no regular file"
					     : strerror(file < 0 ? -file : errno));
	*ret = strcmp(text, mark) == 0;
	if (!*ret && strncmp(text, MARK_BEGINS, strlen(MARK_BEGINS)) == 0)
		return fail(e, EPROTO,
			    "'%s' was written by another version of cozbpf: read it with that one, "
			    "or name another "
			    "directory (--db) for a new database",
			    d->path);
	return 0;
}

static int open_directory(const char *path, database_say say, void *arg, struct database **ret,
			  struct error *e)
{
	struct database *d = xcalloc(1, sizeof(*d));

	d->lock_fd = -1;
	d->group = (gid_t)-1;
	d->say = say;
	d->arg = arg;
	d->path = xstrdup(path);
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0) {
		int r = fail(e, errno, "cannot open the database '%s': %m", path);

		database_close(d);
		return r;
	}
	*ret = d;
	return 0;
}

int database_open(const char *path, database_say say, void *arg, struct database **ret,
		  struct error *e)
{
	struct database *d = NULL;
	bool marked;
	int r = open_directory(path, say, arg, &d, e);

	if (r == 0)
		r = is_marked(d, &marked, e);
	if (r == 0 && !marked)
		r = fail(e, EINVAL,
			 "'%s' is no database of 'cozbpf collect': there is no file '" DATABASE_MARK
			 "' in it",
			 path);
	if (r < 0)
		database_close(d);
	else
		*ret = d;
	return r;
}

static bool is_empty(int fd)
{
	_cleanup_entries_ struct entries in = entries_of(fd, NULL);

	return in.n == 0;
}

/* The mark is also what is locked. */
static int take_lock(struct database *d, struct error *e)
{
	bool marked;
	int r = is_marked(d, &marked, e);

	if (r < 0)
		return r;
	if (!marked && !is_empty(d->fd))
		return fail(e, ENOTEMPTY,
			    "'%s' is no database of 'cozbpf collect' and not empty: name a "
			    "directory of its own",
			    d->path);
	d->lock_fd = openat(d->fd, DATABASE_MARK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (d->lock_fd < 0)
		return fail(e, errno, "cannot write '%s/" DATABASE_MARK "': %m", d->path);
	if (flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? fail(e, EBUSY, "another process writes to the database '%s'",
				      d->path)
			       : fail(e, errno, "cannot lock '%s': %m", d->path);
	if (!marked && (write(d->lock_fd, mark, sizeof(mark) - 1) != sizeof(mark) - 1 ||
			fsync(d->lock_fd) < 0 || fsync(d->fd) < 0))
		return fail(e, errno, "cannot write '%s/" DATABASE_MARK "': %m", d->path);
	if (d->group != (gid_t)-1 &&
	    (fchown(d->lock_fd, (uid_t)-1, d->group) < 0 || fchmod(d->lock_fd, 0640) < 0))
		return fail(e, errno, "cannot let group %u read '%s': %m", d->group, d->path);
	return 0;
}

int database_open_writer(const char *path, gid_t group, database_say say, void *arg,
			 struct database **ret, struct error *e)
{
	struct database *d = NULL;
	struct stat st;
	int r;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return fail(e, errno, "cannot make the database '%s': %m", path);
	r = open_directory(path, say, arg, &d, e);
	if (r < 0)
		return r;
	d->group = group;
	if (fstat(d->fd, &st) < 0)
		r = fail(e, errno, "cannot look at '%s': %m", path);
	else if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		r = fail(e, EPERM,
			 "'%s' belongs to another user, or others may write to it: name a "
			 "directory of your own",
			 path);
	else if (group != (gid_t)-1 &&
		 (fchown(d->fd, (uid_t)-1, group) < 0 || fchmod(d->fd, 0750) < 0))
		r = fail(e, errno, "cannot let group %u read '%s': %m", group, path);
	else
		r = take_lock(d, e);
	if (r < 0)
		database_close(d);
	else
		*ret = d;
	return r;
}

const char *database_path(const struct database *d)
{
	return d->path;
}

void database_close(struct database *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_said; i++)
		free(d->said[i]);
	free((void *)d->said);
	free(d->budget.all);
	free(d->measured);
	if (d->lock_fd >= 0)
		(void)close(d->lock_fd);
	if (d->fd >= 0)
		(void)close(d->fd);
	free(d->path);
	free(d);
}
