// SPDX-License-Identifier: BSD-2-Clause
#include "database/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LARGEST (256 << 20)
#define MOST_NAMES 100 /* for images that are called alike, and beside damaged files */
static const char mark[] = "cozbpf database 1\n";

void database_left_out(struct database *d, const char *epoch, const char *name, const char *why)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	d->left_out++;
	if (asprintf(&path, "%s/%s%s%s", d->path, epoch ? epoch : "", epoch ? "/" : "", name) < 0) {
		path = NULL;
		return;
	}
	for (size_t i = 0; i < d->n_said; i++)
		if (strcmp(d->said[i], path) == 0)
			return;
	if (array_room(d->said, d->n_said) < 0)
		return;
	if (d->say && asprintf(&text, "'%s' is left out: %s", path, why) >= 0)
		d->say(text, d->arg);
	d->said[d->n_said++] = TAKE_PTR(path);
}

static int read_bytes(int fd, unsigned char **ret, size_t *ret_n)
{
	struct stat st;
	_cleanup_free_ unsigned char *bytes = NULL;
	size_t n = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > LARGEST)
		return -EINVAL;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, bytes + n, (size_t)st.st_size - n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret = TAKE_PTR(bytes);
	*ret_n = n;
	return 0;
}

int database_read(int epoch_fd, const char *name, struct counts *ret, struct error *e)
{
	_cleanup_close_ int fd = openat(epoch_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	_cleanup_free_ unsigned char *bytes = NULL;
	size_t n = 0;
	int r;

	if (fd < 0)
		return errno == ELOOP ? fail(e, EINVAL, "it is a symbolic link") : fail(e, errno, "%m");
	r = read_bytes(fd, &bytes, &n);
	if (r < 0)
		return fail(e, -r, "%s", r == -EINVAL ? "it is no regular file, or too large" : strerror(-r));
	return counts_decode(bytes, n, ret, e);
}

static int write_all(int fd, const unsigned char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		bytes += done;
		n -= (size_t)done;
	}
	return 0;
}

static int write_whole(struct database *d, int epoch_fd, const char *name, const struct counts *c)
{
	_cleanup_free_ unsigned char *bytes = NULL;
	_cleanup_close_ int fd = -1;
	char aside[sizeof(DATABASE_ASIDE) + NAME_MAX];
	size_t n;
	int r = counts_encode(c, &bytes, &n);

	if (r < 0)
		return r;
	(void)snprintf(aside, sizeof(aside), DATABASE_ASIDE "%s", name);
	(void)unlinkat(epoch_fd, aside, 0);
	fd = openat(epoch_fd, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, bytes, n);
	if (r == 0 && d->group != (gid_t)-1 && (fchown(fd, (uid_t)-1, d->group) < 0 || fchmod(fd, 0640) < 0))
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

/* What the image's file is called: by its build id, else by a hash of what distinguishes it (FNV-1a). */
static void file_name(const struct counts_image *i, int turn, char *ret, size_t size)
{
	const char *kind = counts_kind_name(i->kind);
	uint64_t hash = 0xcbf29ce484222325;
	char suffix[16] = "";
	int length = kind ? (int)strlen(kind) - 2 : 0;

	if (turn)
		(void)snprintf(suffix, sizeof(suffix), "-%d", turn);
	if (*i->build_id || i->kind != COUNTS_FILE) {
		(void)snprintf(ret, size, "%.*s%s%s%s" DATABASE_ENDING, length, kind ? kind + 1 : "", kind && *i->build_id ? "-" : "", i->build_id,
			       suffix);
		return;
	}
	for (const char *p = i->path; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
	hash = (hash ^ i->inode) * 0x100000001b3;
	hash = (hash ^ i->changed_ns) * 0x100000001b3;
	(void)snprintf(ret, size, "path-%016llx%s" DATABASE_ENDING, (unsigned long long)hash, suffix);
}

int database_add_to(struct database *d, int epoch_fd, const char *epoch, const struct counts *c, struct error *e)
{
	for (int turn = 0; turn < MOST_NAMES; turn++) {
		_cleanup_(counts_free) struct counts old = {0};
		struct error why = {0};
		char name[NAME_MAX + 1];
		int r;

		file_name(&c->image, turn, name, sizeof(name));
		r = database_read(epoch_fd, name, &old, &why);
		if (r == -EINVAL)
			database_left_out(d, epoch, name, why.text);
		if (r == -EINVAL || (r == 0 && !counts_same_image(&old.image, &c->image)))
			continue;
		if (r == 0)
			r = counts_merge(&old, c);
		if (r == 0 || r == -ENOENT)
			r = write_whole(d, epoch_fd, name, r == 0 ? &old : c);
		return r < 0 ? fail(e, -r, "cannot write '%s/%s/%s': %s", d->path, epoch, name, strerror(-r)) : 0;
	}
	return fail(e, EEXIST, "'%s/%s' has too many damaged files of one image", d->path, epoch);
}

static int is_counts(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), ending = sizeof(DATABASE_ENDING) - 1;

	return n > ending && entry->d_name[0] != '.' && strcmp(entry->d_name + n - ending, DATABASE_ENDING) == 0;
}

int database_each_of(struct database *d, const char *epoch, int (*cb)(struct counts *c, void *arg), void *arg, struct error *e)
{
	_cleanup_close_ int fd = epoch_open(d, epoch, false);
	struct dirent **all = NULL;
	int n, r = 0;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fail(e, -fd, "cannot read '%s/%s': %s", d->path, epoch, strerror(-fd));
	n = scandirat(fd, ".", &all, is_counts, alphasort);
	if (n < 0)
		return fail(e, errno, "cannot read '%s/%s': %m", d->path, epoch);
	for (int i = 0; i < n; i++) {
		_cleanup_(counts_free) struct counts c = {0};
		struct error why = {0};

		if (r == 0) {
			int got = database_read(fd, all[i]->d_name, &c, &why);

			if (got == 0)
				r = cb(&c, arg);
			else if (got == -ENOMEM)
				r = fail(e, ENOMEM, "out of memory");
			else if (got != -ENOENT) /* gone since it was listed: nothing is wrong */
				database_left_out(d, epoch, all[i]->d_name, why.text);
		}
		free(all[i]);
	}
	free((void *)all);
	return r;
}

int database_add(struct database *d, const struct counts *c, struct error *e)
{
	_cleanup_close_ int fd = -1;
	char name[40];
	int r = epoch_of(d, c->begin_s, c->seconds, name, e);

	if (r < 0)
		return r;
	fd = epoch_open(d, name, true);
	if (fd < 0)
		return fail(e, -fd, "cannot make '%s/%s': %s", d->path, name, strerror(-fd));
	return database_add_to(d, fd, name, c, e);
}

int database_each(struct database *d, uint64_t from_s, uint64_t to_s, int (*cb)(struct counts *c, void *arg), void *arg, struct error *e)
{
	_cleanup_free_ struct database_epoch *all = NULL;
	size_t n;
	int r = database_epochs(d, &all, &n, e);

	for (size_t i = 0; i < n && r == 0; i++)
		if (all[i].begin_s < to_s && all[i].begin_s + all[i].seconds > from_s)
			r = database_each_of(d, all[i].name, cb, arg, e);
	return r;
}

static int is_marked(int fd, bool *ret)
{
	_cleanup_close_ int file = openat(fd, DATABASE_MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	char text[sizeof(mark)] = "";

	*ret = false;
	if (file < 0)
		return errno == ENOENT ? 0 : -errno;
	if (read(file, text, sizeof(text) - 1) < 0)
		return -errno;
	*ret = strcmp(text, mark) == 0;
	return 0;
}

static int open_directory(const char *path, database_say say, void *arg, struct database **ret, struct error *e)
{
	struct database *d = calloc(1, sizeof(*d));

	if (!d)
		return fail(e, ENOMEM, "out of memory");
	d->lock_fd = -1;
	d->group = (gid_t)-1;
	d->say = say;
	d->arg = arg;
	d->path = strdup(path);
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!d->path || d->fd < 0) {
		int r = d->path ? fail(e, errno, "cannot open the database '%s': %m", path) : fail(e, ENOMEM, "out of memory");

		database_close(d);
		return r;
	}
	*ret = d;
	return 0;
}

int database_open(const char *path, database_say say, void *arg, struct database **ret, struct error *e)
{
	struct database *d = NULL;
	bool marked;
	int r = open_directory(path, say, arg, &d, e);

	if (r == 0) {
		r = is_marked(d->fd, &marked);
		if (r < 0)
			r = fail(e, -r, "cannot read '%s/" DATABASE_MARK "': %s", path, strerror(-r));
		else if (!marked)
			r = fail(e, EINVAL,
				 "'%s' is no database of 'cozbpf collect': there is no file '" DATABASE_MARK "' in it, or of another version", path);
	}
	if (r < 0)
		database_close(d);
	else
		*ret = d;
	return r;
}

static bool is_empty(int fd)
{
	struct dirent **all = NULL;
	int n = scandirat(fd, ".", &all, epoch_any, NULL);

	for (int i = 0; i < n; i++)
		free(all[i]);
	free((void *)all);
	return n == 0;
}

/* The mark is also what is locked. */
static int take_lock(struct database *d, struct error *e)
{
	bool marked;
	int r = is_marked(d->fd, &marked);

	if (r < 0)
		return fail(e, -r, "cannot read '%s/" DATABASE_MARK "': %s", d->path, strerror(-r));
	if (!marked && !is_empty(d->fd))
		return fail(e, ENOTEMPTY, "'%s' is no database of 'cozbpf collect' and not empty: name a directory of its own", d->path);
	d->lock_fd = openat(d->fd, DATABASE_MARK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (d->lock_fd < 0)
		return fail(e, errno, "cannot write '%s/" DATABASE_MARK "': %m", d->path);
	if (flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? fail(e, EBUSY, "another process writes to the database '%s'", d->path)
					    : fail(e, errno, "cannot lock '%s': %m", d->path);
	if (!marked && (write_all(d->lock_fd, (const unsigned char *)mark, sizeof(mark) - 1) < 0 || fsync(d->lock_fd) < 0 || fsync(d->fd) < 0))
		return fail(e, errno, "cannot write '%s/" DATABASE_MARK "': %m", d->path);
	if (d->group != (gid_t)-1 && (fchown(d->lock_fd, (uid_t)-1, d->group) < 0 || fchmod(d->lock_fd, 0640) < 0))
		return fail(e, errno, "cannot let group %u read '%s': %m", d->group, d->path);
	return 0;
}

int database_open_writer(const char *path, gid_t group, database_say say, void *arg, struct database **ret, struct error *e)
{
	struct database *d = NULL;
	struct stat st;
	int r;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return fail(e, errno, "cannot make the database '%s': %m", path);
	r = open_directory(path, say, arg, &d, e);
	if (r < 0)
		return r;
	d->writes = true;
	d->group = group;
	if (fstat(d->fd, &st) < 0)
		r = fail(e, errno, "cannot look at '%s': %m", path);
	else if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		r = fail(e, EPERM, "'%s' belongs to another user, or others may write to it: name a directory of your own", path);
	else if (group != (gid_t)-1 && (fchown(d->fd, (uid_t)-1, group) < 0 || fchmod(d->fd, 0750) < 0))
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
	if (d->lock_fd >= 0)
		(void)close(d->lock_fd);
	if (d->fd >= 0)
		(void)close(d->fd);
	free(d->path);
	free(d);
}
