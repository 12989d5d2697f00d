// SPDX-License-Identifier: BSD-2-Clause
/* Runs a line number program (DWARF 2 to 5, section 6.2 of the standard). Not through libdwarf: the
 * 2021 release starts version 5 programs at file 0 where the standard says 1, which moves a
 * header's lines into the source file. */
#include "program/dwarf/lines_private.h"
#include "program/elf/numbers.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <libdwarf/dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Of one program; the largest real ones, of whole programs that were optimised at link time, have
 * some tens of megabytes. */
#define MAX_PROGRAM (128 << 20)

/* The lengths in front: h->size of the contribution, where the rest of the header and where the
 * program begins. */
static bool read_lengths(struct line_header *h, const unsigned char *buf, size_t n,
			 uint64_t *ret_rest, uint64_t *ret_program)
{
	struct reader r = {.at = buf, .end = buf + n};
	uint64_t length = debug_length(&r, &h->word), header_length;

	if (r.bad || __builtin_add_overflow(length, (uint64_t)(r.at - buf), &h->size))
		return false;
	h->version = (unsigned int)fixed(&r, 2);
	if (h->version < 2 || h->version > 5)
		return false;
	if (h->version == 5)
		(void)fixed(&r, 2); /* size of addresses and of segment selectors */
	header_length = fixed(&r, h->word);
	*ret_rest = (uint64_t)(r.at - buf);
	return !r.bad && !__builtin_add_overflow(header_length, *ret_rest, ret_program) &&
	       *ret_program <= h->size;
}

static bool read_numbers(struct line_header *h, struct reader *r)
{
	h->min_length = (unsigned int)fixed(r, 1);
	if (h->version >= 4)
		(void)fixed(r,
			    1); /* operations in an instruction: more than one in VLIW code only */
	h->stmt = fixed(r, 1);
	h->line_base = (int8_t)fixed(r, 1);
	h->line_range = (unsigned int)fixed(r, 1);
	h->opcode_base = (unsigned int)fixed(r, 1);
	h->operands = r->at;
	if (r->bad || !h->line_range || !h->opcode_base ||
	    (size_t)(r->end - r->at) < h->opcode_base - 1)
		return false;
	h->tables = r->at + h->opcode_base - 1;
	return true;
}

bool line_header_read(struct debug_file *f, uint64_t program, bool whole, struct line_header *ret)
{
	struct debug_section *s = &f->sections[DEBUG_LINE];
	_cleanup_(line_header_free) struct line_header h = {0};
	unsigned char head[32];
	uint64_t rest, start;
	struct reader r;
	size_t n;

	n = debug_section_read(s, program, head, sizeof(head));
	if (!read_lengths(&h, head, n, &rest, &start) || program > s->size ||
	    h.size > s->size - program || h.size > MAX_PROGRAM)
		return false;
	n = whole ? h.size : start;
	h.bytes = malloc(n ? n : 1);
	if (!h.bytes)
		return false;
	r = (struct reader){.at = h.bytes + rest, .end = h.bytes + start};
	if (debug_section_read(s, program, h.bytes, n) < n || !read_numbers(&h, &r))
		return false;
	h.tables_end = h.program = h.bytes + start;
	h.end = h.bytes + n;
	*ret = h;
	h.bytes = NULL;
	return true;
}

void line_header_free(struct line_header *h)
{
	free(h->bytes);
	h->bytes = NULL;
}

struct rows {
	const struct line_unit *unit;
	struct line_row *all;
	size_t n;
	bool open;    /* within a sequence */
	bool no_room; /* memory ran out */
};

static void push(struct rows *out, struct line_row row)
{
	if (array_add(out->all, out->n, row) < 0)
		out->no_room = true;
	else
		out->open = !row.end;
}

struct machine {
	uint64_t addr, file, line;
	bool stmt;
};

static void emit(struct rows *out, const struct machine *m, bool end)
{
	struct line_row row = {.addr = m->addr, .stmt = m->stmt, .end = end};
	uint32_t file = m->file < out->unit->numbers.n ? out->unit->numbers.ids[m->file] : NO_FILE;

	/* Addresses only rise within a sequence. Where they do not, what follows cannot be trusted
	 * to belong to it. */
	if (out->open && row.addr < out->all[out->n - 1].addr)
		row = (struct line_row){.addr = out->all[out->n - 1].addr, .end = 1};
	if (!out->open && row.end)
		return;
	if (!row.end && m->line && m->line <= UINT32_MAX && file != NO_FILE) {
		row.line = (uint32_t)m->line;
		row.file = file;
	}
	push(out, row);
}

/* True at the end of a sequence. */
static bool extended(struct reader *r, struct machine *m)
{
	uint64_t n = leb(r, false);
	unsigned int code;

	if (!n)
		return false;
	if (r->bad || n > (uint64_t)(r->end - r->at)) {
		r->bad = true;
		return false;
	}
	code = *r->at;
	if (code == DW_LNE_set_address && n > 1 && n <= 9) {
		m->addr = 0;
		memcpy(&m->addr, r->at + 1, n - 1);
	}
	r->at += n;
	return code == DW_LNE_end_sequence;
}

static void standard(struct reader *r, const struct line_header *h, struct machine *m,
		     struct rows *out, unsigned int op)
{
	switch (op) {
	case DW_LNS_copy:
		emit(out, m, false);
		break;
	case DW_LNS_advance_pc:
		m->addr += leb(r, false) * h->min_length;
		break;
	case DW_LNS_advance_line:
		m->line += leb(r, true);
		break;
	case DW_LNS_set_file:
		m->file = leb(r, false);
		break;
	case DW_LNS_negate_stmt:
		m->stmt = !m->stmt;
		break;
	case DW_LNS_const_add_pc:
		m->addr += (uint64_t)((255 - h->opcode_base) / h->line_range) * h->min_length;
		break;
	case DW_LNS_fixed_advance_pc:
		m->addr += fixed(r, 2);
		break;
	default: /* says nothing about addresses, files and lines */
		for (unsigned int i = h->operands[op - 1]; i && !r->bad; i--)
			(void)leb(r, false);
	}
}

static void run(struct reader *r, const struct line_header *h, struct rows *out)
{
	const struct machine start = {.file = 1, .line = 1, .stmt = h->stmt};
	struct machine m = start;

	while (r->at < r->end && !r->bad && !out->no_room) {
		unsigned int op = *r->at++;

		if (op >= h->opcode_base) {
			op -= h->opcode_base;
			m.addr += (uint64_t)(op / h->line_range) * h->min_length;
			m.line += (uint64_t)((int)(op % h->line_range) + h->line_base);
			emit(out, &m, false);
		} else if (op) {
			standard(r, h, &m, out, op);
		} else if (extended(r, &m)) {
			emit(out, &m, true);
			m = start;
		}
	}
	if (out->open)
		push(out, (struct line_row){.addr = out->all[out->n - 1].addr, .end = 1});
}

/* Where a sequence begins in the rows, until they are put in order. */
struct sequence {
	uint64_t lo;
	size_t first, n;
};

static int by_start(const void *pa, const void *pb)
{
	const struct sequence *a = pa, *b = pb;

	return sort_order(a->lo, b->lo) ?: sort_order(a->first, b->first);
}

/* Keeps sequences in code segments, by address, without overlaps: what a linker discarded sits at 0
 * or at the top. Those of functions that it folded overlap: all but the first of each piece of code
 * go to u->folded. */
static bool order_sequences(const struct line_table *t, const struct rows *in, struct line_unit *u)
{
	size_t n = 0, used = 0;
	_cleanup_free_ struct sequence *all = reallocarray(NULL, in->n / 2 + 1, sizeof(*all));
	struct line_row *rows = u->rows = reallocarray(NULL, in->n + 1, sizeof(*rows));
	struct line_row *grown;

	if (!all || !rows)
		return false;
	for (size_t i = 0, first = 0; i < in->n; i++) {
		const struct line_row *head = &in->all[first];

		if (!in->all[i].end)
			continue;
		if (i > first && head->addr && elf_object_is_code(t->object, head->addr) &&
		    in->all[i].addr > head->addr)
			all[n++] = (struct sequence){head->addr, first, i - first + 1};
		first = i + 1;
	}
	sort_array(all, n, by_start);
	for (size_t i = 0; i < n; i++) {
		if (used && all[i].lo < rows[used - 1].addr) {
			grown = reallocarray(u->folded, u->n_folded + all[i].n, sizeof(*grown));
			if (!grown)
				return false;
			u->folded = grown;
			memcpy(grown + u->n_folded, in->all + all[i].first,
			       all[i].n * sizeof(*grown));
			u->n_folded += all[i].n;
			continue;
		}
		memcpy(rows + used, in->all + all[i].first, all[i].n * sizeof(*rows));
		used += all[i].n;
	}
	u->n_rows = used;
	return true;
}

bool line_program_run(struct line_table *t, struct line_unit *u)
{
	size_t next = (size_t)(u - t->units) + 1;
	_cleanup_(line_header_free) struct line_header h = {0};
	struct rows out = {.unit = u};
	struct reader r;
	bool ok;

	if (!line_header_read(t->debug, u->program, true, &h))
		return false;
	/* Programs do not overlap; where a file says so, few bytes could stand for any number of
	 * rows. */
	if (next < t->n_units && t->units[next].program - u->program < h.size)
		return false;
	r = (struct reader){.at = h.program, .end = h.end};
	run(&r, &h, &out);
	ok = !r.bad && !out.no_room && order_sequences(t, &out, u);
	free(out.all);
	return ok;
}
