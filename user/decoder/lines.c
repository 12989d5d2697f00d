// SPDX-License-Identifier: BSD-2-Clause
/* Line tables whose units a decoder reads: asks for them, and checks what comes back before anything is searched in it. */
#include "decoder/private.h"
#include "dwarf/lines_private.h"
#include "elf/object_private.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of all names together; what the decoder keeps to as well. */
#define MAX_NAMES (256U << 20)
/* The largest programs have some hundred thousand. */
#define MAX_UNITS (1U << 22)

static bool add_name(struct line_table *t, const char *name, size_t n)
{
	struct line_file *f;

	if (t->n_files == MAX_FILES || t->names_size + n > MAX_NAMES)
		return false;
	if (array_room(t->files, t->n_files) < 0)
		return false;
	f = calloc(1, sizeof(*f) + n + 1);
	if (!f)
		return false;
	memcpy(f->name, name, n);
	f->id = (uint32_t)t->n_files;
	t->files[t->n_files++] = f;
	t->names_size += n;
	return true;
}

/* Files that came up in the answer: each a string with its end. */
static bool take_names(struct line_table *t, const struct decoder_reply *r)
{
	const char *all = (const char *)r->blobs[BLOB_NAMES];
	size_t size = r->head.size[BLOB_NAMES];

	for (size_t at = 0, n; at < size; at += n + 1) {
		n = strlen(all + at); /* there is a zero behind the blob */
		if (at + n == size || !n || !add_name(t, all + at, n))
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

static bool index_is_sound(const struct wire_range *all, size_t n, size_t n_units)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].hi < all[i].lo || all[i].unit >= n_units || (i && (all[i].lo < all[i - 1].lo || all[i].lo < all[i - 1].hi)))
			return false;
	return n > 0;
}

static int take_table(struct line_table *t, const struct decoder_reply *r)
{
	const struct wire_range *all = (const void *)r->blobs[BLOB_ARRAY];
	size_t n;

	if (!elements(r, sizeof(*all), &n) || r->head.a > MAX_UNITS || !index_is_sound(all, n, r->head.a))
		return -EBADMSG;
	t->units = calloc(r->head.a, sizeof(*t->units));
	t->index = calloc(n, sizeof(*t->index));
	t->debug_path = strdup((const char *)r->blobs[BLOB_MORE]);
	if (!t->units || !t->index || !t->debug_path)
		return -ENOMEM;
	t->n_units = r->head.a;
	t->bad = r->head.b;
	for (t->n_index = 0; t->n_index < n; t->n_index++)
		t->index[t->n_index] = (struct unit_range){all[t->n_index].lo, all[t->n_index].hi, all[t->n_index].unit};
	take_warning(t, r);
	return 0;
}

static int open_table(struct line_table *t, struct error *e)
{
	struct decoder_request q = {.op = DECODER_LINES};
	struct decoder_reply r = {0};
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
		(void)fail(e, ENOMEM, "%s: out of memory for its debug information", t->object->path);
	decoder_reply_free(&r);
	return err;
}

static void distrust(struct line_table *t)
{
	struct error why = {.text = ""};

	(void)decoder_distrust(t->object, &why);
	line_table_warn(t, "%s", why.text);
}

/* Asks about a unit. False: nothing is available; *ret_status says why (-EIO: no decoder any more). */
static bool ask(struct line_table *t, uint32_t op, const struct line_unit *u, uint64_t b, struct decoder_reply *ret, int *ret_status)
{
	struct decoder_request q = {.op = op, .a = (uint64_t)(u - t->units), .b = b};
	struct error why = {.text = ""};

	*ret_status = -EIO;
	if (t->warning.text[0] && decoder_is_gone(t->object))
		return false;
	*ret_status = decoder_ask(t->object, &t->options, &q, NULL, ret, &why);
	if (*ret_status < 0) {
		line_table_warn(t, "%s", why.text);
		return false;
	}
	take_warning(t, ret);
	*ret_status = ret->head.status;
	if (!take_names(t, ret)) {
		distrust(t);
		*ret_status = -EIO;
	}
	if (*ret_status == 0)
		return true;
	decoder_reply_free(ret);
	return false;
}

/* The blob becomes the caller's array. */
static void *take_array(struct decoder_reply *r)
{
	void *all = r->blobs[BLOB_ARRAY];

	r->blobs[BLOB_ARRAY] = NULL;
	return all;
}

static bool files_are_sound(const struct line_table *t, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] >= t->n_files || (i && ids[i] <= ids[i - 1]))
			return false;
	return true;
}

static bool read_files(struct line_table *t, struct line_unit *u)
{
	struct decoder_reply r = {0};
	int status;
	size_t n;
	bool ok = ask(t, DECODER_FILES, u, 0, &r, &status);

	if (ok && !(elements(&r, sizeof(*u->files), &n) && files_are_sound(t, (const void *)r.blobs[BLOB_ARRAY], n))) {
		distrust(t);
		ok = false;
	}
	if (ok) {
		u->files = take_array(&r);
		u->n_files = n;
	}
	decoder_reply_free(&r);
	return ok;
}

/* As order_sequences leaves them. */
static bool rows_are_sound(const struct line_table *t, const struct line_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((i && rows[i].addr < rows[i - 1].addr) || (rows[i].line && rows[i].file >= t->n_files))
			return false;
	return !n || rows[n - 1].end;
}

static bool read_rows(struct line_table *t, struct line_unit *u)
{
	struct decoder_reply r = {0};
	int status;
	size_t n;
	bool ok = ask(t, DECODER_ROWS, u, 0, &r, &status);

	if (ok && !(elements(&r, sizeof(*u->rows), &n) && rows_are_sound(t, (const void *)r.blobs[BLOB_ARRAY], n))) {
		distrust(t);
		ok = false;
	}
	if (ok) {
		u->rows = take_array(&r);
		u->n_rows = n;
	}
	decoder_reply_free(&r);
	return ok;
}

static bool inlined_is_sound(const struct line_table *t, const struct wire_inlined *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].hi <= all[i].lo || (i && all[i].lo < all[i - 1].lo) ||
		    (all[i].file != NO_FILE && (all[i].file >= t->n_files || !all[i].line)))
			return false;
	return true;
}

static bool take_inlined(struct line_table *t, struct line_unit *u, const struct decoder_reply *r)
{
	const struct wire_inlined *all = (const void *)r->blobs[BLOB_ARRAY];
	size_t n;

	if (!elements(r, sizeof(*all), &n) || !inlined_is_sound(t, all, n)) {
		distrust(t);
		return false;
	}
	u->inlined = calloc(n + 1, sizeof(*u->inlined));
	for (size_t i = 0; u->inlined && i < n; i++) {
		u->inlined[i].range = (struct addr_range){all[i].lo, all[i].hi};
		if (all[i].file != NO_FILE)
			u->inlined[i].call = (struct line_location){.file = t->files[all[i].file]->name, .line = all[i].line};
	}
	u->n_inlined = u->inlined ? n : 0;
	return u->inlined;
}

static bool read_inlined(struct line_table *t, struct line_unit *u, uint64_t most)
{
	struct decoder_reply r = {0};
	int status;
	bool ok = ask(t, DECODER_INLINED, u, most, &r, &status);

	if (status == -EFBIG) /* another time, when it is needed */
		return false;
	ok = ok && take_inlined(t, u, &r);
	decoder_reply_free(&r);
	u->inlined_state = ok ? UNIT_READ : UNIT_BAD;
	return ok;
}

static bool statements_are_sound(const struct line_table *t, const uint64_t *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!elf_object_is_code(t->object, all[i]))
			return false;
	return n > 0;
}

static int find_statements(struct line_table *t, const char *file, uint32_t line, uint64_t **ret, size_t *ret_n, uint32_t *ret_nearest)
{
	struct decoder_request q = {.op = DECODER_STATEMENTS, .a = line, .size = (uint32_t)strnlen(file, DECODER_MAX_PAYLOAD)};
	struct decoder_reply r = {0};
	struct error why = {.text = ""};
	size_t n;
	int err = decoder_ask(t->object, &t->options, &q, file, &r, &why);

	if (err < 0) {
		line_table_warn(t, "%s", why.text);
		return err;
	}
	take_warning(t, &r);
	err = r.head.status;
	if (!take_names(t, &r) || (err == 0 && !(elements(&r, sizeof(**ret), &n) && statements_are_sound(t, (const void *)r.blobs[BLOB_ARRAY], n)))) {
		distrust(t);
		err = -EIO;
	} else if (err == 0) {
		*ret = take_array(&r);
		*ret_n = n;
	} else if (err == -ENOENT) {
		*ret_nearest = r.head.a > UINT32_MAX ? 0 : (uint32_t)r.head.a;
	}
	decoder_reply_free(&r);
	return err;
}

const struct line_readers decoder_lines = {
	.open = open_table,
	.files = read_files,
	.rows = read_rows,
	.inlined = read_inlined,
	.statements = find_statements,
};
