// SPDX-License-Identifier: BSD-2-Clause
#include "base/replace_file.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* O_NOFOLLOW and O_NONBLOCK: what stands there under that name may be a link or a pipe that another
 * user made. */
static int check_old(const struct replace_file *f, struct error *e)
{
	size_t n = f->begins ? strlen(f->begins) : 0;
	_cleanup_free_ char *head = xcalloc(n + 1, 1);
	_cleanup_close_ int fd =
		open(f->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	ssize_t got;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno == ELOOP)
		return fail(e, ELOOP, "'%s' is a symbolic link: not followed; name the file itself",
			    f->path);
	if (fd < 0 || fstat(fd, &st))
		return fail(e, errno, "cannot write '%s': %m", f->path);
	if (!S_ISREG(st.st_mode))
		return fail(e, EINVAL, "'%s' is not a regular file", f->path);
	if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != f->uid)
		return fail(
			e, EPERM,
			"'%s' belongs to another user (id %u): not replaced; choose another name",
			f->path, st.st_uid);
	if (!f->begins)
		return fail(e, EEXIST, "'%s' is there already: choose another name", f->path);
	got = pread(fd, head, n, 0);
	if (got < 0)
		return fail(e, errno, "cannot read '%s': %m", f->path);
	if (got && ((size_t)got < n || memcmp(head, f->begins, n) != 0))
		return fail(e, EEXIST,
			    "'%s' is there and is not %s: not replaced; choose another name",
			    f->path, f->kind);
	return 0;
}

int replace_file_check(const struct replace_file *f, struct error *e)
{
	_cleanup_free_ char *copy = xstrdup(f->path);

	if (!*f->path || f->path[strlen(f->path) - 1] == '/')
		return fail(e, EISDIR, "'%s' is not the name of a file", f->path);
	if (faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS))
		return fail(e, errno, "cannot write '%s': %m", f->path);
	return check_old(f, e);
}

static int write_new(const struct replace_file *f, int fd, int (*fill)(FILE *out, void *arg),
		     void *arg)
{
	FILE *out = fdopen(fd, "w");
	int r;

	if (!out) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	r = fill(out, arg);
	errno = EIO; /* of what was not written before */
	if (r == 0 && (fflush(out) || ferror(out)))
		r = -errno;
	if (r == 0 && (f->uid != (uid_t)-1 || f->gid != (gid_t)-1) && fchown(fd, f->uid, f->gid))
		r = -errno;
	if (fclose(out) && r == 0)
		r = -errno;
	return r;
}

bool replace_file_source_is_private(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	if (S_ISDIR(st.st_mode))
		return (st.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH);
	return S_ISREG(st.st_mode) && !(st.st_mode & S_IROTH);
}

/* The umask is the kernel's to apply. */
static mode_t mode_of(const struct replace_file *f)
{
	mode_t mode = f->is_private ? 0600 : 0666;
	struct stat st;

	return lstat(f->path, &st) == 0 ? (mode & st.st_mode) | 0600 : mode;
}

int replace_file(const struct replace_file *f, int (*fill)(FILE *out, void *arg), void *arg,
		 struct error *e)
{
	_cleanup_free_ char *temporary = NULL;
	int r = replace_file_check(f, e), fd;

	if (r < 0)
		return r;
	temporary = xasprintf("%s.%llx", f->path, (unsigned long long)rng_fresh_seed());
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
		  mode_of(f));
	if (fd < 0)
		return fail(e, errno, "cannot write '%s': %m", f->path);
	r = write_new(f, fd, fill, arg);
	/* Where nothing may be replaced, not even what came there meanwhile. */
	if (r == 0 &&
	    renameat2(AT_FDCWD, temporary, AT_FDCWD, f->path, f->begins ? 0 : RENAME_NOREPLACE))
		r = -errno;
	/* Not all file systems can rename like that. */
	if (r == -EINVAL && !f->begins) {
		r = link(temporary, f->path) ? -errno : 0;
		(void)unlink(temporary);
	}
	if (r < 0) {
		(void)unlink(temporary);
		return fail(e, -r, "cannot write '%s': %s", f->path, strerror(-r));
	}
	return 0;
}
