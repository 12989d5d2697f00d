// SPDX-License-Identifier: BSD-2-Clause
#include "sandbox/opener.h"
#include "sandbox/maker.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/open_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define NAME "coz-opener"
#define MOST_AHEAD (1 << 20)	  /* of one table */
#define MOST_TABLES 64		  /* more than a program has; who made the file decides how many */
#define MOST_COPIED (512LL << 20) /* of one file ... */
#define ALL_COPIED (2LL << 30)	  /* ... and of all that are open */

struct request {
	uint32_t size; /* of the path that follows */
	uint32_t has_rights;
	struct file_rights rights;
};

struct answer {
	int32_t status; /* 0 or a negative errno */
	struct opened_file file;
};

static struct maker maker = {.control = -1};
static struct {
	pthread_mutex_t lock;
	unsigned int answer_s;
	struct made process;
	struct kept {
		bool is_slow; /* opener_close does not close it */
		bool is_copy;
		int origin; /* of a copy */
		int64_t size;
	} * kept; /* by descriptor */
	size_t n_kept;
	int64_t copied; /* bytes of all copies */
	bool any_left;
} opener = {.lock = PTHREAD_MUTEX_INITIALIZER, .process = {.fd = -1, .pidfd = -1}};

static void read_ahead(int fd, uint64_t at, uint64_t n)
{
	static char room[MOST_AHEAD];

	(void)!pread(fd, room, n < sizeof(room) ? n : sizeof(room), (off_t)at);
}

/* What is read next by the process that asked, which must not wait: of an ELF file the headers that
 * elf_object_open_fd reads, of another file, which is text, all that a reader takes. */
static void read_headers(int fd)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) {
		for (uint64_t at = 0; at < FILE_TEXT_MAX; at += MOST_AHEAD)
			read_ahead(fd, at, MOST_AHEAD);
		return;
	}
	for (uint64_t i = 0; i < h.e_phnum && i < MOST_TABLES; i++)
		if (pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + i * sizeof(p))) == sizeof(p) &&
		    (p.p_type == PT_INTERP || p.p_type == PT_NOTE))
			read_ahead(fd, p.p_offset, p.p_filesz);
	read_ahead(fd, h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize);
}

/* 0 or a negative errno. */
static int describe(int fd, struct opened_file *ret)
{
	struct statfs fs;

	if (fstat(fd, &ret->st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	ret->file_system = fs.f_type;
	ret->is_nosuid = fs.f_flags & ST_NOSUID;
	ret->may_be_fuse = file_may_be_fuse(fd, fs.f_type);
	return 0;
}

/* A copy that nobody can write to. Closes @fd, which can wait for its file system as well. */
static int copy_file(int fd)
{
	static char room[MOST_AHEAD];
	_cleanup_close_ int copy = memfd_create("cozbpf-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int64_t at = 0;
	ssize_t n = copy < 0 ? -1 : 1;
	int r;

	while (n > 0 && at < MOST_COPIED) {
		n = pread(fd, room, sizeof(room), at);
		if (n > 0 && pwrite(copy, room, (size_t)n, at) != n)
			n = -1;
		at += n > 0 ? n : 0;
	}
	r = n > 0 ? -EFBIG : n < 0 ? -errno : 0;
	(void)close(fd);
	if (r == 0 &&
	    fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	return r < 0 ? r : TAKE_FD(copy);
}

/* The file as O_PATH opens it, which reads nothing. */
static int open_origin(int fd)
{
	char link[32];
	int origin;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	origin = open(link, O_PATH | O_CLOEXEC);
	return origin < 0 ? -errno : origin;
}

static bool one_request(int client)
{
	_cleanup_close_ int origin = -1;
	struct answer a = {0};
	struct request q;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	if (message_read(client, &q, sizeof(q), 0) < 0 || q.size >= sizeof(path) ||
	    message_read(client, path, q.size, 0) < 0)
		return false;
	path[q.size] = 0;
	fd = open_file(path, q.has_rights ? &q.rights : NULL);
	a.status = fd < 0 ? fd : describe(fd, &a.file);
	if (a.status == 0)
		a.file.is_copy = file_is_on_users_mount(fd, path, a.file.file_system);
	if (a.file.is_copy) {
		origin = open_origin(fd);
		fd = copy_file(TAKE_FD(fd));
		a.file.may_be_fuse = false;
		a.status = origin < 0 ? origin : fd < 0 ? fd : 0;
	} else if (fd >= 0) {
		read_headers(fd);
	}
	/* A change of rights has cleared it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return message_send_fd(client, fd, &a, sizeof(a), 0) == 0 &&
	       (a.status < 0 || !a.file.is_copy ||
		message_send_fd(client, origin, &q.size, 1, 0) == 0);
}

static void serve(int client)
{
	char hello = 0;

	(void)prctl(PR_SET_NAME, NAME, 0, 0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (message_send(client, &hello, 1, 0) == 0)
		while (one_request(client))
			;
	_exit(0);
}

int opener_start(unsigned int answer_s)
{
	opener.answer_s = answer_s;
	return maker.pid ? 0 : maker_start(&maker, serve, true);
}

void opener_stop(void)
{
	made_end(&opener.process);
	maker_stop(&maker);
}

/* @ret_origin: of a copy, which the caller closes; else -1. */
static int ask(const char *path, const struct file_rights *as, struct opened_file *ret,
	       int *ret_origin)
{
	struct request q = {.size = (uint32_t)strlen(path), .has_rights = as != NULL};
	uint64_t until = clock_monotonic_ns() + opener.answer_s * NSEC_PER_SEC;
	struct made *p = &opener.process;
	struct answer a = {0};
	_cleanup_close_ int origin = -1;
	int fd = -1, r = 0;
	char hello;

	if (as)
		q.rights = *as;
	if (p->fd < 0) {
		r = maker_make(&maker, until, p);
		if (r == 0)
			r = made_read(p, &hello, 1, until);
	}
	if (r == 0)
		r = message_send(p->fd, &q, sizeof(q), until);
	if (r == 0)
		r = message_send(p->fd, path, q.size, until);
	if (r == 0)
		r = message_read_fd(p->fd, &a, sizeof(a), until, &fd, NULL);
	if (r == 0 && a.status == 0 && a.file.is_copy)
		r = message_read_fd(p->fd, &hello, 1, until, &origin, NULL);
	if (r == 0 && a.status == 0 && (fd < 0 || (a.file.is_copy && origin < 0)))
		r = -EIO;
	if (r < 0)
		made_end(p);
	r = r < 0 ? r : a.status;
	if (r < 0 && fd >= 0)
		(void)close(fd);
	*ret = a.file;
	*ret_origin = TAKE_FD(origin);
	return r < 0 ? r : fd;
}

/* With the lock held. -ENOMEM, -EFBIG: @fd is closed as others are. */
static int remember(int fd, const struct kept *k)
{
	size_t n = (size_t)fd + 64;
	struct kept *grown;

	if (k->size > ALL_COPIED - opener.copied)
		return -EFBIG;
	if ((size_t)fd >= opener.n_kept && !k->is_slow && !k->is_copy)
		return 0;
	if ((size_t)fd >= opener.n_kept) {
		grown = realloc(opener.kept, n * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + opener.n_kept, 0, (n - opener.n_kept) * sizeof(*grown));
		opener.kept = grown;
		opener.n_kept = n;
	}
	opener.kept[fd] = *k;
	opener.copied += k->size;
	return 0;
}

/* With the lock held. */
static struct kept kept_of(int fd)
{
	return (size_t)fd < opener.n_kept ? opener.kept[fd] : (struct kept){0};
}

int opener_origin(int fd)
{
	struct kept k;

	(void)pthread_mutex_lock(&opener.lock);
	k = kept_of(fd);
	(void)pthread_mutex_unlock(&opener.lock);
	return k.is_copy ? k.origin : fd;
}

int opener_dup(int fd)
{
	struct kept k;
	int r, copy;

	if (descriptors_are_short())
		return -EMFILE;
	(void)pthread_mutex_lock(&opener.lock);
	k = kept_of(fd);
	k.size = 0; /* is counted already */
	k.origin = k.is_copy ? fcntl(k.origin, F_DUPFD_CLOEXEC, 0) : -1;
	copy = k.is_copy && k.origin < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	r = copy < 0 ? -errno : remember(copy, &k);
	if (r < 0 && copy >= 0) {
		opener.any_left |= k.is_slow;
		if (!k.is_slow)
			(void)close(copy);
	}
	if (r < 0 && k.origin >= 0)
		(void)close(k.origin);
	(void)pthread_mutex_unlock(&opener.lock);
	return r < 0 ? r : copy;
}

void opener_close(int fd)
{
	struct kept k;

	if (fd < 0)
		return;
	(void)pthread_mutex_lock(&opener.lock);
	k = kept_of(fd);
	opener.any_left |= k.is_slow;
	opener.copied -= k.size;
	if (k.is_copy)
		opener.kept[fd] = (struct kept){0};
	(void)pthread_mutex_unlock(&opener.lock);
	if (k.is_copy)
		(void)close(k.origin);
	if (!k.is_slow)
		(void)close(fd);
}

/* The other process shares our descriptors instead of having copies: so our end closes none of
 * them. */
_Noreturn void opener_leave(int status)
{
	struct pollfd us = {.fd = opener.any_left ? (int)syscall(SYS_pidfd_open, getpid(), 0) : -1,
			    .events = POLLIN};

	if (us.fd < 0)
		exit(status);
	(void)fflush(NULL);
	if (syscall(SYS_clone, CLONE_FILES, NULL, NULL, NULL, NULL) == 0) {
		(void)poll(&us, 1, -1);
		_exit(0);
	}
	/* Readers of our output see its end now. */
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		(void)close(fd);
	_exit(status);
}

int opener_open_described(const char *path, const struct file_rights *as, struct opened_file *ret)
{
	_cleanup_close_ int origin = -1;
	int fd, r;

	/* Another process has another /proc/self. A program's files have no reason to name it. */
	if (!maker.pid || (!as && !strncmp(path, "/proc/self/", 11))) {
		fd = open_file(path, as);
		r = fd < 0 ? fd : describe(fd, ret);
		if (r < 0 && fd >= 0)
			(void)close(fd);
		return r < 0 ? r : fd;
	}
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (descriptors_are_short())
		return -EMFILE;
	(void)pthread_mutex_lock(&opener.lock);
	r = fd = ask(path, as, ret, &origin);
	if (fd >= 0) {
		struct kept k = {.is_slow = ret->may_be_fuse,
				 .is_copy = ret->is_copy,
				 .origin = origin,
				 .size = ret->is_copy ? file_size(fd) : 0};

		(void)lseek(fd, 0, SEEK_SET);
		r = remember(fd, &k);
	}
	(void)pthread_mutex_unlock(&opener.lock);
	/* What cannot be remembered as slow is closed as others are. */
	if (r < 0 && fd >= 0 && !ret->is_copy)
		r = 0;
	if (r < 0 && fd >= 0)
		(void)close(fd);
	if (r >= 0)
		(void)TAKE_FD(origin);
	return r < 0 ? r : fd;
}

int opener_open(const char *path, const struct file_rights *as)
{
	struct opened_file unused;

	return opener_open_described(path, as, &unused);
}
