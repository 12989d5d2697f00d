// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/code_place.h"

#include "program/elf/symbols_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/search.h"
#include "base/sort.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes of code in one object that are decoded to find calls: a second's work. */
#define MAX_DECODED (64ULL << 20)

void code_places_close(struct code_places *c)
{
	flow_free(&c->flow);
	free(c->called);
	*c = (struct code_places){.o = c->o};
}

int code_body_at(const struct elf_object *o, uint64_t vaddr, struct cfi_extent *ret)
{
	const struct symbol_index *x = o->symbols;
	size_t n;
	int r = symbols_load(o);

	if (r < 0)
		return r;
	n = search_front(x->n_extents, i, x->extents[i].lo <= vaddr);
	if (!n || vaddr >= x->extents[n - 1].hi ||
	    (n < x->n_extents && x->extents[n - 1].hi > x->extents[n].lo))
		return -ENOENT;
	*ret = x->extents[n - 1];
	return 0;
}

int code_pads(const struct elf_object *o, uint64_t vaddr, uint64_t **ret, size_t *ret_n)
{
	struct cfi_extent at;

	*ret = NULL;
	*ret_n = 0;
	return code_body_at(o, vaddr, &at) == 0 ? cfi_pads(o, &at, ret, ret_n) : 0;
}

struct calls {
	struct code_places *c;
	uint64_t left; /* bytes that may still be decoded */
};

/* Adds where the function in [lo, hi) goes. What does not decode to its end is no function. */
static int add_calls(struct calls *x, uint64_t lo, uint64_t hi)
{
	struct code_places *p = x->c;
	_cleanup_(code_close) struct code c = {0};
	size_t before = p->n_called;
	struct code_instruction i;
	struct cfi_extent at;

	if (hi - lo > x->left)
		return -E2BIG;
	if (code_open(p->o, lo, hi - lo, &c) < 0)
		return 0;
	x->left -= hi - lo;
	while (code_next(&c, &i)) {
		if (!i.direct || i.target - lo < hi - lo || code_body_at(p->o, i.target, &at) == 0)
			continue;
		if (array_add(p->called, p->n_called, i.target) < 0)
			return -ENOMEM;
	}
	/* The room stays, which only makes the next growth later: array_room counts on it, so items
	 * are not taken back but made one that is there. */
	if (!code_at_end(&c))
		for (size_t k = before; k < p->n_called; k++)
			p->called[k] = 0;
	return 0;
}

static int add_symbol(const struct elf_symbol *s, void *arg)
{
	struct calls *x = arg;
	struct cfi_extent at;

	return s->size && code_body_at(x->c->o, s->addr, &at) < 0
		       ? add_calls(x, s->addr, s->addr + s->size)
		       : 0;
}

/* Does a call or jump of another function go to @vaddr, which no call frame information describes?
 */
static int is_called(struct code_places *c, uint64_t vaddr)
{
	const struct symbol_index *known = c->o->symbols;
	struct calls x = {.c = c, .left = MAX_DECODED};
	size_t at;
	int r = 0;

	if (!c->has_called) {
		r = symbols_load(c->o);
		for (size_t i = 0; r == 0 && i < known->n_extents; i++)
			r = add_calls(&x, known->extents[i].lo, known->extents[i].hi);
		if (r == 0)
			r = elf_object_each_function(c->o, add_symbol, &x);
		sort_array(c->called, c->n_called, compare_u64);
		/* What was found before it became too much counts. */
		c->has_called = r != -ENOMEM;
	}
	if (r == -ENOMEM)
		return r;
	at = search_front(c->n_called, i, c->called[i] < vaddr);
	return at < c->n_called && c->called[at] == vaddr;
}

/* Reads the function. */
static int take_body(struct code_places *c, const struct cfi_extent *body)
{
	int r;

	if (c->body.lo == body->lo && c->body.hi == body->hi)
		return 0;
	flow_free(&c->flow);
	c->body = (struct cfi_extent){0};
	r = flow_read(c->o, body->lo, body->hi - body->lo, &c->flow);
	if (r == -ENOMEM)
		return r;
	c->body = *body;
	c->why = r < 0		  ? "the function there cannot be read"
		 : c->flow.cut	  ? "the function there is too long to be decoded"
		 : c->flow.holes  ? "the function there does not consist of instructions alone"
		 : c->flow.inside ? "instructions of the function there overlap"
				  : NULL;
	return 0;
}

/* The function around @vaddr that no call frame information describes: a symbol that something
 * calls. 1: @vaddr itself is called, outside of any. */
static int find_called(struct code_places *c, uint64_t vaddr, struct cfi_extent *ret)
{
	const struct symbol_index *x = c->o->symbols;
	struct elf_symbol s;
	int r = elf_object_function_at(c->o, vaddr, &s);
	size_t next;

	if (r == -ENOMEM)
		return r;
	if (r == 0)
		r = is_called(c, s.addr);
	if (r > 0) {
		*ret = (struct cfi_extent){.lo = s.addr, .hi = s.addr + s.size};
		next = search_front(x->n_extents, i, x->extents[i].lo <= vaddr);
		if (next < x->n_extents && x->extents[next].lo < ret->hi)
			ret->hi = x->extents[next].lo;
		return 0;
	}
	r = r == -ENOMEM ? r : is_called(c, vaddr);
	return r == 0 ? -ENOENT : r;
}

static bool is_reached(const struct flow *f, uint64_t vaddr)
{
	size_t at = flow_find(f, vaddr), n;

	if (at == SIZE_MAX || f->all[at].at != vaddr)
		return false;
	n = search_front(f->n_blocks, b, f->blocks[b].first <= at);
	return f->blocks[n - 1].reached;
}

/* Why it is not certain that an instruction of the function that was looked at begins at @vaddr;
 * NULL: it is. */
static const char *doubt(const struct code_places *c, uint64_t vaddr)
{
	const struct flow *f = &c->flow;
	size_t at = flow_find(f, vaddr);
	struct elf_symbol s;

	if (c->why)
		return c->why;
	if (at == SIZE_MAX || f->all[at].at != vaddr)
		return "it is in the middle of one";
	if (is_reached(f, vaddr))
		return NULL;
	/* Jumps from cold code, and by tables that were not found, are not seen. What nothing leads
	 * to is code as long as it is nothing of its own: data that stands in a function has a
	 * name. */
	if (elf_object_function_at(c->o, vaddr, &s) < 0 || s.addr <= f->start ||
	    is_reached(f, s.addr))
		return NULL;
	return "nothing in the function leads there";
}

int code_place_check(struct code_places *c, uint64_t vaddr, struct error *e)
{
	const char *why = "no call frame information describes it, and nothing calls it directly";
	struct cfi_extent body;
	int r = code_body_at(c->o, vaddr, &body);

	if (r == -ENOENT)
		r = find_called(c, vaddr, &body);
	if (r == 1)
		return 0;
	if (r == 0)
		r = take_body(c, &body);
	if (r == -ENOMEM)
		return fail(e, ENOMEM, "out of memory");
	if (r == 0)
		why = doubt(c, vaddr);
	return why ? fail(e, EINVAL, "no instruction of %s surely begins at 0x%llx: %s",
			  elf_object_path(c->o), (unsigned long long)vaddr, why)
		   : 0;
}
