// SPDX-License-Identifier: BSD-2-Clause
/* The side that decodes: one object's, with the code that reads it where there are no decoders; or
 * names. Has no rights, and may be anybody's once the object has been read. */
#include "program/elf/cfi.h"
#include "program/elf/debug_file.h"
#include "program/decoder/private.h"
#include "program/dwarf/lines_private.h"
#include "program/elf/object_private.h"
#include "program/elf/symbols_private.h"

#include "base/cleanup.h"
#include "base/message.h"
#include "base/sandbox/confine.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct server {
	const struct decoder_limits *limits;
	struct elf_object *object;
	struct debug_options symbol_options, line_options; /* what they point to is kept for ever */
	struct line_table *lines;
	size_t names_sent; /* of its files */
};

struct answer {
	struct decoder_head head;
	const void *blobs[DECODER_BLOBS];
	void *owned[DECODER_BLOBS];
};

static int client; /* of this decoder */

static int send_answer(struct answer *a)
{
	int r = message_send(client, &a->head, sizeof(a->head), 0);

	for (int i = 0; r == 0 && i < DECODER_BLOBS; i++)
		r = message_send(client, a->blobs[i], a->head.size[i], 0);
	return r;
}

/* Through the client, who knows object and options. */
static int open_named(const struct elf_object *o, const struct debug_options *options,
		      const char *path)
{
	struct answer a = {.head = {.kind = DECODER_OPEN}};
	int32_t status;
	int fd = -1, r;

	(void)o;
	(void)options;
	a.blobs[0] = path;
	a.head.size[0] = strlen(path);
	r = strlen(path) < PATH_MAX ? send_answer(&a) : -ENAMETOOLONG;
	if (r == 0)
		r = message_read_fd(client, &status, sizeof(status), 0, &fd, NULL);
	if (r == -EPIPE)
		_exit(0);
	if (r == 0 && status < 0)
		r = status;
	if (r == 0 && fd < 0)
		r = -EIO;
	return r < 0 ? r : fd;
}

static void set_array(struct answer *a, int blob, const void *bytes, size_t n)
{
	a->blobs[blob] = bytes;
	a->head.size[blob] = n;
}

static void set_text(struct answer *a, const char *text)
{
	if (text)
		set_array(a, BLOB_TEXT, text, strlen(text));
}

/* Names of the files that came up since the last answer. */
static int set_names(struct server *s, struct answer *a)
{
	const struct line_table *t = s->lines;
	_cleanup_free_ char *all = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&all, &size);

	for (size_t i = s->names_sent; f && i < t->n_files; i++)
		decoder_put(f, t->files[i]->name);
	if (!f || fclose(f) != 0)
		return -ENOMEM;
	s->names_sent = t->n_files;
	set_array(a, BLOB_NAMES, all, size);
	a->owned[BLOB_NAMES] = TAKE_PTR(all);
	set_text(a, line_table_warning(t));
	return 0;
}

/* A symbol whose names are offsets in @strings. */
static int put_symbol(struct symbol *out, const struct symbol *s, char *strings, size_t *at,
		      size_t room)
{
	size_t name = strlen(s->name) + 1, own = strlen(s->own) + 1;

	if (name + own > room - *at)
		return -E2BIG;
	*out = *s;
	out->name = out->own = (const char *)(uintptr_t)*at;
	memcpy(strings + *at, s->name, name);
	*at += name;
	if (s->own != s->name) {
		out->own = (const char *)(uintptr_t)*at;
		memcpy(strings + *at, s->own, own);
		*at += own;
	}
	return 0;
}

static int serve_symbols(struct server *s, const struct debug_options *options, struct answer *a)
{
	struct symbol_index *x = s->object->symbols;
	struct symbol *all;
	size_t room = 1, at = 0;
	char *strings;
	int r;

	elf_object_set_options(s->object, options);
	r = symbols_load(s->object);
	for (size_t i = 0; i < x->n; i++)
		room += strlen(x->all[i].name) + strlen(x->all[i].own) + 2;
	if (r < 0)
		return r;
	all = a->owned[BLOB_ARRAY] = calloc(x->n + 1, sizeof(*all));
	strings = a->owned[BLOB_MORE] = malloc(room);
	if (!all || !strings)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < x->n; i++)
		r = put_symbol(&all[i], &x->all[i], strings, &at, room);
	set_array(a, BLOB_ARRAY, all, x->n * sizeof(*all));
	set_array(a, BLOB_MORE, strings, at);
	set_array(a, BLOB_EXTENTS, x->extents, x->n_extents * sizeof(*x->extents));
	set_text(a, x->problem.text);
	return r;
}

static int serve_cfi(struct server *s, const struct decoder_request *q, struct answer *a,
		     struct error *e)
{
	struct cfi_table t;
	int r = cfi_table_read(s->object, q->a, &t, e);

	if (r < 0)
		return r;
	a->owned[BLOB_ARRAY] = t.rows;
	set_array(a, BLOB_ARRAY, t.rows, t.n * sizeof(*t.rows));
	return 0;
}

/* Words: directories, an empty one, prefixes. They stay where they are. */
static int take_options(const char *words, size_t n, struct debug_options *ret)
{
	const char ***list = &ret->debug_dirs;
	size_t *count = &ret->n_debug_dirs;

	*ret = (struct debug_options){.debug_dirs = calloc(n + 1, sizeof(char *)),
				      .prefixes = calloc(n + 1, sizeof(char *))};
	if (!ret->debug_dirs || !ret->prefixes)
		return -ENOMEM;
	for (size_t at = 0; at < n; at += strlen(words + at) + 1) {
		if (words[at]) {
			(*list)[(*count)++] = words + at;
		} else {
			list = &ret->prefixes;
			count = &ret->n_prefixes;
		}
	}
	return 0;
}

static int serve_lines(struct server *s, struct answer *a, struct error *e)
{
	struct line_table *t;
	int r = line_table_open(s->object, &s->line_options, &s->lines, e);

	if (r < 0)
		return r;
	t = s->lines;
	a->head.a = t->n_units;
	set_array(a, BLOB_ARRAY, t->index, t->n_index * sizeof(*t->index));
	set_array(a, BLOB_MORE, t->debug->path, strlen(t->debug->path));
	set_text(a, line_table_warning(t));
	return 0;
}

static int serve_statements(struct server *s, const struct decoder_request *q, const char *file,
			    struct answer *a)
{
	uint32_t nearest = 0;
	uint64_t *all;
	size_t n;
	int r = line_table_statements(s->lines, file, (uint32_t)q->a, &all, &n, &nearest);

	a->head.a = nearest;
	if (r == -ENOTUNIQ)
		set_array(a, BLOB_MORE, line_table_several(s->lines),
			  strlen(line_table_several(s->lines)));
	if (r < 0)
		return r;
	a->owned[BLOB_ARRAY] = all;
	set_array(a, BLOB_ARRAY, all, n * sizeof(*all));
	return 0;
}

static int serve_copies(struct server *s, const char *name, struct answer *a)
{
	struct line_copy *all;
	size_t n;
	int r = line_table_copies(s->lines, name, &all, &n);

	if (r < 0)
		return r;
	a->owned[BLOB_ARRAY] = all;
	set_array(a, BLOB_ARRAY, all, n * sizeof(*all));
	return 0;
}

static int serve_unit(struct server *s, const struct decoder_request *q, struct answer *a)
{
	struct line_unit *u;

	if (q->a >= s->lines->n_units)
		return -EINVAL;
	u = &s->lines->units[q->a];
	if (q->op == DECODER_INLINED) {
		if (!line_unit_inlined(s->lines, u, q->b))
			return u->inlined_state == UNIT_UNREAD ? -EFBIG : -ENOENT;
		set_array(a, BLOB_ARRAY, u->inlined, u->n_inlined * sizeof(*u->inlined));
		return 0;
	}
	if (q->op == DECODER_FILES ? !line_unit_files(s->lines, u) : !line_unit_rows(s->lines, u))
		return -EBADMSG;
	if (q->op == DECODER_FILES)
		set_array(a, BLOB_ARRAY, u->files, u->n_files * sizeof(*u->files));
	else
		set_array(a, BLOB_ARRAY, u->rows, u->n_rows * sizeof(*u->rows));
	return 0;
}

/* @payload has a zero byte behind it. Options are kept, as what was opened with them is: this is
 * one object's decoder. */
static int serve(struct server *s, const struct decoder_request *q, char **payload,
		 struct answer *a, struct error *e)
{
	struct debug_options *options =
		q->op == DECODER_SYMBOLS ? &s->symbol_options : &s->line_options;
	int r = 0;

	if ((q->op == DECODER_SYMBOLS || q->op == DECODER_LINES) && !options->debug_dirs)
		r = take_options(TAKE_PTR(*payload), q->size, options);
	if (r < 0)
		return r;
	if (q->op == DECODER_SYMBOLS)
		return serve_symbols(s, options, a);
	if (q->op == DECODER_CFI)
		return serve_cfi(s, q, a, e);
	if (q->op == DECODER_LINES)
		return s->lines ? -EBUSY : serve_lines(s, a, e);
	if (!s->lines)
		return -EINVAL;
	r = q->op == DECODER_STATEMENTS ? serve_statements(s, q, *payload, a)
	    : q->op == DECODER_COPIES	? serve_copies(s, *payload, a)
					: serve_unit(s, q, a);
	return set_names(s, a) < 0 ? -ENOMEM : r;
}

char *decoder_read_payload(int from, uint32_t size)
{
	_cleanup_free_ char *payload = size <= DECODER_MAX_PAYLOAD ? malloc(size + 1) : NULL;

	if (!payload || message_read(from, payload, size, 0) < 0)
		return NULL;
	payload[size] = 0;
	return TAKE_PTR(payload);
}

static bool one_request(struct server *s)
{
	struct decoder_request q;
	struct answer a = {0};
	struct error e = {.text = ""};
	_cleanup_free_ char *payload = NULL;
	bool ok;

	if (message_read(client, &q, sizeof(q), 0) < 0 ||
	    !(payload = decoder_read_payload(client, q.size)))
		return false;
	sandbox_allow_time(s->limits->cpu_s);
	a.head.status = serve(s, &q, &payload, &a, &e);
	if (a.head.status < 0 && e.text[0])
		set_text(&a, e.text);
	ok = send_answer(&a) == 0;
	for (int i = 0; i < DECODER_BLOBS; i++)
		free(a.owned[i]);
	return ok;
}

static int receive_object(struct server *s, const struct decoder_request *q, int fd)
{
	_cleanup_free_ char *name =
		q->op == DECODER_OBJECT && fd >= 0 ? decoder_read_payload(client, q->size) : NULL;

	int r = name ? elf_object_open_fd(fd, name, &s->object, NULL) : -EBADMSG;

	if (r == 0 && strlen(name) < q->size && name[strlen(name) + 1])
		elf_object_set_called(s->object, name + strlen(name) + 1);
	return r;
}

_Noreturn void decoder_serve(int fd, const struct decoder_limits *limits)
{
	/* Of processes that are not an object's. */
	static const struct {
		const char *name;
		bool (*one)(int from, const struct decoder_limits *limits);
	} servers[] = {
		[DECODER_NAMES] = {"coz-names", decoder_serve_names},
		[DECODER_BUILD_IDS] = {"coz-build-ids", decoder_serve_build_ids},
		[DECODER_PERF_MAPS] = {"coz-perf-maps", decoder_serve_perf_maps},
	};
	struct elf_readers readers = elf_readers_here;
	struct server s = {.limits = limits};
	bool (*serve_one)(int from, const struct decoder_limits *limits) = NULL;
	struct decoder_request q;
	int32_t status;
	int file;

	client = fd;
	readers.open_named = open_named;
	elf_readers_use(&readers);
	if (message_read_fd(client, &q, sizeof(q), 0, &file, NULL) < 0)
		_exit(0);
	if (q.op < sizeof(servers) / sizeof(servers[0]))
		serve_one = servers[q.op].one;
	if (serve_one)
		(void)prctl(PR_SET_NAME, servers[q.op].name, 0, 0, 0);
	if (!sandbox_confine(limits->memory_bytes, limits->cpu_s))
		_exit(1);
	status = serve_one ? 0 : receive_object(&s, &q, file);
	if (message_send(client, &status, sizeof(status), 0) == 0 && status == 0)
		while (serve_one ? serve_one(client, limits) : one_request(&s))
			;
	_exit(0);
}
