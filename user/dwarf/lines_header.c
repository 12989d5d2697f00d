// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/lines_private.h"

#include <stdlib.h>

/* Of one program; the largest real ones, of whole programs that were optimised at link time, have some tens of megabytes. */
#define MAX_PROGRAM (128 << 20)

/* The lengths in front: h->size of the contribution, where the rest of the header and where the program begins. */
static bool read_lengths(struct line_header *h, const unsigned char *buf, size_t n, uint64_t *ret_rest, uint64_t *ret_program)
{
	struct reader r = {.at = buf, .end = buf + n};
	uint64_t length = fixed(&r, 4), header_length;

	h->word = 4;
	if (length == 0xffffffff) {
		h->word = 8;
		length = fixed(&r, 8);
	}
	if (r.bad || __builtin_add_overflow(length, (uint64_t)(r.at - buf), &h->size))
		return false;
	h->version = (unsigned int)fixed(&r, 2);
	if (h->version < 2 || h->version > 5)
		return false;
	if (h->version == 5)
		(void)fixed(&r, 2); /* size of addresses and of segment selectors */
	header_length = fixed(&r, h->word);
	*ret_rest = (uint64_t)(r.at - buf);
	return !r.bad && !__builtin_add_overflow(header_length, *ret_rest, ret_program) && *ret_program <= h->size;
}

static bool read_numbers(struct line_header *h, struct reader *r)
{
	h->min_length = (unsigned int)fixed(r, 1);
	if (h->version >= 4)
		(void)fixed(r, 1); /* operations in an instruction: more than one in VLIW code only */
	h->stmt = fixed(r, 1);
	h->line_base = (int8_t)fixed(r, 1);
	h->line_range = (unsigned int)fixed(r, 1);
	h->opcode_base = (unsigned int)fixed(r, 1);
	h->operands = r->at;
	if (r->bad || !h->line_range || !h->opcode_base || (size_t)(r->end - r->at) < h->opcode_base - 1)
		return false;
	h->tables = r->at + h->opcode_base - 1;
	return true;
}

bool line_header_read(struct debug_file *f, uint64_t program, bool whole, struct line_header *ret)
{
	struct debug_section *s = &f->sections[DEBUG_LINE];
	struct line_header h = {0};
	unsigned char head[32];
	uint64_t rest, start;
	struct reader r;
	size_t n;

	n = debug_section_read(s, program, head, sizeof(head));
	if (!read_lengths(&h, head, n, &rest, &start) || program > s->size || h.size > s->size - program || h.size > MAX_PROGRAM)
		return false;
	n = whole ? h.size : start;
	h.bytes = malloc(n ? n : 1);
	if (!h.bytes)
		return false;
	r = (struct reader){.at = h.bytes + rest, .end = h.bytes + start};
	if (debug_section_read(s, program, h.bytes, n) < n || !read_numbers(&h, &r)) {
		free(h.bytes);
		return false;
	}
	h.tables_end = h.program = h.bytes + start;
	h.end = h.bytes + n;
	*ret = h;
	return true;
}

void line_header_free(struct line_header *h)
{
	free(h->bytes);
	h->bytes = NULL;
}
