// SPDX-License-Identifier: BSD-2-Clause
#include "program/dwarf/ranges.h"

#include <libdwarf/dwarf.h>

static bool is_index(unsigned int form)
{
	return form == DW_FORM_addrx || form == DW_FORM_GNU_addr_index ||
	       (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

/* The @index-th address of the unit's share of .debug_addr. */
static bool indexed(const struct debug_range_source *s, uint64_t index, uint64_t *ret)
{
	uint64_t at;

	return !__builtin_mul_overflow(index, (uint64_t)8, &at) &&
	       !__builtin_add_overflow(at, s->addr_base, &at) &&
	       debug_section_read(&s->file->sections[DEBUG_ADDR], at, ret, 8) == 8;
}

bool debug_address(const struct debug_range_source *s, struct debug_value v, uint64_t *ret)
{
	*ret = v.v;
	return v.form == DW_FORM_addr || (is_index(v.form) && indexed(s, v.v, ret));
}

static bool spend(const struct debug_range_source *s)
{
	if (!*s->left)
		return false;
	(*s->left)--;
	return true;
}

/* Pairs of addresses, up to version 4. */
static int old_list(const struct debug_range_source *s, uint64_t at,
		    int (*cb)(uint64_t, uint64_t, void *), void *arg)
{
	uint64_t base = s->low, pair[2];
	int r = 0;
	size_t n;
	const unsigned char *all = debug_section_bytes(&s->file->sections[DEBUG_RANGES], &n);

	if (!all || __builtin_add_overflow(at, s->old_base, &at))
		return 0;
	for (; r == 0 && at < n && n - at >= 16 && spend(s); at += 16) {
		memcpy(pair, all + at, 16);
		if (!pair[0] && !pair[1])
			break;
		if (pair[0] == UINT64_MAX)
			base = pair[1];
		else
			r = cb(base + pair[0], base + pair[1], arg);
	}
	return r;
}

static uint64_t indexed_leb(const struct debug_range_source *s, struct reader *r)
{
	uint64_t v = 0;

	if (!indexed(s, leb(r, false), &v))
		r->bad = true;
	return v;
}

/* Since version 5 (section 2.17.3). */
static int new_list(const struct debug_range_source *s, uint64_t at,
		    int (*cb)(uint64_t, uint64_t, void *), void *arg)
{
	struct reader r = {.at = NULL};
	uint64_t base = s->low, lo = 0, hi = 0;
	int result = 0;
	size_t n;

	if (at >= s->n_lists) /* which is 0 where there are none */
		return 0;
	r.at = s->lists + at;
	r.end = s->lists + s->n_lists;
	/* All at once: lists of a program with a section a function ask for each address in it. */
	(void)debug_section_bytes(&s->file->sections[DEBUG_ADDR], &n);
	while (result == 0 && spend(s)) {
		unsigned int kind = (unsigned int)fixed(&r, 1);

		switch (kind) {
		case DW_RLE_base_addressx:
			base = indexed_leb(s, &r);
			break;
		case DW_RLE_base_address:
			base = fixed(&r, 8);
			break;
		case DW_RLE_startx_endx:
			lo = indexed_leb(s, &r);
			hi = indexed_leb(s, &r);
			break;
		case DW_RLE_startx_length:
			lo = indexed_leb(s, &r);
			hi = lo + leb(&r, false);
			break;
		case DW_RLE_offset_pair:
			lo = base + leb(&r, false);
			hi = base + leb(&r, false);
			break;
		case DW_RLE_start_end:
			lo = fixed(&r, 8);
			hi = fixed(&r, 8);
			break;
		case DW_RLE_start_length:
			lo = fixed(&r, 8);
			hi = lo + leb(&r, false);
			break;
		default: /* the end, or nothing to go on with */
			return 0;
		}
		if (r.bad)
			return 0;
		if (kind != DW_RLE_base_addressx && kind != DW_RLE_base_address)
			result = cb(lo, hi, arg);
	}
	return result;
}

/* A list's place by its number in the unit's table of offsets. */
static bool list_place(const struct debug_range_source *s, uint64_t index, uint64_t *ret)
{
	uint64_t offset = 0;

	if (!s->lists_base || s->lists_base > s->n_lists ||
	    index >= (s->n_lists - s->lists_base) / s->word)
		return false;
	memcpy(&offset, s->lists + s->lists_base + index * s->word, s->word);
	*ret = s->lists_base + offset;
	return true;
}

int debug_ranges(const struct debug_range_source *s, struct debug_value low,
		 struct debug_value high, struct debug_value ranges,
		 int (*cb)(uint64_t lo, uint64_t hi, void *arg), void *arg)
{
	uint64_t lo, hi;

	if (ranges.form == DW_FORM_rnglistx)
		return list_place(s, ranges.v, &ranges.v) ? new_list(s, ranges.v, cb, arg) : 0;
	if (ranges.form)
		return s->version >= 5 ? new_list(s, ranges.v, cb, arg)
				       : old_list(s, ranges.v, cb, arg);
	if (!high.form || !debug_address(s, low, &lo))
		return 0;
	if (!debug_address(s, high, &hi))
		hi = lo + high.v;
	return cb(lo, hi, arg);
}

uint64_t debug_range_budget(struct debug_file *f)
{
	return (1 << 16) + f->sections[DEBUG_RNGLISTS].size + f->sections[DEBUG_RANGES].size / 16;
}

void debug_range_source_init(struct debug_range_source *s, struct debug_file *f,
			     const struct debug_unit *u, const struct debug_root *r, uint64_t *left)
{
	*s = (struct debug_range_source){
		.file = f,
		.version = u->version,
		.word = u->word,
		.addr_base = r->values[ROOT_ADDR_BASE].v,
		.lists_base = r->values[ROOT_LISTS_BASE].v,
		.left = left,
	};
	if (u->version >= 5)
		s->lists = debug_section_bytes(&f->sections[DEBUG_RNGLISTS], &s->n_lists);
	(void)(debug_address(s, r->values[ROOT_LOW], &s->low) || (s->low = 0));
}
