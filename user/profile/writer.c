// SPDX-License-Identifier: BSD-2-Clause
#include "profile/writer.h"

#include "profile/reader.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/write_all.h"
#include "profile/render.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* How much of an existing file's head and tail is looked at: a startup record holds a command line
 * of at most 4 KiB. */
#define LOOK (64u << 10)

struct profile_writer {
	int fd;
	char *path;
	bool created; /* by us, so ours to remove again */
	bool written;
	off_t size;	    /* up to the end of the last whole record */
	bool needs_newline; /* the last record lacks its end of line */
	int first_error;
	FILE *out;  /* where a group of records is put together, before it is written */
	char *data; /* what is in it */
	size_t n_data;
};

/* Is the line a record of a profile, in either form? */
static bool is_record(const char *line, size_t len)
{
	struct json_tokener *tok = or_out_of_memory(json_tokener_new());
	struct record rec;
	bool yes;

	if (len && line[len - 1] == '\r')
		len--;
	yes = record_parse(tok, line, len, &rec) == 0;
	json_tokener_free(tok);
	if (yes)
		record_free(&rec);
	return yes;
}

/* An existing file must begin with a record, which must be JSON. */
static int check_head(const struct profile_writer *w, char *buf, struct error *e)
{
	ssize_t n = pread_all(w->fd, buf, LOOK, 0);
	const char *nl;

	if (n < 0)
		return fail(e, (int)-n, "cannot read '%s': %s", w->path, strerror((int)-n));
	if (n == 0)
		return 0; /* made by mktemp, say: nothing there to lose */
	nl = memchr(buf, '\n', (size_t)n);
	if (!is_record(buf, nl ? (size_t)(nl - buf) : (size_t)n))
		return fail(e, EEXIST,
			    "'%s' exists and is not a profile: not overwritten; choose another "
			    "file with -o",
			    w->path);
	if (buf[0] != '{')
		return fail(
			e, EEXIST,
			"'%s' is a profile in Coz's text form, this run would write JSON lines: "
			"choose another file with -o",
			w->path);
	return 0;
}

/* A killed run may have left half a line. A viewer stops at such a line, so that it is cut off with
 * our first record; a last line that is whole and lacks its newline only is kept. */
static int check_tail(struct profile_writer *w, off_t size, char *buf)
{
	off_t at = size > (off_t)LOOK ? size - (off_t)LOOK : 0;
	ssize_t n = pread_all(w->fd, buf, LOOK, (uint64_t)at);
	const char *nl, *last;

	if (n < 0)
		return (int)n;
	w->size = size;
	if (n == 0 || buf[n - 1] == '\n')
		return 0;
	nl = memrchr(buf, '\n', (size_t)n);
	last = nl ? nl + 1 : buf;
	if ((nl || at == 0) && is_record(last, (size_t)(buf + n - last)))
		w->needs_newline = true;
	else if (nl)
		w->size = at + (nl + 1 - buf);
	else
		w->needs_newline = true; /* one endless line: leave it to the reader to skip */
	return 0;
}

/* True if @path still names the file behind @w. */
static bool still_ours(const struct profile_writer *w)
{
	struct stat a, b;

	return fstat(w->fd, &a) == 0 && lstat(w->path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Two runs in one file would tear each other's records; a file system without locks is taken on
 * trust. Nothing that was learned of the file before the lock is true after it: a run that has just
 * ended may have written to it, or removed it. */
static int lock(const struct profile_writer *w, struct error *e)
{
	if ((flock(w->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) || !still_ours(w))
		return fail(e, EBUSY,
			    "'%s' is being written by another run: choose another file with -o",
			    w->path);
	return 0;
}

/* Another user's file is changed by that user at will, and stands ready in /tmp under the name that
 * we are known to use. */
static bool is_trusted(uid_t owner, uid_t invoker)
{
	return owner == 0 || owner == geteuid() || owner == invoker;
}

static int open_existing(struct profile_writer *w, uid_t invoker, struct error *e)
{
	const char *path = w->path;
	_cleanup_free_ char *buf = NULL;
	struct stat st;
	int r;

	/* O_NONBLOCK: opening a pipe must not wait for its other end. */
	w->fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (w->fd < 0 && errno == ELOOP)
		return fail(e, ELOOP, "'%s' is a symbolic link: not followed; name the file itself",
			    path);
	if (w->fd < 0 && (errno == EISDIR || errno == ENXIO))
		return fail(e, EINVAL, "'%s' is not a regular file", path);
	if (w->fd < 0)
		return fail(e, errno, "cannot write '%s': %m", path);
	if (fstat(w->fd, &st))
		return fail(e, errno, "cannot write '%s': %m", path);
	if (!S_ISREG(st.st_mode))
		return fail(e, EINVAL, "'%s' is not a regular file", path);
	if (!is_trusted(st.st_uid, invoker))
		return fail(e, EPERM,
			    "'%s' belongs to another user (id %u): not appended to; choose another "
			    "file with -o",
			    path, st.st_uid);
	r = lock(w, e);
	if (r)
		return r;
	if (fstat(w->fd, &st)) /* now its size stays */
		return fail(e, errno, "cannot write '%s': %m", path);
	buf = xcalloc(1, LOOK);
	r = check_head(w, buf, e);
	if (r)
		return r;
	r = check_tail(w, st.st_size, buf);
	return r ? fail(e, -r, "cannot read '%s': %s", path, strerror(-r)) : 0;
}

int profile_writer_open(const char *path, uid_t uid, gid_t gid, struct profile_writer **ret,
			struct error *e)
{
	struct profile_writer *w;
	int r = 0;

	if (strcmp(path, "-") == 0)
		return fail(e, EINVAL,
			    "a profile cannot be written to standard output: name a file with -o");
	w = xcalloc(1, sizeof(*w));
	*w = (struct profile_writer){.fd = -1, .path = xstrdup(path)};
	w->out = xopen_memstream(&w->data, &w->n_data);
	w->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
		     0644);
	if (w->fd >= 0) {
		r = lock(w, e);
		/* A run that was faster has it by now: then it is not ours to remove. */
		w->created = r == 0;
		if (!r && (uid != (uid_t)-1 || gid != (gid_t)-1) && fchown(w->fd, uid, gid))
			r = fail(e, errno, "cannot give '%s' to the invoking user: %m", path);
	} else if (errno == EEXIST) {
		r = open_existing(w, uid, e);
	} else {
		r = fail(e, errno, "cannot create '%s': %m", path);
	}
	if (r) {
		(void)profile_writer_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

/* All of @data or nothing. */
static int append(struct profile_writer *w, const char *data, size_t size)
{
	struct stat st;
	int r = 0;

	if (!w->written) {
		/* The first record: now the file becomes ours to repair. */
		if (fstat(w->fd, &st) || (st.st_size != w->size && ftruncate(w->fd, w->size)))
			return -errno;
		if (w->needs_newline)
			r = write_all(w->fd, "\n", 1);
	}
	if (!r)
		r = write_all(w->fd, data, size);
	if (r) {
		(void)ftruncate(w->fd, w->size);
		return r;
	}
	w->size += (off_t)size + (!w->written && w->needs_newline ? 1 : 0);
	w->written = true;
	return 0;
}

/* One group of records, one write. */
static int flush(struct profile_writer *w)
{
	int r;

	if (fflush(w->out) || ferror(w->out))
		out_of_memory();
	r = append(w, w->data, w->n_data);
	rewind(w->out);
	if (!w->first_error)
		w->first_error = r;
	return r;
}

int profile_write_startup(struct profile_writer *w, const struct profile_startup *s)
{
	render_startup(w->out, s);
	return flush(w);
}

int profile_write_experiment(struct profile_writer *w, const struct profile_experiment *x,
			     const struct profile_point *points, size_t n_points)
{
	render_experiment(w->out, x, points, n_points);
	return flush(w);
}

int profile_write_slopes(struct profile_writer *w, const struct profile_slopes *s)
{
	render(w->out, "slopes", &slopes_fields, s);
	return flush(w);
}

int profile_write_log(struct profile_writer *w, const struct profile_runtime *t,
		      const struct profile *p)
{
	render_log(w->out, t, p);
	return flush(w);
}

int profile_writer_close(struct profile_writer *w)
{
	int r;

	if (!w)
		return 0;
	r = w->first_error;
	if (w->fd >= 0 && w->created && !w->written && still_ours(w))
		(void)unlink(w->path);
	if (w->fd >= 0 && close(w->fd) && !r)
		r = -errno;
	xclose_memstream(w->out);
	free(w->data);
	free(w->path);
	free(w);
	return r;
}
