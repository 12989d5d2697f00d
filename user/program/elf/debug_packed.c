// SPDX-License-Identifier: BSD-2-Clause
/* The stream of a section (RFC 1950 and 1951) is unpacked forwards, in chunks. Where a block of it
 * ends and the last mark is far enough behind, a new mark remembers where in the file that is and
 * the 32 KiB before it, which what follows may repeat: a chunk further back is unpacked from the
 * last mark before it. Listing the units of a program goes through all of it once, forwards; a unit
 * that is asked for later takes some milliseconds. The checksum of the whole is not looked at:
 * readers of debug information trust none of it. */
#include "program/elf/debug_private.h"

#include "base/cleanup.h"
#include "base/search.h"

#include <libdeflate.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK (256U << 10)
#define CHUNKS 4 /* that are kept */
#define INPUT (64U << 10)
#define WINDOW 32768U
#define LEAST_SPAN (1ULL << 20) /* between two marks */
#define MAX_MARKS 256
/* A stream without the end of a block in so many spans is no compiler's. */
#define MAX_SPANS 16
#define OLD_HEADER 12 /* "ZLIB", the size */
#define STREAM_HEADER 2

struct mark {
	uint64_t in, out;   /* offsets in the stream and as unpacked */
	unsigned int bits;  /* of the byte before `in` that are still to come ... */
	unsigned char byte; /* ... and that byte */
	unsigned int n;	    /* of the window */
	unsigned char *window;
};

struct chunk {
	uint64_t index;
	uint64_t used;
	size_t n; /* 0: none is kept here */
	unsigned char bytes[CHUNK];
};

struct debug_packed {
	const struct debug_section *section;
	uint64_t begin, size; /* of the stream in the file */
	uint64_t span;
	z_stream z;
	bool z_made;
	bool ended;
	uint64_t in, out; /* in: how much of the stream has been read into `input` */
	unsigned char input[INPUT], last; /* the last byte of the input before this one */
	struct mark marks[MAX_MARKS];
	size_t n_marks;
	struct chunk chunks[CHUNKS];
	uint64_t turn;
};

static bool read_header(struct debug_packed *p)
{
	unsigned char h[STREAM_HEADER];

	return p->size > sizeof(h) && debug_file_read(p->section->file, p->begin, h, sizeof(h)) &&
	       (h[0] & 15) == Z_DEFLATED && (h[0] * 256 + h[1]) % 31 == 0 && !(h[1] & 0x20);
}

struct debug_packed *debug_packed_open(const struct debug_section *s)
{
	size_t header = s->old_packed ? OLD_HEADER : sizeof(Elf64_Chdr);
	struct debug_packed *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->section = s;
	p->begin = s->offset + header;
	p->size = s->stored > header ? s->stored - header : 0;
	p->span = s->size / (MAX_MARKS - 1) > LEAST_SPAN ? s->size / (MAX_MARKS - 1) : LEAST_SPAN;
	p->z_made = read_header(p) && inflateInit2(&p->z, -MAX_WBITS) == Z_OK;
	if (!p->z_made) {
		debug_packed_close(p);
		return NULL;
	}
	p->in = STREAM_HEADER;
	p->marks[p->n_marks++] = (struct mark){.in = STREAM_HEADER};
	return p;
}

void debug_packed_close(struct debug_packed *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_marks; i++)
		free(p->marks[i].window);
	if (p->z_made)
		(void)inflateEnd(&p->z);
	free(p);
}

static bool feed(struct debug_packed *p)
{
	size_t n = p->size - p->in < INPUT ? p->size - p->in : INPUT;

	if (p->z.next_in > p->input)
		p->last = p->z.next_in[-1];
	if (!n || !debug_file_read(p->section->file, p->begin + p->in, p->input, n))
		return false;
	p->in += n;
	p->z.next_in = p->input;
	p->z.avail_in = (unsigned int)n;
	return true;
}

/* Behind a block. What cannot be remembered is unpacked from further back. */
static void set_mark(struct debug_packed *p)
{
	struct mark *m = &p->marks[p->n_marks], *before = m - 1;
	unsigned int bits = (unsigned int)p->z.data_type & 7;

	if (p->n_marks == MAX_MARKS || p->out < before->out + p->span)
		return;
	*m = (struct mark){
		.in = p->in - p->z.avail_in,
		.out = p->out,
		.bits = bits,
		.byte = p->z.next_in > p->input ? p->z.next_in[-1] : p->last,
		.n = WINDOW,
		.window = malloc(WINDOW),
	};
	if (m->window && inflateGetDictionary(&p->z, m->window, &m->n) == Z_OK)
		p->n_marks++;
	else
		free(m->window);
}

/* The next @n bytes; returns how many there are. */
static size_t unpack(struct debug_packed *p, unsigned char *to, size_t n)
{
	p->z.next_out = to;
	p->z.avail_out = (unsigned int)n;
	while (p->z.avail_out && !p->ended) {
		unsigned int left = p->z.avail_out;
		int r;

		if (!p->z.avail_in && !feed(p))
			break;
		r = inflate(&p->z, Z_BLOCK);
		p->out += left - p->z.avail_out;
		if (r != Z_OK && r != Z_BUF_ERROR) {
			p->ended = true; /* or damaged: there is no way on */
			break;
		}
		/* Behind a block that is not the last one. */
		if ((p->z.data_type & 128) && !(p->z.data_type & 64))
			set_mark(p);
	}
	return n - p->z.avail_out;
}

static bool go_to_mark(struct debug_packed *p, const struct mark *m)
{
	p->z.avail_in = 0;
	p->z.next_in = p->input;
	p->in = m->in;
	p->out = m->out;
	p->last = m->byte;
	p->ended =
		inflateReset(&p->z) != Z_OK ||
		(m->bits && inflatePrime(&p->z, (int)m->bits, m->byte >> (8 - m->bits)) != Z_OK) ||
		(m->n && inflateSetDictionary(&p->z, m->window, m->n) != Z_OK);
	return !p->ended;
}

static const struct mark *mark_before(const struct debug_packed *p, uint64_t at)
{
	size_t n = search_front(p->n_marks, i, p->marks[i].out <= at);

	return &p->marks[n ? n - 1 : 0];
}

static struct chunk *oldest(struct debug_packed *p)
{
	struct chunk *c = &p->chunks[0];

	for (int i = 1; i < CHUNKS; i++)
		if (p->chunks[i].used < c->used)
			c = &p->chunks[i];
	return c;
}

/* The chunk with the number @index, of those that are kept or unpacked; NULL: there is none. */
static const struct chunk *get(struct debug_packed *p, uint64_t index, bool *ret_slow)
{
	uint64_t at = index * CHUNK;
	const struct mark *m = mark_before(p, at);
	struct chunk *c;

	for (int i = 0; i < CHUNKS; i++)
		if (p->chunks[i].n && p->chunks[i].index == index) {
			p->chunks[i].used = ++p->turn;
			return &p->chunks[i];
		}
	if (p->out > at || p->out < m->out) {
		if (at - m->out > MAX_SPANS * p->span) {
			*ret_slow = true;
			return NULL;
		}
		if (!go_to_mark(p, m))
			return NULL;
	}
	c = oldest(p);
	c->n = 0;
	while (p->out < at) {
		size_t n = at - p->out < CHUNK ? at - p->out : CHUNK;

		if (unpack(p, c->bytes, n) < n)
			return NULL;
	}
	c->n = unpack(p, c->bytes, CHUNK);
	c->index = index;
	c->used = ++p->turn;
	return c;
}

size_t debug_packed_read(struct debug_packed *p, uint64_t at, void *buf, size_t n, bool *ret_slow)
{
	size_t done = 0;

	*ret_slow = false;
	while (done < n) {
		const struct chunk *c = get(p, (at + done) / CHUNK, ret_slow);
		size_t from = (at + done) % CHUNK, some;

		if (!c || from >= c->n)
			break;
		some = c->n - from < n - done ? c->n - from : n - done;
		memcpy((char *)buf + done, c->bytes + from, some);
		done += some;
	}
	return done;
}

/* libelf can unpack a whole section too, with zlib; libdeflate takes a third of the time, and for a
 * program with much debug information that is the greater part of its start-up. */
static void free_decompressor(struct libdeflate_decompressor **d)
{
	libdeflate_free_decompressor(*d);
}

unsigned char *debug_unpack(const struct debug_section *s)
{
	_cleanup_(free_decompressor) struct libdeflate_decompressor *d = NULL;
	_cleanup_free_ unsigned char *stored = NULL, *bytes = NULL;
	size_t header = s->old_packed ? OLD_HEADER : sizeof(Elf64_Chdr), n;

	/* What compression makes larger is stored as it is; the header and the checksum are extra.
	 */
	if (s->stored <= header || s->stored - header > s->size + 64)
		return NULL;
	n = s->stored - header;
	stored = malloc(n);
	if (!stored || !debug_file_read(s->file, s->offset + header, stored, n))
		return NULL;
	d = libdeflate_alloc_decompressor();
	bytes = malloc(s->size);
	if (!d || !bytes ||
	    libdeflate_zlib_decompress(d, stored, n, bytes, s->size, NULL) != LIBDEFLATE_SUCCESS)
		return NULL;
	return TAKE_PTR(bytes);
}
