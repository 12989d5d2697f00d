// SPDX-License-Identifier: BSD-2-Clause
/* Looks for a cheap instruction in a basic block. What begins the block is given; where it ends,
 * and that nothing else jumps into the part in use, is made out here. Code has no record of its
 * jumps: all bytes of the object that could be one into the block are looked at, and count unless
 * the function that they stand in, decoded, has no such jump. A function that jumps by a table may
 * jump anywhere, so there nothing is moved. */
#include "elf/cfi.h"
#include "elf/code.h"
#include "elf/code_place.h"

#include "elf/object.h"
#include "elf/object_private.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BLOCK 256 /* bytes to look at; most blocks are far shorter */
#define MAX_SEARCHED \
	(64ULL << 20) /* bytes of code in one object to look for jumps in: a tenth of a second */
#define CHUNK (1U << 20)

/* The cheapest instructions of the block, each cheaper than those before it: where a jump comes in
 * between, an earlier one will do. */
struct candidates {
	struct {
		uint64_t at;
		enum code_cost cost;
	} all[CODE_COSTS];
	size_t n;
};

static void find_candidates(const struct elf_object *o, uint64_t vaddr, uint64_t left,
			    struct candidates *ret)
{
	struct code_instruction x;
	_cleanup_(code_close) struct code c = {0};

	ret->n = 0;
	if (code_open(o, vaddr, left < MAX_BLOCK ? left : MAX_BLOCK, &c) < 0)
		return;
	while (ret->n < CODE_COSTS && code_next(&c, &x)) {
		if (!ret->n || x.cost < ret->all[ret->n - 1].cost) {
			ret->all[ret->n].at = x.at;
			ret->all[ret->n++].cost = x.cost;
		}
		/* A call may not come back. */
		if (x.flow != CODE_NEXT)
			break;
	}
}

/* A function, as far as it matters where it may jump to. */
struct body {
	const struct elf_object *o;
	struct elf_symbol s;
	uint64_t vaddr;
	uint64_t left; /* bytes of functions that may still be decoded: any number of symbols can
			  claim the same code */
	bool boundary; /* an instruction begins at vaddr */
	bool opaque;   /* something in it could not be decoded, or jumps by a table */
};

static void read_body(struct body *b, const struct elf_symbol *s)
{
	struct code_instruction x;
	_cleanup_(code_close) struct code c = {0};

	if (s->size > b->left || code_open(b->o, s->addr, s->size, &c) < 0) {
		b->opaque = true;
		return;
	}
	b->left -= s->size;
	while (!b->opaque && code_next(&c, &x)) {
		b->boundary |= x.at == b->vaddr;
		b->opaque = x.flow == CODE_JUMP && !x.direct && !x.leaves;
	}
	b->opaque |= !code_at_end(&c);
}

/* Cold code, and whatever else was split off, jumps back into the function. */
static int read_part(const struct elf_symbol *s, void *arg)
{
	struct body *b = arg;

	if (s->addr != b->s.addr && !strcmp(s->function, b->s.function))
		read_body(b, s);
	return b->opaque;
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

/* The first address in (b->vaddr, limit) that something else comes to; @limit: none is. 0: cannot
 * be told. */
static uint64_t entered_at(struct body *b, uint64_t limit)
{
	uint64_t range[2] = {b->vaddr, limit};
	struct hunt h = {.o = b->o};

	if (elf_object_function_at(b->o, b->vaddr, &b->s) < 0)
		return 0;
	read_body(b, &b->s);
	if (!b->opaque && b->boundary)
		(void)elf_object_each_function(b->o, read_part, b);
	if (b->opaque || !b->boundary)
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

uint64_t code_cheap_site(const struct elf_object *o, uint64_t vaddr, enum code_cost *ret_cost)
{
	struct body b = {.o = o, .vaddr = vaddr, .left = MAX_SEARCHED};
	bool known = elf_object_function_at(o, vaddr, &b.s) == 0;
	uint64_t end = known ? b.s.addr + b.s.size : vaddr + 16, entered;
	struct candidates c;

	find_candidates(o, vaddr, end - vaddr, &c);
	*ret_cost = c.n ? c.all[0].cost : CODE_STEPPED;
	if (c.n < 2 || !known)
		return vaddr;
	entered = entered_at(&b, c.all[c.n - 1].at + 1);
	while (c.n > 1 && c.all[c.n - 1].at >= entered)
		c.n--;
	*ret_cost = c.all[c.n - 1].cost;
	return c.all[c.n - 1].at;
}

uint64_t code_behind_nop(const struct elf_object *o, uint64_t vaddr, enum code_cost *ret_cost)
{
	struct body b = {.o = o, .vaddr = vaddr, .left = MAX_SEARCHED};
	struct code_instruction x = {.cost = CODE_STEPPED};
	_cleanup_(code_close) struct code c = {0};

	if (code_open(o, vaddr, MAX_BLOCK, &c) < 0)
		return vaddr;
	while (code_next(&c, &x) && x.cost == CODE_NOP5)
		;
	if (x.cost >= CODE_NOP5 || x.at == vaddr || entered_at(&b, x.at + 1) <= x.at ||
	    x.at >= b.s.addr + b.s.size)
		return vaddr;
	*ret_cost = x.cost;
	return x.at;
}
