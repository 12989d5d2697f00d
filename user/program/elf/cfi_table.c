// SPDX-License-Identifier: BSD-2-Clause
/* .eh_frame's entries, in the order of the file, become one sorted table without holes. */
#include "program/elf/cfi_private.h"

#include "base/array.h"
#include "base/error.h"
#include "base/search.h"
#include "base/sort.h"

#include <errno.h>
#include <libdwarf/dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Linkers join equal ones: a library of 100 MB has a few thousand. */
#define MAX_CIES 65536
#define MAX_SPAN 0xffffffffULL

/* One FDE's rows. */
struct span {
	uint64_t lo, hi, handlers;
	size_t first, n;
};

struct parser {
	const struct cfi_section *s;
	struct error *e;
	struct cfi_cie *cies; /* by offset */
	size_t n_cies;
	struct span *spans;
	size_t n_spans;
	struct cfi_rows rows;
	bool extents; /* where functions are is all that is asked for */
};

static int malformed(struct parser *p, uint64_t at, const char *what)
{
	return fail(p->e, EBADMSG,
		    "%s: malformed .eh_frame (%s at offset 0x%llx); calls out of it are followed "
		    "by frame pointers",
		    p->s->name, what, (unsigned long long)at);
}

static int failed(struct parser *p, int r, uint64_t at, const char *what)
{
	if (r == -ENOMEM)
		return fail(p->e, ENOMEM, "out of memory for the call frame information of %s",
			    p->s->name);
	if (r == -E2BIG)
		return fail(p->e, E2BIG,
			    "%s: its call frame information makes more than %zu rows; calls out of "
			    "it are followed by "
			    "frame pointers",
			    p->s->name, p->s->max_rows);
	return malformed(p, at, what);
}

/* The letters after 'z', each with its data in @data. */
static bool read_augmentation(struct cfi_cie *cie, const char *letters, struct reader *data)
{
	uint8_t pe;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->fde_encoding = (uint8_t)fixed(data, 1);
			break;
		case 'L':
			cie->handlers_encoding = (uint8_t)fixed(data, 1);
			break;
		case 'P':
			pe = (uint8_t)fixed(data, 1);
			cfi_skip_pointer(data, pe);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		default:
			return false;
		}
	}
	return !data->bad;
}

static bool read_cie(struct cfi_cie *cie, struct reader c)
{
	uint8_t version = (uint8_t)fixed(&c, 1);
	const char *letters = (const char *)c.at;
	size_t length = strnlen(letters, (size_t)(c.end - c.at));
	uint64_t ra;

	if (letters + length == (const char *)c.end ||
	    (version != 1 && version != 3 && version != 4))
		return false;
	(void)take_part(&c, length + 1);
	if (!strcmp(letters, "eh")) {
		(void)fixed(&c, 8); /* of GCC 2 */
		letters = "";
	}
	if (version == 4 &&
	    (fixed(&c, 1) != 8 || fixed(&c, 1) != 0)) /* size of addresses, of segment selectors */
		return false;
	cie->code_align = leb(&c, false);
	cie->data_align = (int64_t)leb(&c, true);
	ra = version == 1 ? fixed(&c, 1) : leb(&c, false);
	if (ra != 16)
		return false;
	if (*letters == 'z') {
		struct reader data = take_part(&c, leb(&c, false));

		cie->augmented = true;
		if (!read_augmentation(cie, letters + 1, &data))
			return false;
	} else if (*letters) {
		return false;
	}
	return !c.bad && cfi_run_cie(cie, c) == 0;
}

static int add_cie(struct parser *p, uint64_t offset, struct reader c)
{
	struct cfi_cie cie = {.offset = offset, .handlers_encoding = DW_EH_PE_omit};

	if (p->n_cies == MAX_CIES)
		return malformed(p, offset, "too many common entries");
	if (!read_cie(&cie, c))
		return malformed(p, offset, "common entry");
	return array_add(p->cies, p->n_cies, cie) < 0 ? failed(p, -ENOMEM, 0, "table") : 0;
}

static const struct cfi_cie *find_cie(const struct parser *p, uint64_t offset)
{
	size_t at = search_front(p->n_cies, i, p->cies[i].offset < offset);

	return at < p->n_cies && p->cies[at].offset == offset ? &p->cies[at] : NULL;
}

/* An entry's pointer to the function's table of handlers. Zero is none, whatever pointers are
 * relative to. */
static uint64_t read_handlers(const struct cfi_cie *cie, struct reader data)
{
	struct reader raw = data;
	uint64_t at;

	if (cie->handlers_encoding == DW_EH_PE_omit ||
	    !cfi_pointer(&raw, cie->handlers_encoding & CFI_PE_FORMAT))
		return 0;
	at = cfi_pointer(&data, cie->handlers_encoding);
	return data.bad ? 0 : at;
}

static int add_fde(struct parser *p, uint64_t at, const struct cfi_cie *cie, struct reader c)
{
	uint64_t lo = cfi_pointer(&c, cie->fde_encoding),
		 length = cfi_pointer(&c, cie->fde_encoding & CFI_PE_FORMAT);
	struct span span = {.first = p->extents ? p->n_spans : p->rows.n};
	int r;

	if (cie->augmented)
		span.handlers = read_handlers(cie, take_part(&c, leb(&c, false)));
	if (c.bad)
		return malformed(p, at, "entry");
	/* Entries of functions that the linker threw away describe address 0, or nothing. */
	if (lo < p->s->code_lo || lo >= p->s->code_hi || !length)
		return 0;
	span.lo = lo;
	span.hi = length < p->s->code_hi - lo ? lo + length : p->s->code_hi;
	r = p->extents ? 0 : cfi_run_fde(cie, c, span.lo, span.hi, p->s->code_lo, &p->rows);
	span.n = p->extents ? 0 : p->rows.n - span.first;
	if (r == 0)
		r = array_add(p->spans, p->n_spans, span);
	return r < 0 ? failed(p, r, at, "instructions") : 0;
}

static int read_entry(struct parser *p, uint64_t at, struct reader c)
{
	uint64_t id_at = (uint64_t)(c.at - p->s->bytes), id = fixed(&c, 4);
	const struct cfi_cie *cie;

	if (c.bad)
		return malformed(p, at, "entry too short");
	if (!id)
		return add_cie(p, at, c);
	cie = id <= id_at ? find_cie(p, id_at - id) : NULL;
	return cie ? add_fde(p, at, cie, c) : malformed(p, at, "entry without a common entry");
}

static int read_entries(struct parser *p)
{
	struct reader c = cfi_reader(p->s->bytes, p->s->size, p->s->vaddr);

	while (c.at < c.end) {
		uint64_t at = (uint64_t)(c.at - p->s->bytes), length;
		struct reader entry;
		int r;

		/* Some linkers leave a few bytes that align the end. */
		if (c.end - c.at < 4)
			return 0;
		length = fixed(&c, 4);
		if (length == 0xffffffff)
			length = fixed(&c, 8);
		if (c.bad)
			return malformed(p, at, "entry past the end");
		if (!length && p->s->stop_at_zero)
			return 0;
		if (!length)
			continue; /* the end of one object file's part */
		entry = take_part(&c, length);
		if (c.bad)
			return malformed(p, at, "entry past the end");
		r = read_entry(p, at, entry);
		if (r < 0)
			return r;
	}
	return 0;
}

/* By start; of those at one place the first in the file comes first. */
static int by_start(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	return sort_order(a->lo, b->lo) ?: sort_order(a->first, b->first);
}

static int put(struct cfi_rows *out, struct abi_row row)
{
	/* It replaces one of the same place, and may be equal to the one before that. */
	if (out->n && out->all[out->n - 1].pc == row.pc)
		out->n--;
	return cfi_add_row(out, 0, row);
}

/* Entries do not overlap in sound files. Where they do, one that begins later cuts the one before
 * it, and between two of the same start the first in the file is kept. */
static int assemble(struct parser *p, struct cfi_rows *out)
{
	uint64_t base = p->s->code_lo;
	int r = put(out, (struct abi_row){.kind = ABI_ROW_NONE});

	for (size_t i = 0; r == 0 && i < p->n_spans; i++) {
		const struct span *s = &p->spans[i];
		uint64_t hi = s->hi;

		if (i && p->spans[i - 1].lo == s->lo)
			continue;
		for (size_t j = i + 1; j < p->n_spans && p->spans[j].lo < hi; j++)
			if (p->spans[j].lo > s->lo) {
				hi = p->spans[j].lo;
				break;
			}
		for (size_t j = 0; r == 0 && j < s->n; j++)
			if (p->rows.all[s->first + j].pc < hi - base)
				r = put(out, p->rows.all[s->first + j]);
		if (r == 0)
			r = put(out, (struct abi_row){.pc = (uint32_t)(hi - base),
						      .kind = ABI_ROW_NONE});
	}
	return r;
}

/* The spans, by start. */
static int read_spans(struct parser *p)
{
	const struct cfi_section *s = p->s;
	int r;

	if (s->code_hi <= s->code_lo || s->code_hi - s->code_lo > MAX_SPAN)
		return fail(p->e, E2BIG,
			    "%s: its code spans 4 GiB or more; calls out of it are followed by "
			    "frame pointers",
			    s->name);
	r = read_entries(p);
	if (r == 0)
		sort_array(p->spans, p->n_spans, by_start);
	return r;
}

int cfi_section_extents(const struct cfi_section *s, struct cfi_extent **ret, size_t *ret_n,
			struct error *e)
{
	struct parser p = {.s = s, .e = e, .extents = true};
	struct cfi_extent *all = NULL;
	size_t n = 0;
	int r = read_spans(&p);

	if (r == 0)
		all = calloc(p.n_spans + 1, sizeof(*all));
	for (size_t i = 0; all && i < p.n_spans; i++)
		if (!i || p.spans[i].lo != p.spans[i - 1].lo)
			all[n++] = (struct cfi_extent){p.spans[i].lo, p.spans[i].hi,
						       p.spans[i].handlers};
	free(p.cies);
	free(p.spans);
	if (r < 0)
		return r;
	if (!all)
		return failed(&p, -ENOMEM, 0, "table");
	*ret = all;
	*ret_n = n;
	return 0;
}

int cfi_section_parse(const struct cfi_section *s, struct cfi_table *ret, struct error *e)
{
	struct parser p = {.s = s, .e = e, .rows.max = s->max_rows};
	struct cfi_rows out = {.max = s->max_rows};
	int r = read_spans(&p);

	if (r == 0) {
		r = assemble(&p, &out);
		if (r < 0)
			r = failed(&p, r, 0, "table");
	}
	free(p.cies);
	free(p.spans);
	free(p.rows.all);
	if (r < 0) {
		free(out.all);
		return r;
	}
	*ret = (struct cfi_table){.base = s->code_lo, .rows = out.all, .n = out.n};
	return 0;
}

void cfi_table_free(struct cfi_table *t)
{
	free(t->rows);
	*t = (struct cfi_table){0};
}
