// SPDX-License-Identifier: BSD-2-Clause
#include "profile/file.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "profile/record.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* How much of an existing file's head and tail is looked at: a startup record holds a command line of at most 4 KiB. */
#define LOOK (64u << 10)

/* True if the line is a profile record; *ret_format tells of which form. */
static bool is_record(const char *line, size_t len, enum profile_format *ret_format)
{
	struct json_tokener *tok = json_tokener_new();
	struct record rec;
	bool yes;

	if (!tok)
		return false;
	if (len && line[len - 1] == '\r')
		len--;
	yes = record_parse(tok, line, len, &rec) == 0;
	json_tokener_free(tok);
	if (!yes)
		return false;
	record_free(&rec);
	*ret_format = line[0] == '{' ? PROFILE_JSON : PROFILE_COZ_TEXT;
	return true;
}

/* Reads up to LOOK bytes at @at; the count or a negative errno. */
static ssize_t look(int fd, off_t at, char *buf)
{
	size_t n = 0;

	while (n < LOOK) {
		ssize_t r = pread(fd, buf + n, LOOK - n, at + (off_t)n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		n += (size_t)r;
	}
	return (ssize_t)n;
}

/* An existing file must begin with a record of the format that we are going to append. */
static int check_head(int fd, const char *path, enum profile_format format, char *buf, struct error *e)
{
	static const char *const names[] = {[PROFILE_JSON] = "JSON lines", [PROFILE_COZ_TEXT] = "Coz's text form"};
	enum profile_format found;
	ssize_t n = look(fd, 0, buf);
	const char *nl;

	if (n < 0)
		return fail(e, (int)-n, "cannot read '%s': %s", path, strerror((int)-n));
	if (n == 0)
		return 0; /* made by mktemp, say: nothing there to lose */
	nl = memchr(buf, '\n', (size_t)n);
	if (!is_record(buf, nl ? (size_t)(nl - buf) : (size_t)n, &found))
		return fail(e, EEXIST, "'%s' exists and is not a profile: not overwritten; choose another file with -o", path);
	if (found != format)
		return fail(e, EEXIST, "'%s' is a profile in %s, this run would write %s: choose another file with -o", path, names[found],
			    names[format]);
	return 0;
}

/* A killed run may have left half a line. A viewer stops at such a line, so that it is cut off with our first record; a last
 * line that is whole and lacks its newline only is kept. */
static int check_tail(struct profile_file *f, off_t size, char *buf)
{
	off_t at = size > (off_t)LOOK ? size - (off_t)LOOK : 0;
	ssize_t n = look(f->fd, at, buf);
	enum profile_format found;
	const char *nl, *last;

	if (n < 0)
		return (int)n;
	f->size = size;
	if (n == 0 || buf[n - 1] == '\n')
		return 0;
	nl = memrchr(buf, '\n', (size_t)n);
	last = nl ? nl + 1 : buf;
	if ((nl || at == 0) && is_record(last, (size_t)(buf + n - last), &found))
		f->needs_newline = true;
	else if (nl)
		f->size = at + (nl + 1 - buf);
	else
		f->needs_newline = true; /* one endless line: leave it to the reader to skip */
	return 0;
}

/* True if @path still names the file behind @f. */
static bool still_ours(const struct profile_file *f)
{
	struct stat a, b;

	return fstat(f->fd, &a) == 0 && lstat(f->path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Two runs in one file would tear each other's records; a file system without locks is taken on trust. Nothing that was learned of the file before
 * the lock is true after it: a run that has just ended may have written to it, or removed it. */
static int lock(const struct profile_file *f, struct error *e)
{
	if ((flock(f->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) || !still_ours(f))
		return fail(e, EBUSY, "'%s' is being written by another run: choose another file with -o", f->path);
	return 0;
}

/* Another user's file is changed by that user at will, and stands ready in /tmp under the name that we are known to use. */
static bool is_trusted(uid_t owner, uid_t invoker)
{
	return owner == 0 || owner == geteuid() || owner == invoker;
}

static int open_existing(const char *path, enum profile_format format, uid_t invoker, struct profile_file *f, struct error *e)
{
	_cleanup_free_ char *buf = NULL;
	struct stat st;
	int r;

	/* O_NONBLOCK: opening a pipe must not wait for its other end. */
	f->fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (f->fd < 0 && errno == ELOOP)
		return fail(e, ELOOP, "'%s' is a symbolic link: not followed; name the file itself", path);
	if (f->fd < 0 && (errno == EISDIR || errno == ENXIO))
		return fail(e, EINVAL, "'%s' is not a regular file", path);
	if (f->fd < 0)
		return fail(e, errno, "cannot write '%s': %m", path);
	if (fstat(f->fd, &st))
		return fail(e, errno, "cannot write '%s': %m", path);
	if (!S_ISREG(st.st_mode))
		return fail(e, EINVAL, "'%s' is not a regular file", path);
	if (!is_trusted(st.st_uid, invoker))
		return fail(e, EPERM, "'%s' belongs to another user (id %u): not appended to; choose another file with -o", path, st.st_uid);
	r = lock(f, e);
	if (r)
		return r;
	if (fstat(f->fd, &st)) /* now its size stays */
		return fail(e, errno, "cannot write '%s': %m", path);
	buf = malloc(LOOK);
	if (!buf)
		return fail(e, ENOMEM, "cannot read '%s': out of memory", path);
	r = check_head(f->fd, path, format, buf, e);
	if (r)
		return r;
	r = check_tail(f, st.st_size, buf);
	return r ? fail(e, -r, "cannot read '%s': %s", path, strerror(-r)) : 0;
}

int profile_file_open(const char *path, enum profile_format format, uid_t uid, gid_t gid, struct profile_file *ret, struct error *e)
{
	struct profile_file f = {.fd = -1};
	int r = 0;

	if (strcmp(path, "-") == 0)
		return fail(e, EINVAL, "a profile cannot be written to standard output: name a file with -o");
	f.path = strdup(path);
	if (!f.path)
		return fail(e, ENOMEM, "cannot write '%s': out of memory", path);
	f.fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0644);
	if (f.fd >= 0) {
		r = lock(&f, e);
		/* A run that was faster has it by now: then it is not ours to remove. */
		f.created = r == 0;
		if (!r && (uid != (uid_t)-1 || gid != (gid_t)-1) && fchown(f.fd, uid, gid))
			r = fail(e, errno, "cannot give '%s' to the invoking user: %m", path);
	} else if (errno == EEXIST) {
		r = open_existing(path, format, uid, &f, e);
	} else {
		r = fail(e, errno, "cannot create '%s': %m", path);
	}
	if (r) {
		(void)profile_file_close(&f);
		return r;
	}
	*ret = f;
	return 0;
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

int profile_file_append(struct profile_file *f, const char *data, size_t size)
{
	struct stat st;
	int r = 0;

	if (!f->written) {
		/* The first record: now the file becomes ours to repair. */
		if (fstat(f->fd, &st) || (st.st_size != f->size && ftruncate(f->fd, f->size)))
			return -errno;
		if (f->needs_newline)
			r = write_all(f->fd, "\n", 1);
	}
	if (!r)
		r = write_all(f->fd, data, size);
	if (r) {
		(void)ftruncate(f->fd, f->size);
		return r;
	}
	f->size += (off_t)size + (!f->written && f->needs_newline ? 1 : 0);
	f->written = true;
	return 0;
}

int profile_file_close(struct profile_file *f)
{
	int r = 0;

	if (f->fd >= 0 && f->created && !f->written && still_ours(f))
		(void)unlink(f->path);
	if (f->fd >= 0 && close(f->fd))
		r = -errno;
	free(f->path);
	*f = (struct profile_file){.fd = -1};
	return r;
}
