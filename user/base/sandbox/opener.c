// SPDX-License-Identifier: BSD-2-Clause
#include "base/sandbox/opener.h"
#include "base/sandbox/maker.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/open_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* Comes with an empty memory file, for a copy. */
struct request {
	uint32_t size; /* of the path that follows */
	uint32_t has_rights;
	int64_t most; /* bytes of a copy */
	struct file_rights rights;
};

/* Of what a copy was made. */
struct origin {
	struct statx state;
	char name[PATH_MAX]; /* as the kernel calls it; "": it has none */
};

/* Comes with the file, unless it was copied. */
struct answer {
	int32_t status; /* 0 or a negative errno */
	struct opened_file file;
	struct origin origin;
};

static struct maker maker = {.control = -1};
static struct {
	pthread_mutex_t lock;
	unsigned int answer_s;
	struct made process;
	struct kept {
		bool is_slow;	       /* opener_close does not close it */
		dev_t mounted;	       /* see opener_mounted_on; 0: not known */
		struct origin *origin; /* of a copy, else NULL */
		int64_t size;	       /* of a copy, unless another one counts it */
	} * kept;		       /* by descriptor */
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
	ret->is_copy = false;
	ret->mounted = 0;
	return 0;
}

/* 0 or a negative errno. */
static int describe_origin(int fd, struct origin *ret)
{
	_cleanup_free_ char *name = NULL;

	if (file_look_at_open(fd, &ret->state) < 0)
		return -errno;
	name = file_path(fd);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name ? name : "");
	return 0;
}

/* 0 or a negative errno. */
static int copy_file(int fd, int copy, int64_t most)
{
	static char room[MOST_AHEAD];
	int64_t at = 0;
	ssize_t n;

	while ((n = pread(fd, room, sizeof(room), at)) > 0) {
		if (at + n > most)
			return -EFBIG;
		if (pwrite(copy, room, (size_t)n, at) != n)
			return -ENOSPC;
		at += n;
	}
	return n < 0 ? -errno : 0;
}

static bool one_request(int client)
{
	static struct answer a;
	struct request q;
	_cleanup_close_ int fd = -1, copy = -1;
	char path[PATH_MAX];

	if (message_read_fd(client, &q, sizeof(q), 0, &copy, NULL) < 0 || q.size >= sizeof(path) ||
	    message_read(client, path, q.size, 0) < 0)
		return false;
	path[q.size] = 0;
	memset(&a, 0, sizeof(a));
	fd = open_file(path, q.has_rights ? &q.rights : NULL);
	a.status = fd < 0 ? fd : describe(fd, &a.file);
	if (a.status == 0)
		a.status = file_is_on_users_mount(fd, path, a.file.file_system, &a.file.mounted,
						  &a.file.is_copy);
	if (a.status == 0 && a.file.is_copy) {
		a.file.may_be_fuse = false;
		a.status = describe_origin(fd, &a.origin);
		if (a.status == 0)
			a.status = copy_file(fd, copy, q.most);
	} else if (a.status == 0) {
		read_headers(fd);
	}
	/* close() can wait for the file system. The asking process must not wait, so the file is
	 * closed here, before the answer. */
	if (fd >= 0 && (a.file.is_copy || a.status < 0))
		(void)close(TAKE_FD(fd));
	/* A change of rights has cleared it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return message_send_fd(client, fd, &a, sizeof(a), 0) == 0;
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

/* Frees the memory of a copy. An opener that was given up may hang for ever and still hold it. */
static void empty(int copy)
{
	if (copy >= 0) {
		(void)fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW);
		(void)ftruncate(copy, 0);
	}
}

static int ask(const char *path, const struct file_rights *as, struct answer *ret)
{
	int64_t left = ALL_COPIED - opener.copied;
	struct request q = {.size = (uint32_t)strlen(path),
			    .has_rights = as != NULL,
			    .most = left < MOST_COPIED ? left : MOST_COPIED};
	uint64_t until = clock_monotonic_ns() + opener.answer_s * NSEC_PER_SEC;
	_cleanup_close_ int copy = memfd_create("cozbpf-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct made *p = &opener.process;
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
		r = message_send_fd(p->fd, copy, &q, sizeof(q), until);
	if (r == 0)
		r = message_send(p->fd, path, q.size, until);
	if (r == 0)
		r = message_read_fd(p->fd, ret, sizeof(*ret), until, &fd, NULL);
	if (r == 0 && (fd >= 0) != (ret->status == 0 && !ret->file.is_copy))
		r = -EIO;
	if (r < 0 && fd >= 0)
		(void)close(fd);
	if (r < 0) {
		made_end(p);
		empty(copy);
		return r;
	}
	if (ret->status < 0 || !ret->file.is_copy)
		return ret->status < 0 ? ret->status : fd;
	if (fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return TAKE_FD(copy);
}

/* With the lock held. */
static struct kept kept_of(int fd)
{
	return (size_t)fd < opener.n_kept ? opener.kept[fd] : (struct kept){0};
}

/* With the lock held. A file that was closed by close() may have left an entry for this number. */
static void forget(int fd)
{
	struct kept k = kept_of(fd);

	opener.copied -= k.size;
	free(k.origin);
	if ((size_t)fd < opener.n_kept)
		opener.kept[fd] = (struct kept){0};
}

/* With the lock held. Takes over @k->origin. -ENOMEM: @fd is closed as others are. */
static int remember(int fd, struct kept k)
{
	size_t n = (size_t)fd + 64;
	struct kept *grown;

	forget(fd);
	if (!k.is_slow && !k.origin && !k.mounted)
		return 0;
	if ((size_t)fd >= opener.n_kept) {
		grown = realloc(opener.kept, n * sizeof(*grown));
		if (!grown) {
			free(k.origin);
			return -ENOMEM;
		}
		memset(grown + opener.n_kept, 0, (n - opener.n_kept) * sizeof(*grown));
		opener.kept = grown;
		opener.n_kept = n;
	}
	opener.kept[fd] = k;
	opener.copied += k.size;
	return 0;
}

static struct origin *copy_of(const struct origin *o)
{
	struct origin *copy = malloc(sizeof(*copy));

	if (copy)
		*copy = *o;
	return copy;
}

/* Of an open file. @ret_origin: a copy of its origin, which the caller frees; else the origin that
 * is returned is only to be compared with NULL. */
static struct kept look_up(int fd, struct origin **ret_origin)
{
	struct kept k;

	(void)pthread_mutex_lock(&opener.lock);
	k = kept_of(fd);
	if (k.origin && ret_origin)
		*ret_origin = copy_of(k.origin);
	(void)pthread_mutex_unlock(&opener.lock);
	return k;
}

bool opener_is_copy(int fd)
{
	return look_up(fd, NULL).origin;
}

int opener_look_at(int fd, struct statx *ret)
{
	_cleanup_free_ struct origin *o = NULL;

	if (!look_up(fd, &o).origin)
		return file_look_at_open(fd, ret) < 0 ? -errno : 0;
	if (o)
		*ret = o->state;
	return o ? 0 : -ENOMEM;
}

bool opener_mounted_on(int fd, dev_t *ret)
{
	*ret = look_up(fd, NULL).mounted;
	return *ret;
}

char *opener_name(int fd)
{
	_cleanup_free_ struct origin *o = NULL;

	if (!look_up(fd, &o).origin)
		return file_path(fd);
	return o && *o->name == '/' ? strdup(o->name) : NULL;
}

int opener_dup(int fd)
{
	struct kept k;
	int copy, r;

	if (descriptors_are_short())
		return -EMFILE;
	(void)pthread_mutex_lock(&opener.lock);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	r = copy < 0 ? -errno : 0;
	k = kept_of(fd);
	k.size = 0; /* which the other one counts */
	if (r == 0 && k.origin) {
		k.origin = copy_of(k.origin);
		r = k.origin ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = remember(copy, k);
	if (r < 0 && copy >= 0) {
		opener.any_left |= k.is_slow;
		if (!k.is_slow)
			(void)close(copy);
	}
	(void)pthread_mutex_unlock(&opener.lock);
	return r < 0 ? r : copy;
}

void opener_close(int fd)
{
	bool is_slow;

	if (fd < 0)
		return;
	(void)pthread_mutex_lock(&opener.lock);
	/* A slow one's number is not given again. */
	is_slow = kept_of(fd).is_slow;
	if (!is_slow)
		forget(fd);
	opener.any_left |= is_slow;
	(void)pthread_mutex_unlock(&opener.lock);
	if (!is_slow)
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
	struct answer a = {0};
	struct kept k = {0};
	int fd, r = 0;

	/* Another process has another /proc/self. A program's files have no reason to name it. */
	if (!maker.pid || (!as && !strncmp(path, "/proc/self/", 11))) {
		fd = open_file(path, as);
		if (fd >= 0) {
			(void)pthread_mutex_lock(&opener.lock);
			forget(fd);
			(void)pthread_mutex_unlock(&opener.lock);
		}
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
	fd = ask(path, as, &a);
	*ret = a.file;
	if (fd >= 0 && a.file.is_copy) {
		k.origin = copy_of(&a.origin);
		k.size = lseek(fd, 0, SEEK_END);
		(void)lseek(fd, 0, SEEK_SET);
		r = k.origin ? 0 : -ENOMEM;
	}
	k.is_slow = a.file.may_be_fuse;
	k.mounted = a.file.mounted;
	if (fd >= 0 && r == 0)
		r = remember(fd, k);
	(void)pthread_mutex_unlock(&opener.lock);
	/* One that cannot be remembered as slow is closed as others are. */
	if (fd < 0 || r == 0 || !a.file.is_copy)
		return fd;
	(void)close(fd);
	return r;
}

int opener_open(const char *path, const struct file_rights *as)
{
	struct opened_file unused;

	return opener_open_described(path, as, &unused);
}
