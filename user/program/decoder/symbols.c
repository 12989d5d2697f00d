// SPDX-License-Identifier: BSD-2-Clause
/* Symbols and call frame information as a decoder read them, checked. */
#include "program/elf/cfi.h"
#include "program/decoder/private.h"
#include "program/elf/symbols_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Checks the symbol and gives it its names, which are offsets in @strings so far. @last: the one
 * before it, or NULL. */
static bool take_symbol(const struct elf_object *o, struct symbol *s, const struct symbol *last,
			const char *strings, size_t n_strings)
{
	uintptr_t name = (uintptr_t)s->name, own = (uintptr_t)s->own;
	uint64_t left = elf_object_code_left(o, s->addr);

	if (name >= n_strings || own >= n_strings || !strings[name] || !strings[own] || !left ||
	    s->size > left || s->kind > SYMBOL_COLD || (last && s->addr < last->addr))
		return false;
	s->name = strings + name;
	s->own = strings + own;
	return true;
}

/* By address, each in executable code. */
static bool extents_are_sound(const struct elf_object *o, const struct cfi_extent *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].hi <= all[i].lo ||
		    all[i].hi - all[i].lo > elf_object_code_left(o, all[i].lo) ||
		    (i && all[i].lo <= all[i - 1].lo))
			return false;
	return true;
}

static int take_symbols(const struct elf_object *o, struct decoder_reply *r)
{
	struct symbol_index *x = o->symbols;
	size_t n = r->head.size[BLOB_ARRAY] / sizeof(*x->all),
	       n_extents = r->head.size[BLOB_EXTENTS] / sizeof(*x->extents), n_nameless = 0;

	if (r->head.size[BLOB_ARRAY] % sizeof(*x->all) ||
	    r->head.size[BLOB_EXTENTS] % sizeof(*x->extents))
		return -EBADMSG;
	/* The blob has a zero behind it. */
	if (array_add(x->copies, x->n_copies, (char *)r->blobs[BLOB_MORE]) < 0)
		return -ENOMEM;
	r->blobs[BLOB_MORE] = NULL;
	x->all = (void *)TAKE_PTR(r->blobs[BLOB_ARRAY]);
	x->extents = (void *)TAKE_PTR(r->blobs[BLOB_EXTENTS]);
	for (size_t i = 0; i < n; i++) {
		if (!take_symbol(o, &x->all[i], i ? &x->all[i - 1] : NULL, x->copies[0],
				 r->head.size[BLOB_MORE]))
			return -EBADMSG;
		n_nameless += x->all[i].nameless;
	}
	if (!extents_are_sound(o, x->extents, n_extents))
		return -EBADMSG;
	x->n = n;
	x->n_nameless = n_nameless;
	x->n_extents = n_extents;
	if (r->head.size[BLOB_TEXT])
		(void)fail(&x->problem, ENODATA, "%s", (const char *)r->blobs[BLOB_TEXT]);
	return 0;
}

int decoder_symbols(const struct elf_object *o)
{
	struct decoder_request q = {.op = DECODER_SYMBOLS};
	_cleanup_(decoder_reply_free) struct decoder_reply r = {0};
	size_t n = 0;
	_cleanup_free_ char *words = decoder_pack_options(o->options, &n);
	int err;

	if (!words)
		return -ENOMEM;
	q.size = n > DECODER_MAX_PAYLOAD ? 0 : (uint32_t)n;
	err = decoder_ask(o, o->options, &q, words, &r, &o->symbols->problem);
	if (err == -EIO) /* left out, which the problem says */
		return 0;
	if (err == 0)
		err = r.head.status;
	if (err == 0)
		err = take_symbols(o, &r);
	if (err != -EBADMSG)
		return err;
	(void)decoder_distrust(o, &o->symbols->problem);
	return 0;
}

static bool rows_are_sound(const struct abi_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].kind > ABI_ROW_DRAP ||
		    (i ? rows[i].pc <= rows[i - 1].pc : rows[i].pc != 0))
			return false;
	return n && rows[n - 1].kind == ABI_ROW_NONE;
}

int decoder_cfi(const struct elf_object *o, size_t max_rows, struct cfi_table *ret, struct error *e)
{
	struct decoder_request q = {.op = DECODER_CFI, .a = max_rows};
	_cleanup_(decoder_reply_free) struct decoder_reply r = {0};
	size_t n;
	int err = decoder_ask(o, o->options, &q, NULL, &r, e);

	if (err == 0)
		err = r.head.status;
	if (err < 0)
		return err;
	n = r.head.size[BLOB_ARRAY] / sizeof(*ret->rows);
	if (r.head.size[BLOB_ARRAY] % sizeof(*ret->rows) || n > max_rows ||
	    !rows_are_sound((const void *)r.blobs[BLOB_ARRAY], n))
		return decoder_distrust(o, e);
	*ret = (struct cfi_table){.base = elf_object_code_base(o),
				  .rows = (void *)TAKE_PTR(r.blobs[BLOB_ARRAY]),
				  .n = n};
	return 0;
}
