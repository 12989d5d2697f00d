/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this package share.
 *
 * A decoder and its client talk over a stream socket. The client sends a request, the decoder
 * answers with a head and some blobs; in between it may ask for files to be opened. Nothing in an
 * answer is trusted: the code that unpacks one checks every number in it. */
#pragma once

#include "program/decoder/decoder.h"
#include "base/sandbox/maker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct elf_object;
struct debug_options;
struct cfi_table;
struct perf_map;
struct error;

enum decoder_op {
	DECODER_OBJECT,	 /* the first: the payload is its name and, behind a zero, what its file is
			    called; the file comes along */
	DECODER_SYMBOLS, /* the payload has the options. The answer: each a struct symbol, whose
			  * names are offsets in the blob BLOB_MORE */
	DECODER_CFI,	 /* a: at most so many rows */
	DECODER_LINES,	 /* the payload has the options */
	DECODER_FILES,	 /* a: unit */
	DECODER_ROWS,	 /* a: unit */
	DECODER_INLINED, /* a: unit, b: at most so many bytes of entries */
	DECODER_STATEMENTS, /* a: line; the payload is the file */
	DECODER_COPIES,	    /* the payload is the function's name */
	DECODER_NAMES, /* the first, without a payload, of a process that makes names readable, and
			* all that follow. Payload: names, each with its end; a: with arguments, b:
			* with the result. The answer: a size (uint32_t) and as many texts, empty
			* ones for names that are not made readable */
	DECODER_BUILD_IDS, /* the first, without a payload, of a process that reads build ids. What
			    * follows are files, each with a byte; the answer is a struct
			    * wire_build_id */
	DECODER_PERF_MAPS, /* likewise, of one that reads perf maps (perf_maps.c) */
};

struct decoder_request {
	uint32_t op, size; /* of the payload that follows */
	uint64_t a, b;
};
#define DECODER_MAX_PAYLOAD (1U << 20)

enum decoder_kind {
	DECODER_RESULT,
	DECODER_OPEN, /* open the file whose name is the only blob */
};

/* Blobs of a result: the arrays, names of files that the client has not heard of, text: what went
 * wrong, or a warning; and with symbols, where functions are. */
enum { BLOB_ARRAY, BLOB_MORE, BLOB_NAMES, BLOB_TEXT, BLOB_EXTENTS, DECODER_BLOBS };

struct decoder_head {
	uint32_t kind;
	int32_t status; /* 0 or a negative errno */
	uint64_t a, b;
	uint64_t size[DECODER_BLOBS];
};

struct decoder_reply {
	struct decoder_head head;
	uint64_t bytes;			     /* of all blobs */
	unsigned char *blobs[DECODER_BLOBS]; /* owned; a zero byte stands behind each */
};
void decoder_reply_free(struct decoder_reply *r);

/* client.c. A process that decodes, seen from here. */
enum decoder_state { DECODER_NOT_STARTED, DECODER_RUNNING, DECODER_GONE };
struct decoder {
	enum decoder_state state;
	struct made process;
	uint64_t bytes; /* of its answers */
};
/* Makes the process, which is for @op (DECODER_OBJECT, or one that is not an object's), gives it
 * @file (-1: none) and @name of @size bytes, and learns who it is. After a negative errno
 * decoder_end is to be called. */
int decoder_make(struct decoder *d, enum decoder_op op, int file, const char *name, size_t size,
		 uint64_t until_ns);
void decoder_end(struct decoder *d);
/* Until when to wait for an answer that may take @wall_s; and: it was waited for since then. Called
 * by all threads. */
uint64_t decoder_deadline(unsigned int wall_s);
void decoder_waited(uint64_t since_ns);
/* 0: *ret, to be freed, has the answer, which may be an error's (head.status, with @e set). -EIO:
 * there is no decoder any more; @e says so. Files that the decoder asks for are opened by
 * debug_open_named. */
int decoder_ask(const struct elf_object *o, const struct debug_options *options,
		const struct decoder_request *q, const void *payload, struct decoder_reply *ret,
		struct error *e);
/* There was one, and it is of no use any more: asking it again says so again, for each of what may
 * be millions of units. */
bool decoder_is_gone(const struct elf_object *o);
/* An answer made no sense: ends the decoder. Returns -EIO and says so. */
int decoder_distrust(const struct elf_object *o, struct error *e);
/* What the payload of DECODER_SYMBOLS and DECODER_LINES is; the caller frees. @o may be NULL. NULL:
 * out of memory. */
char *decoder_pack_options(const struct debug_options *o, size_t *ret_n);
/* Reads one answer about @o, opening files as asked. What the tests drive: -EPIPE and others as
 * above. */
int decoder_read_reply(int fd, const struct elf_object *o, const struct debug_options *options,
		       uint64_t deadline_ns, struct decoder_reply *ret);
/* For tests: @fd speaks as the object's decoder. It is taken over. -ENOMEM */
int decoder_adopt(struct elf_object *o, int fd);

/* names.c: a text with its end; NULL stands for none. */
void decoder_put(FILE *to, const char *text);
/* For struct elf_readers. */
void decoder_demangle(const char *const *list, size_t n, bool arguments, bool result, char **ret);
void decoder_names_stop(void);
bool decoder_serve_names(
	int client,
	const struct decoder_limits *limits); /* one request. False: the client is gone */

/* build_ids.c. For struct elf_readers. */
char *decoder_build_id(int fd);
void decoder_build_ids_stop(void);
bool decoder_serve_build_ids(int client,
			     const struct decoder_limits *limits); /* as decoder_serve_names */

/* perf_maps.c. For struct elf_readers. */
int decoder_perf_map(int file, struct perf_map *ret);
/* Reads one answer, and checks it. */
int decoder_read_perf_map(int fd, struct perf_map *ret, uint64_t deadline_ns);
void decoder_perf_maps_stop(void);
bool decoder_serve_perf_maps(int client,
			     const struct decoder_limits *limits); /* as decoder_serve_names */

/* serve.c: the payload of a request, with a zero byte behind it, or NULL; the caller frees. */
char *decoder_read_payload(int from, uint32_t size);
/* Answers until the client is gone. Never returns. */
_Noreturn void decoder_serve(int fd, const struct decoder_limits *limits);

/* Unpacking answers, for struct elf_readers and struct line_readers. symbols.c, lines.c. */
int decoder_symbols(const struct elf_object *o);
int decoder_cfi(const struct elf_object *o, size_t max_rows, struct cfi_table *ret,
		struct error *e);
extern const struct line_readers decoder_lines;

/* With its end; longer ones are cut. */
struct wire_build_id {
	char text[129];
};

/* The entries and the names follow, but behind a negative errno. */
struct wire_perf_map {
	int32_t status;
	uint32_t reserved;
	uint64_t n, names_size;
};
