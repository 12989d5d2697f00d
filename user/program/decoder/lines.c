// SPDX-License-Identifier: BSD-2-Clause
/* Line tables whose units a decoder reads: asks for them, and checks what comes back before
 * anything is searched in it. */
#include "program/decoder/private.h"
#include "program/dwarf/lines_private.h"
#include "program/elf/object_private.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The largest programs have some hundred thousand. */
#define MAX_UNITS (1U << 22)

/* Files that came up in the answer: each a string with its end. */
static bool take_names(struct line_table *t, const struct decoder_reply *r)
{
	const char *all = (const char *)r->blobs[BLOB_NAMES];
	size_t size = r->head.size[BLOB_NAMES];

	for (size_t at = 0, n; at < size; at += n + 1) {
		n = strlen(all + at); /* there is a zero behind the blob */
		if (at + n == size || !n || !line_file_add(t, all + at, n))
			return false;
	}
	return true;
}

static void take_warning(struct line_table *t, const struct decoder_reply *r)
{
	if (r->head.size[BLOB_TEXT])
		line_table_warn(t, "%s", (const char *)r->blobs[BLOB_TEXT]);
}

/* How many elements of @size bytes; false: not a whole number of them. */
static bool elements(const struct decoder_reply *r, size_t size, size_t *ret)
{
	*ret = r->head.size[BLOB_ARRAY] / size;
	return r->head.size[BLOB_ARRAY] % size == 0;
}

static bool index_is_sound(const struct unit_range *all, size_t n, size_t n_units)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].hi < all[i].lo || all[i].unit >= n_units ||
		    (i && (all[i].lo < all[i - 1].lo || all[i].lo < all[i - 1].hi)))
			return false;
	return n > 0;
}

static int take_table(struct line_table *t, struct decoder_reply *r)
{
	size_t n;

	if (!elements(r, sizeof(*t->index), &n) || r->head.a > MAX_UNITS ||
	    !index_is_sound((const void *)r->blobs[BLOB_ARRAY], n, r->head.a))
		return -EBADMSG;
	t->units = calloc(r->head.a, sizeof(*t->units));
	t->debug_path = strdup((const char *)r->blobs[BLOB_MORE]);
	if (!t->units || !t->debug_path)
		return -ENOMEM;
	t->n_units = r->head.a;
	t->index = (void *)TAKE_PTR(r->blobs[BLOB_ARRAY]);
	t->n_index = n;
	take_warning(t, r);
	return 0;
}

static int open_table(struct line_table *t, struct error *e)
{
	struct decoder_request q = {.op = DECODER_LINES};
	_cleanup_(decoder_reply_free) struct decoder_reply r = {0};
	size_t n = 0;
	_cleanup_free_ char *words = decoder_pack_options(&t->options, &n);
	int err;

	if (!words)
		return fail(e, ENOMEM, "out of memory");
	if (n > DECODER_MAX_PAYLOAD)
		return fail(e, E2BIG, "--debug-dir and --source-prefix are too long together");
	q.size = (uint32_t)n;
	err = decoder_ask(t->object, &t->options, &q, words, &r, e);
	if (err == 0)
		err = r.head.status;
	if (err == 0)
		err = take_table(t, &r);
	if (err == -EBADMSG)
		err = decoder_distrust(t->object, e);
	else if (err == -ENOMEM)
		(void)fail(e, ENOMEM, "%s: out of memory for its debug information",
			   t->object->path);
	return err;
}

/* Asks for an array of elements of @size bytes, which @sound checks. 0: it is
 * ret->blobs[BLOB_ARRAY], of *ret_n elements. Else nothing is available (-EIO: no decoder any
 * more). */
static int ask(struct line_table *t, const struct decoder_request *q, const void *payload,
	       size_t size, bool (*sound)(const struct line_table *t, const void *all, size_t n),
	       struct decoder_reply *ret, size_t *ret_n)
{
	struct error why = {.text = ""};
	int err;

	if (t->warning.text[0] && decoder_is_gone(t->object))
		return -EIO;
	err = decoder_ask(t->object, &t->options, q, payload, ret, &why);
	if (err < 0) {
		line_table_warn(t, "%s", why.text);
		return err;
	}
	take_warning(t, ret);
	err = ret->head.status;
	if (!take_names(t, ret) || (err == 0 && !(elements(ret, size, ret_n) &&
						  sound(t, ret->blobs[BLOB_ARRAY], *ret_n)))) {
		err = decoder_distrust(t->object, &why);
		line_table_warn(t, "%s", why.text);
	}
	return err;
}

/* The array that @op asks for of a unit becomes the caller's; NULL: there is none. */
static void *ask_unit(struct line_table *t, uint32_t op, const struct line_unit *u, size_t size,
		      bool (*sound)(const struct line_table *t, const void *all, size_t n),
		      size_t *ret_n)
{
	struct decoder_request q = {.op = op, .a = (uint64_t)(u - t->units)};
	_cleanup_(decoder_reply_free) struct decoder_reply r = {0};
	size_t n;

	if (ask(t, &q, NULL, size, sound, &r, &n) < 0)
		return NULL;
	*ret_n = n;
	return TAKE_PTR(r.blobs[BLOB_ARRAY]);
}

static bool files_are_sound(const struct line_table *t, const void *all, size_t n)
{
	const uint32_t *ids = all;

	for (size_t i = 0; i < n; i++)
		if (ids[i] >= t->n_files || (i && ids[i] <= ids[i - 1]))
			return false;
	return true;
}

static bool read_files(struct line_table *t, struct line_unit *u)
{
	u->files = ask_unit(t, DECODER_FILES, u, sizeof(*u->files), files_are_sound, &u->n_files);
	return u->files;
}

/* As order_sequences leaves them. */
static bool rows_are_sound(const struct line_table *t, const void *all, size_t n)
{
	const struct line_row *rows = all;

	for (size_t i = 0; i < n; i++)
		if ((i && rows[i].addr < rows[i - 1].addr) ||
		    (rows[i].line && rows[i].file >= t->n_files))
			return false;
	return !n || rows[n - 1].end;
}

static bool read_rows(struct line_table *t, struct line_unit *u)
{
	u->rows = ask_unit(t, DECODER_ROWS, u, sizeof(*u->rows), rows_are_sound, &u->n_rows);
	return u->rows;
}

static bool inlined_is_sound(const struct line_table *t, const void *answer, size_t n)
{
	const struct line_inlined *all = answer;

	for (size_t i = 0; i < n; i++)
		if (all[i].range.hi <= all[i].range.lo ||
		    (i && all[i].range.lo < all[i - 1].range.lo) ||
		    (all[i].file != NO_FILE && (all[i].file >= t->n_files || !all[i].line)))
			return false;
	return true;
}

static bool read_inlined(struct line_table *t, struct line_unit *u, uint64_t most)
{
	struct decoder_request q = {
		.op = DECODER_INLINED, .a = (uint64_t)(u - t->units), .b = most};
	_cleanup_(decoder_reply_free) struct decoder_reply r = {0};
	int err = ask(t, &q, NULL, sizeof(*u->inlined), inlined_is_sound, &r, &u->n_inlined);

	if (err == -EFBIG) /* another time, when it is needed */
		return false;
	u->inlined = err == 0 ? (void *)TAKE_PTR(r.blobs[BLOB_ARRAY]) : NULL;
	u->inlined_state = u->inlined ? UNIT_READ : UNIT_BAD;
	return u->inlined;
}

static bool statements_are_sound(const struct line_table *t, const void *all, size_t n)
{
	const uint64_t *at = all;

	for (size_t i = 0; i < n; i++)
		if (!elf_object_is_code(t->object, at[i]))
			return false;
	return n > 0;
}

static int find_statements(struct line_table *t, const char *file, uint32_t line, uint64_t **ret,
			   size_t *ret_n, uint32_t *ret_nearest)
{
	struct decoder_request q = {.op = DECODER_STATEMENTS,
				    .a = line,
				    .size = (uint32_t)strnlen(file, DECODER_MAX_PAYLOAD)};
	_cleanup_(decoder_reply_free) struct decoder_reply r = {0};
	size_t n;
	int err = ask(t, &q, file, sizeof(**ret), statements_are_sound, &r, &n);

	if (err == 0) {
		*ret = (void *)TAKE_PTR(r.blobs[BLOB_ARRAY]);
		*ret_n = n;
	} else if (err == -ENOTUNIQ) {
		(void)fail(&t->several, ENOTUNIQ, "%s", (const char *)r.blobs[BLOB_MORE]);
	} else if (err == -ENOENT) {
		*ret_nearest = r.head.a > UINT32_MAX ? 0 : (uint32_t)r.head.a;
	}
	return err;
}

static bool copies_are_sound(const struct line_table *t, const void *answer, size_t n)
{
	const struct line_copy *all = answer;

	for (size_t i = 0; i < n; i++)
		if (all[i].range.hi <= all[i].range.lo ||
		    !elf_object_is_code(t->object, all[i].range.lo) ||
		    !elf_object_is_code(t->object, all[i].entry) ||
		    (i && all[i].entry < all[i - 1].entry))
			return false;
	return n > 0;
}

static int find_copies(struct line_table *t, const char *name, struct line_copy **ret,
		       size_t *ret_n)
{
	struct decoder_request q = {.op = DECODER_COPIES,
				    .size = (uint32_t)strnlen(name, DECODER_MAX_PAYLOAD)};
	_cleanup_(decoder_reply_free) struct decoder_reply r = {0};
	size_t n;
	int err = ask(t, &q, name, sizeof(**ret), copies_are_sound, &r, &n);

	if (err < 0)
		return err;
	*ret = (void *)TAKE_PTR(r.blobs[BLOB_ARRAY]);
	*ret_n = n;
	return 0;
}

const struct line_readers decoder_lines = {
	.open = open_table,
	.files = read_files,
	.rows = read_rows,
	.inlined = read_inlined,
	.statements = find_statements,
	.copies = find_copies,
};
