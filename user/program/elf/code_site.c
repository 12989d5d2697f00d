// SPDX-License-Identifier: BSD-2-Clause
/* Looks for a cheap instruction in the basic block around an address: what is executed whenever
 * that is. The function's flow says where blocks begin. Jumps from elsewhere have no record: all
 * bytes of the object that could be one into the block are looked at, and count unless the function
 * that they stand in, decoded, has no such jump. A function that jumps by a table which was not
 * found may jump anywhere, so there nothing is moved. */
#include "program/elf/cfi.h"
#include "program/elf/code.h"
#include "program/elf/code_place.h"
#include "program/elf/flow.h"

#include "program/elf/object.h"
#include "program/elf/object_private.h"

#include "base/cleanup.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SEARCHED \
	(64ULL << 20) /* bytes of code in one object to look for jumps in: a tenth of a second */
#define CHUNK (1U << 20)

/* A function, as far as it matters where it may jump to. */
struct body {
	const struct elf_object *o;
	struct elf_symbol s;
	struct flow flow;
	size_t at;     /* the instruction in question */
	uint64_t left; /* bytes of functions that may still be decoded: any number of symbols can
			  claim the same code */
	bool opaque;   /* something in a part of it cannot be decoded, or jumps by a table */
};

static void free_body(struct body *b)
{
	flow_free(&b->flow);
}

/* Cold code, and other code that was split off, jumps back into the function. */
static int read_part(const struct elf_symbol *s, void *arg)
{
	struct body *b = arg;
	struct code_instruction x;
	_cleanup_(code_close) struct code c = {0};

	if (s->addr == b->s.addr || strcmp(s->function, b->s.function))
		return 0;
	if (s->size > b->left || code_open(b->o, s->addr, s->size, &c) < 0) {
		b->opaque = true;
		return 1;
	}
	b->left -= s->size;
	while (!b->opaque && code_next(&c, &x))
		b->opaque = x.flow == CODE_JUMP && !x.direct && !x.leaves;
	b->opaque |= !code_at_end(&c);
	return b->opaque;
}

/* Reads the function around @vaddr, where an instruction of it begins. */
static bool read_body(const struct elf_object *o, uint64_t vaddr, struct body *ret)
{
	*ret = (struct body){.o = o, .left = MAX_SEARCHED};
	if (elf_object_function_at(o, vaddr, &ret->s) < 0 ||
	    flow_read(o, ret->s.addr, ret->s.size, &ret->flow) < 0)
		return false;
	ret->at = flow_find(&ret->flow, vaddr);
	return ret->at != SIZE_MAX && ret->flow.all[ret->at].at == vaddr && !ret->flow.open &&
	       !ret->flow.holes && !ret->flow.inside && !ret->flow.cut;
}

/* The instructions [*ret_first, *ret_last] of the block that are executed whenever the one in
 * question is: a call may not come back. */
static void find_stretch(const struct body *b, size_t *ret_first, size_t *ret_last)
{
	const struct flow *f = &b->flow;
	const struct flow_block *block =
		&f->blocks[search_front(f->n_blocks, i, f->blocks[i].first <= b->at) - 1];
	size_t end = block->first + block->n;

	*ret_first = *ret_last = b->at;
	while (*ret_first > block->first && f->all[*ret_first - 1].flow == CODE_NEXT)
		--*ret_first;
	while (f->all[*ret_last].flow == CODE_NEXT && *ret_last + 1 < end)
		++*ret_last;
}

static int lower_to_symbol(const struct elf_symbol *s, void *arg)
{
	uint64_t *range = arg;

	if (s->addr > range[0] && s->addr < range[1])
		range[1] = s->addr;
	return s->addr > range[0];
}

/* A search for jumps into (from, limit), which lowers the limit to the first place that one goes
 * to. */
struct hunt {
	const struct elf_object *o;
	uint64_t from, limit;
	uint64_t left;		      /* of the body's */
	const struct cfi_extent *own; /* code whose jumps do not count */
	size_t n_own;
};

/* What looks like a jump at @at: is there none to @target in the function around it, or in the
 * table of jumps to libraries, which no symbol names? Bytes can be chosen such that all of them
 * look like one: past a bound it counts as one unseen, which costs a cheap site and nothing else.
 */
static bool is_real(struct hunt *h, uint64_t at, uint64_t target)
{
	struct code_instruction x;
	_cleanup_(code_close) struct code c = {0};
	struct elf_symbol s;
	struct cfi_extent f;
	bool found = false;

	if (elf_object_function_at(h->o, at, &s) == 0)
		f = (struct cfi_extent){.lo = s.addr, .hi = s.addr + s.size};
	else if (code_body_at(h->o, at, &f) < 0)
		return true;
	if (f.hi - f.lo > h->left || code_open(h->o, f.lo, f.hi - f.lo, &c) < 0)
		return true;
	h->left -= f.hi - f.lo;
	while (!found && code_next(&c, &x))
		found = x.direct && x.target == target;
	found |= !code_at_end(&c);
	return found;
}

static void lower(struct hunt *h, uint64_t at, uint64_t target)
{
	if (!cfi_extents_hold(h->own, h->n_own, at) && target > h->from && target < h->limit &&
	    is_real(h, at, target))
		h->limit = target;
}

/* The bytes at @at. */
static void search(struct hunt *h, const unsigned char *bytes, size_t n, uint64_t at)
{
	for (size_t i = 0; i + 1 < n; i++) {
		unsigned char op = bytes[i];
		int32_t far;

		/* jmp, jcc; loop and jrcxz; by one byte */
		if (op == 0xeb || (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0)
			lower(h, at + i, at + i + 2 + (uint64_t)(int64_t)(int8_t)bytes[i + 1]);
		if (n - i < 5)
			continue;
		memcpy(&far, bytes + i + 1, sizeof(far));
		/* call, jmp, the second byte of jcc; or xbegin's */
		if (op == 0xe8 || op == 0xe9 || (op & 0xf0) == 0x80 || op == 0xf8)
			lower(h, at + i, at + i + 5 + (uint64_t)(int64_t)far);
	}
}

/* Jumps from anywhere in the object; the limit, or 0: cannot be told. */
static uint64_t search_object(struct hunt *h)
{
	const struct elf_object *o = h->o;
	_cleanup_free_ unsigned char *bytes = NULL;
	uint64_t searched = 0;
	/* Some bytes more than are passed on by: a jump may lie across the chunks' border. */
	const size_t room = CHUNK + 8;

	bytes = malloc(room);
	if (!bytes)
		return 0;
	for (size_t i = 0; i < o->n_segments; i++) {
		const struct elf_segment *s = &o->segments[i];

		if (!s->exec)
			continue;
		for (uint64_t at = 0; at < s->filesz; at += CHUNK, searched += CHUNK) {
			int n = elf_object_read(o, s->vaddr + at, bytes, room);

			if (n < 0 || searched > MAX_SEARCHED)
				return 0;
			search(h, bytes, (size_t)n, s->vaddr + at);
		}
	}
	return h->limit;
}

/* The first address in (from, limit) that other code comes to; @limit: there is none. 0: cannot be
 * told. */
static uint64_t entered_at(struct body *b, uint64_t from, uint64_t limit)
{
	uint64_t range[2] = {from, limit};
	struct hunt h = {.o = b->o};

	(void)elf_object_each_function(b->o, read_part, b);
	if (b->opaque)
		return 0;
	(void)elf_object_each_function(b->o, lower_to_symbol, range);
	h.from = range[0];
	h.limit = range[1];
	h.left = b->left;
	return search_object(&h);
}

bool code_is_entered(const struct elf_object *o, const struct cfi_extent *own, size_t n,
		     uint64_t lo, uint64_t hi)
{
	struct hunt h = {
		.o = o, .from = lo, .limit = hi, .left = MAX_SEARCHED, .own = own, .n_own = n};
	uint64_t limit = search_object(&h);

	return limit && limit < hi;
}

/* Of the instructions [from, to], in either direction, the first of those that cost least. */
static size_t cheapest(const struct body *b, size_t from, size_t to)
{
	const struct code_instruction *all = b->flow.all;
	size_t best = from;

	for (size_t i = from; i != to;) {
		i = i < to ? i + 1 : i - 1;
		best = all[i].cost < all[best].cost ? i : best;
	}
	return best;
}

/* The cheapest one after the one in question; where other code comes in between, one before that.
 */
static size_t cheapest_after(struct body *b, size_t last)
{
	const struct code_instruction *all = b->flow.all;
	size_t best = cheapest(b, b->at, last);
	uint64_t entered = best == b->at ? 0 : entered_at(b, all[b->at].at, all[best].at + 1);

	while (best > b->at && all[best].at >= entered)
		best--;
	return cheapest(b, b->at, best);
}

uint64_t code_cheap_site(const struct elf_object *o, uint64_t vaddr, enum code_cost *ret_cost)
{
	_cleanup_(free_body) struct body b = {0};
	size_t first, last, best, before;
	const struct code_instruction *all;

	*ret_cost = code_cost_at(o, vaddr);
	if (*ret_cost == CODE_EMULATED || !read_body(o, vaddr, &b))
		return vaddr;
	all = b.flow.all;
	find_stretch(&b, &first, &last);
	best = cheapest_after(&b, last);
	before = cheapest(&b, b.at, first);
	if (all[before].cost < all[best].cost && entered_at(&b, all[before].at, vaddr + 1) > vaddr)
		best = before;
	*ret_cost = all[best].cost;
	return all[best].at;
}

uint64_t code_behind_nop(const struct elf_object *o, uint64_t vaddr, enum code_cost *ret_cost)
{
	_cleanup_(free_body) struct body b = {0};
	const struct code_instruction *all;
	size_t first, last, at;

	if (!read_body(o, vaddr, &b))
		return vaddr;
	all = b.flow.all;
	find_stretch(&b, &first, &last);
	for (at = b.at; at < last && all[at].cost == CODE_NOP5;)
		at++;
	if (at == b.at || all[at].cost >= CODE_NOP5 ||
	    entered_at(&b, vaddr, all[at].at + 1) <= all[at].at)
		return vaddr;
	*ret_cost = all[at].cost;
	return all[at].at;
}
