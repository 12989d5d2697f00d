// SPDX-License-Identifier: BSD-2-Clause
/* The side that asks. A process without rights, made early, makes the decoders: they are born
 * small, whatever this process holds by then. */
#include "program/decoder/private.h"
#include "program/elf/debug_find.h"
#include "program/dwarf/lines.h"
#include "base/sandbox/maker.h"
#include "program/elf/object_private.h"
#include "base/sandbox/opener.h"
#include "program/elf/readers.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/message.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#define MEMORY_BYTES (2ULL << 30)
#define CPU_S 10
#define WALL_S 60
/* More than the largest programs take. A program whose files are many and slow must not hold us up
 * for hours. */
#define TOTAL_S 300
#define TOTAL_BYTES (4ULL << 30)
#define USUAL_LIMITS                                              \
	{                                                         \
		MEMORY_BYTES, CPU_S, WALL_S, TOTAL_S, TOTAL_BYTES \
	}
#define OPEN_S 10 /* more than a network file system takes that works */
/* Of all blobs of one answer; the largest known is clang's call frame information, 20 MB. */
#define MAX_REPLY (1ULL << 30)
#define MAX_ERRNO 4095

static struct maker maker = {.control = -1};
static struct decoder_limits limits = USUAL_LIMITS;
static uint64_t waited_ns, kept_bytes; /* of all answers */

static void close_decoder(struct elf_object *o)
{
	if (!o->decoder)
		return;
	decoder_end(o->decoder);
	(void)__atomic_sub_fetch(&kept_bytes, o->decoder->bytes, __ATOMIC_RELAXED);
	free(o->decoder);
}

static const struct elf_readers elsewhere = {
	.symbols = decoder_symbols,
	.call_frames = decoder_cfi,
	.names = decoder_demangle,
	.open_named = debug_open_named,
	.build_id = decoder_build_id,
	.perf_map = decoder_perf_map,
	.close = close_decoder,
	.lines = &decoder_lines,
};

static _Noreturn void serve(int fd)
{
	decoder_serve(fd, &limits);
}

int decoder_start(const struct decoder_limits *l, struct error *e)
{
	struct sysinfo machine;
	int r;

	if (maker.pid)
		return 0;
	limits = l ? *l : (struct decoder_limits)USUAL_LIMITS;
	if (!l && sysinfo(&machine) == 0) {
		uint64_t half = (uint64_t)machine.totalram * machine.mem_unit / 2;

		limits.memory_bytes = half < limits.memory_bytes ? half : limits.memory_bytes;
		limits.total_bytes = half < limits.total_bytes ? half : limits.total_bytes;
	}
	waited_ns = 0;
	r = maker_start(&maker, serve, false);
	if (r == 0)
		r = opener_start(limits.wall_s < OPEN_S ? limits.wall_s : OPEN_S);
	if (r == 0) {
		elf_readers_use(&elsewhere);
		return 0;
	}
	decoder_stop();
	if (r == -EPERM)
		return fail(e, EPERM,
			    "cannot start the decoder of debug information: it cannot give up "
			    "root's rights; run cozbpf as another "
			    "user, or with CAP_SETUID and CAP_SETGID outside of a user namespace");
	return fail(e, -r,
		    "cannot start the decoder of debug information as a process without rights: %s",
		    strerror(-r));
}

void decoder_stop(void)
{
	elf_readers_use(&elf_readers_here);
	opener_stop();
	decoder_names_stop();
	decoder_build_ids_stop();
	decoder_perf_maps_stop();
	maker_stop(&maker);
}

void decoder_end(struct decoder *d)
{
	made_end(&d->process);
	d->state = DECODER_GONE;
}

bool decoder_is_gone(const struct elf_object *o)
{
	return o->decoder && o->decoder->state == DECODER_GONE;
}

int decoder_adopt(struct elf_object *o, int fd)
{
	o->readers = &elsewhere;
	o->decoder = malloc(sizeof(*o->decoder));
	if (!o->decoder)
		return -ENOMEM;
	*o->decoder = (struct decoder){.state = fd < 0 ? DECODER_NOT_STARTED : DECODER_RUNNING,
				       .process = {.fd = fd, .pidfd = -1}};
	return 0;
}

static int pass_file(int fd, const struct elf_object *o, const struct debug_options *options,
		     const char *path, uint64_t deadline_ns)
{
	_cleanup_opener_ int file = debug_open_named(o, options, path);
	int32_t status = file < 0 ? file : 0;

	return message_send_fd(fd, file, &status, sizeof(status), deadline_ns);
}

void decoder_reply_free(struct decoder_reply *r)
{
	for (int i = 0; i < DECODER_BLOBS; i++)
		free(r->blobs[i]);
	*r = (struct decoder_reply){0};
}

static int read_message(int fd, uint64_t deadline_ns, struct decoder_reply *r)
{
	const struct decoder_head *h = &r->head;
	int err = message_read(fd, &r->head, sizeof(r->head), deadline_ns);

	if (err < 0)
		return err;
	if (h->kind == DECODER_OPEN
		    ? h->size[0] >= PATH_MAX
		    : h->kind != DECODER_RESULT || h->status > 0 || h->status < -MAX_ERRNO)
		return -EBADMSG;
	for (int i = 0; i < DECODER_BLOBS; i++)
		if (h->size[i] > MAX_REPLY || (r->bytes += h->size[i]) > MAX_REPLY)
			return -EBADMSG;
	for (int i = 0; err == 0 && i < DECODER_BLOBS; i++) {
		size_t n = h->size[i];

		/* Memory that nothing is written to costs nothing: a size that is only claimed is
		 * harmless. */
		r->blobs[i] = malloc(n + 1);
		if (!r->blobs[i])
			return -ENOMEM;
		err = message_read(fd, r->blobs[i], n, deadline_ns);
		if (err == 0)
			r->blobs[i][n] = 0;
	}
	return err;
}

int decoder_read_reply(int fd, const struct elf_object *o, const struct debug_options *options,
		       uint64_t deadline_ns, struct decoder_reply *ret)
{
	int err;

	*ret = (struct decoder_reply){0};
	while ((err = read_message(fd, deadline_ns, ret)) == 0 && ret->head.kind == DECODER_OPEN) {
		err = pass_file(fd, o, options, (const char *)ret->blobs[0], deadline_ns);
		decoder_reply_free(ret);
		if (err < 0)
			return err;
	}
	if (err < 0)
		decoder_reply_free(ret);
	return err;
}

static uint64_t time_left(void)
{
	uint64_t total = limits.total_s * NSEC_PER_SEC,
		 waited = __atomic_load_n(&waited_ns, __ATOMIC_RELAXED);

	return waited < total ? total - waited : 0;
}

uint64_t decoder_deadline(unsigned int wall_s)
{
	uint64_t left = time_left();

	return clock_monotonic_ns() + (left < wall_s * NSEC_PER_SEC ? left : wall_s * NSEC_PER_SEC);
}

void decoder_waited(uint64_t since_ns)
{
	(void)__atomic_add_fetch(&waited_ns, clock_monotonic_ns() - since_ns, __ATOMIC_RELAXED);
}

static int give_up(const struct elf_object *o, const char *why, struct error *e)
{
	decoder_end(o->decoder);
	return fail(e, EIO, "%s: %s; what it says of the program is left out", o->path, why);
}

int decoder_distrust(const struct elf_object *o, struct error *e)
{
	return give_up(o, "the process that decodes it gave impossible answers", e);
}

int decoder_make(struct decoder *d, enum decoder_op op, int file, const char *name, size_t size,
		 uint64_t until_ns)
{
	struct decoder_request q = {.op = op, .size = (uint32_t)size};
	struct made *p = &d->process;
	int32_t status;
	int r;

	if (size > DECODER_MAX_PAYLOAD)
		return -E2BIG;
	r = maker.pid ? maker_make(&maker, until_ns, p) : -EIO;
	if (r < 0)
		return r;
	d->state = DECODER_RUNNING;
	r = message_send_fd(p->fd, file, &q, sizeof(q), until_ns);
	if (r == 0)
		r = message_send(p->fd, name, q.size, until_ns);
	if (r == 0)
		r = made_read(p, &status, sizeof(status), until_ns);
	return r == 0 && status != 0 ? -ENOEXEC : r;
}

static int make_for(const struct elf_object *o, uint64_t until)
{
	_cleanup_free_ char *names = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&names, &size);

	if (!f)
		return -ENOMEM;
	decoder_put(f, o->path);
	(void)fputs(o->called ? o->called : "", f);
	return fclose(f) == 0 ? decoder_make(o->decoder, DECODER_OBJECT, o->fd, names, size, until)
			      : -ENOMEM;
}

int decoder_ask(const struct elf_object *o, const struct debug_options *options,
		const struct decoder_request *q, const void *payload, struct decoder_reply *ret,
		struct error *e)
{
	uint64_t from = clock_monotonic_ns(), until = decoder_deadline(limits.wall_s);
	struct decoder *d;
	int r = 0;

	/* Whether there is one is no part of what the object is. */
	if (!o->decoder && decoder_adopt((struct elf_object *)(uintptr_t)o, -1) < 0)
		return fail(e, ENOMEM, "out of memory");
	d = o->decoder;
	if (d->state == DECODER_NOT_STARTED)
		r = make_for(o, until);
	else if (d->state == DECODER_GONE)
		r = -EPIPE;
	if (r == 0)
		r = message_send(d->process.fd, q, sizeof(*q), until);
	if (r == 0)
		r = message_send(d->process.fd, payload, q->size, until);
	if (r == 0)
		r = decoder_read_reply(d->process.fd, o, options, until, ret);
	decoder_waited(from);
	if (r == -EBADMSG)
		return decoder_distrust(o, e);
	if (r < 0)
		return give_up(o,
			       time_left() ? "the process that decodes it ended (it crashed, or "
					     "took too much memory or time)"
					   : "the program's files together take too long to decode",
			       e);
	d->bytes += ret->bytes;
	if (__atomic_add_fetch(&kept_bytes, ret->bytes, __ATOMIC_RELAXED) > limits.total_bytes) {
		decoder_reply_free(ret);
		return give_up(o, "the program's files together take too much memory", e);
	}
	if (ret->head.status < 0 && *ret->blobs[BLOB_TEXT])
		(void)fail(e, -ret->head.status, "%s", (const char *)ret->blobs[BLOB_TEXT]);
	else if (ret->head.status < 0)
		(void)fail(e, -ret->head.status, "%s: the process that decodes it gave up: %s",
			   o->path, strerror(-ret->head.status));
	return 0;
}

/* Words as take_options in the decoder reads them. */
char *decoder_pack_options(const struct debug_options *o, size_t *ret_n)
{
	_cleanup_free_ char *text = NULL;
	FILE *f = open_memstream(&text, ret_n);

	if (!f)
		return NULL;
	for (size_t i = 0; o && i < o->n_debug_dirs; i++)
		decoder_put(f, o->debug_dirs[i]);
	decoder_put(f, "");
	for (size_t i = 0; o && i < o->n_prefixes; i++)
		decoder_put(f, o->prefixes[i]);
	return fclose(f) == 0 ? TAKE_PTR(text) : NULL;
}
