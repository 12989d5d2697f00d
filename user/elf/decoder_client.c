// SPDX-License-Identifier: BSD-2-Clause
/* The side that asks. A process without rights, made early, makes the decoders: they are born small, whatever this process holds by then. */
#include "elf/decoder_private.h"
#include "elf/lines.h"
#include "elf/object_private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>

#define MEMORY_BYTES (2ULL << 30)
#define CPU_S 10
#define WALL_S 60
/* Of all blobs of one answer; the largest known is clang's call frame information, 20 MB. */
#define MAX_REPLY (1ULL << 30)
#define MAX_ERRNO 4095

enum state { NOT_STARTED, RUNNING, GONE };

struct decoder {
	enum state state;
	int fd, pidfd;
};

static struct {
	pid_t pid; /* 0: not started */
	int control;
	struct decoder_limits limits;
} maker = {.control = -1};

/* Makes a decoder of each socket that arrives. */
static _Noreturn void make_decoders(int control)
{
	char byte;
	int fd;

	(void)signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
	while (decoder_read_fd(control, &byte, 1, 0, &fd, NULL) == 0) {
		if (fd < 0)
			continue;
		if (fork() == 0) {
			(void)close(control);
			decoder_serve(fd, &maker.limits);
		}
		(void)close(fd);
	}
	_exit(0);
}

static _Noreturn void be_maker(int control)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char ok = 1;

	/* Not a signal of the terminal's is meant for it. */
	(void)setsid();
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			_exit(1);
	if (dup2(control, STDERR_FILENO + 1) < 0 || syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0) < 0 || !decoder_drop_rights())
		_exit(1);
	control = STDERR_FILENO + 1;
	if (decoder_send(control, &ok, 1) < 0)
		_exit(1);
	make_decoders(control);
}

int elf_decoder_start(const struct decoder_limits *limits, struct error *e)
{
	struct sysinfo machine;
	int ends[2], r;
	char ok;

	if (maker.pid)
		return 0;
	maker.limits = limits ? *limits : (struct decoder_limits){MEMORY_BYTES, CPU_S, WALL_S};
	if (!limits && sysinfo(&machine) == 0 && (uint64_t)machine.totalram * machine.mem_unit / 2 < maker.limits.memory_bytes)
		maker.limits.memory_bytes = (uint64_t)machine.totalram * machine.mem_unit / 2;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return fail(e, errno, "cannot start the decoder of debug information: %s", strerror(errno));
	maker.pid = fork();
	if (maker.pid == 0)
		be_maker(ends[1]);
	r = maker.pid < 0 ? -errno : 0;
	(void)close(ends[1]);
	maker.control = ends[0];
	if (r == 0)
		r = decoder_read(ends[0], &ok, 1, clock_monotonic_ns() + WALL_S * NSEC_PER_SEC);
	if (r == 0)
		return 0;
	if (maker.pid < 0)
		maker.pid = 0;
	elf_decoder_stop();
	return fail(e, -r, "cannot start the decoder of debug information as a process without rights: %s", strerror(-r));
}

void elf_decoder_stop(void)
{
	if (maker.pid) {
		(void)kill(maker.pid, SIGKILL); /* which takes the decoders along */
		(void)waitpid(maker.pid, NULL, 0);
	}
	if (maker.control >= 0)
		(void)close(maker.control);
	maker.control = -1;
	maker.pid = 0;
}

static void end(struct decoder *d)
{
	if (d->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, d->pidfd, SIGKILL, NULL, 0);
		(void)close(d->pidfd);
	}
	if (d->fd >= 0)
		(void)close(d->fd);
	d->fd = d->pidfd = -1;
	d->state = GONE;
}

void decoder_close(struct decoder *d)
{
	if (!d)
		return;
	end(d);
	free(d);
}

bool decoder_serves(const struct elf_object *o)
{
	if (o->decoder)
		return true;
	if (!maker.pid || o->is_image)
		return false;
	/* Whether there is one is no part of what the object is. */
	return decoder_adopt((struct elf_object *)(uintptr_t)o, -1) == 0;
}

bool decoder_is_gone(const struct elf_object *o)
{
	return o->decoder && o->decoder->state == GONE;
}

int decoder_adopt(struct elf_object *o, int fd)
{
	o->decoder = malloc(sizeof(*o->decoder));
	if (!o->decoder)
		return -ENOMEM;
	*o->decoder = (struct decoder){.state = fd < 0 ? NOT_STARTED : RUNNING, .fd = fd, .pidfd = -1};
	return 0;
}

/* Of files that debug information names only ELF files are passed on: whoever has taken over a decoder sees no others. */
static int open_elf(const char *path)
{
	/* O_NONBLOCK: a FIFO in the file's place must not stop us. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char magic[SELFMAG];
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || pread(fd, magic, SELFMAG, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	return TAKE_FD(fd);
}

static int pass_file(int fd, const char *path)
{
	_cleanup_close_ int file = open_elf(path);
	int32_t status = file < 0 ? file : 0;

	return decoder_send_fd(fd, file, &status, sizeof(status));
}

void decoder_reply_free(struct decoder_reply *r)
{
	for (int i = 0; i < DECODER_BLOBS; i++)
		free(r->blobs[i]);
	*r = (struct decoder_reply){0};
}

static int read_blobs(int fd, uint64_t deadline_ns, struct decoder_reply *r)
{
	uint64_t total = 0;
	int err = 0;

	for (int i = 0; i < DECODER_BLOBS; i++)
		if (r->head.size[i] > MAX_REPLY || (total += r->head.size[i]) > MAX_REPLY)
			return -EBADMSG;
	for (int i = 0; err == 0 && i < DECODER_BLOBS; i++) {
		size_t n = r->head.size[i];

		/* Memory that nothing is written to costs nothing: a size that is only claimed is harmless. */
		r->blobs[i] = malloc(n + 1);
		if (!r->blobs[i])
			return -ENOMEM;
		err = decoder_read(fd, r->blobs[i], n, deadline_ns);
		if (err == 0)
			r->blobs[i][n] = 0;
	}
	return err;
}

int decoder_read_reply(int fd, uint64_t deadline_ns, struct decoder_reply *ret)
{
	struct decoder_reply r = {0};
	int err;

	for (;;) {
		err = decoder_read(fd, &r.head, sizeof(r.head), deadline_ns);
		if (err == 0 && r.head.kind > DECODER_OPEN)
			err = -EBADMSG;
		if (err == 0 && r.head.kind == DECODER_OPEN && r.head.size[0] >= PATH_MAX)
			err = -EBADMSG;
		if (err == 0)
			err = read_blobs(fd, deadline_ns, &r);
		if (err == 0 && r.head.kind == DECODER_RESULT && (r.head.status > 0 || r.head.status < -MAX_ERRNO))
			err = -EBADMSG;
		if (err < 0 || r.head.kind == DECODER_RESULT)
			break;
		err = pass_file(fd, (const char *)r.blobs[0]);
		decoder_reply_free(&r);
		if (err < 0)
			break;
	}
	if (err < 0) {
		decoder_reply_free(&r);
		return err;
	}
	*ret = r;
	return 0;
}

static uint64_t deadline(void)
{
	return clock_monotonic_ns() + (maker.limits.wall_s ? maker.limits.wall_s : WALL_S) * NSEC_PER_SEC;
}

static int gone(const struct elf_object *o, struct error *e)
{
	end(o->decoder);
	return fail(e, EIO, "%s: the process that decodes it ended (it crashed, or took too much memory or time); what it says of the program "
		    "is left out", o->path);
}

int decoder_distrust(const struct elf_object *o, struct error *e)
{
	end(o->decoder);
	return fail(e, EIO, "%s: the process that decodes it gave impossible answers; what it says of the program is left out", o->path);
}

/* Gives the decoder its object, and learns who it is. */
static int introduce(const struct elf_object *o)
{
	struct decoder_request q = {.op = DECODER_OBJECT, .size = (uint32_t)strlen(o->path)};
	struct decoder *d = o->decoder;
	uint64_t until = deadline();
	int32_t status;
	int fd = -1, pid = 0, r;

	if (q.size > DECODER_MAX_PAYLOAD)
		return -E2BIG;
	r = decoder_send_fd(d->fd, o->fd, &q, sizeof(q));
	if (r == 0)
		r = decoder_send(d->fd, o->path, q.size);
	if (r == 0)
		r = decoder_read_fd(d->fd, &status, sizeof(status), until, &fd, &pid);
	if (fd >= 0)
		(void)close(fd); /* nothing that it should send */
	if (r == 0 && pid > 0)
		d->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return r == 0 && status != 0 ? -ENOEXEC : r;
}

static int start(const struct elf_object *o)
{
	struct decoder *d = o->decoder;
	int ends[2], on = 1, r;
	char byte = 0;

	if (!maker.pid || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -EIO;
	d->fd = ends[0];
	d->state = RUNNING;
	(void)setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	r = decoder_send_fd(maker.control, ends[1], &byte, 1);
	(void)close(ends[1]);
	return r < 0 ? r : introduce(o);
}

int decoder_ask(const struct elf_object *o, const struct decoder_request *q, const void *payload, struct decoder_reply *ret, struct error *e)
{
	struct decoder *d = o->decoder;
	int r = 0;

	if (d->state == NOT_STARTED)
		r = start(o);
	if (r < 0 || d->state == GONE)
		return gone(o, e);
	r = decoder_send(d->fd, q, sizeof(*q));
	if (r == 0)
		r = decoder_send(d->fd, payload, q->size);
	if (r == 0)
		r = decoder_read_reply(d->fd, deadline(), ret);
	if (r == -EBADMSG)
		return decoder_distrust(o, e);
	if (r < 0)
		return gone(o, e);
	if (ret->head.status < 0 && *ret->blobs[BLOB_TEXT])
		(void)fail(e, -ret->head.status, "%s", (const char *)ret->blobs[BLOB_TEXT]);
	else if (ret->head.status < 0)
		(void)fail(e, -ret->head.status, "%s: the process that decodes it gave up: %s", o->path, strerror(-ret->head.status));
	return 0;
}

/* Words as take_options in the decoder reads them. */
char *decoder_pack_options(const struct line_options *o, size_t *ret_n)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	for (size_t i = 0; o && i < o->n_debug_dirs; i++)
		(void)fwrite(o->debug_dirs[i], 1, strlen(o->debug_dirs[i]) + 1, f);
	(void)fputc(0, f);
	for (size_t i = 0; o && i < o->n_prefixes; i++)
		(void)fwrite(o->prefixes[i], 1, strlen(o->prefixes[i]) + 1, f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	*ret_n = n;
	return text;
}
