// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/code_returns.h"

#include "program/elf/code_place.h"
#include "program/elf/flow.h"
#include "program/elf/object.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of other code that are decoded to find out what a function jumps to. */
#define MAX_BEYOND (16ULL << 20)

struct leaving {
	const struct elf_object *o;
	const struct elf_symbol *s;
	struct cfi_extent parts[CODE_MAX_PARTS];
	struct flow flows[CODE_MAX_PARTS];
	size_t n;
	struct code_exit *exits;
	size_t n_exits;
	uint64_t left; /* of MAX_BEYOND */
	struct error *e;
};

static int refuse(const struct leaving *l, uint64_t at, const char *why)
{
	return fail(l->e, EOPNOTSUPP,
		    "the returns of %s cannot be found in its code: %s (at 0x%llx of %s)",
		    l->s->name, why, (unsigned long long)at, elf_object_path(l->o));
}

static bool is_own(const struct leaving *l, uint64_t vaddr)
{
	return cfi_extents_hold(l->parts, l->n, vaddr);
}

/* The code around @vaddr that belongs together: by call frame information, else by symbol. */
static int code_around(const struct elf_object *o, uint64_t vaddr, struct cfi_extent *ret)
{
	struct elf_symbol s;
	int r = code_body_at(o, vaddr, ret);

	if (r != -ENOENT)
		return r;
	r = elf_object_function_at(o, vaddr, &s);
	if (r == 0)
		*ret = (struct cfi_extent){.lo = s.addr, .hi = s.addr + s.size};
	return r;
}

static int add_part(struct leaving *l, const struct cfi_extent *at)
{
	struct flow *f = &l->flows[l->n];
	int r;

	if (l->n == CODE_MAX_PARTS)
		return refuse(l, at->lo, "it was split into too many parts");
	r = flow_read(l->o, at->lo, at->hi - at->lo, f);
	if (r == -ENOMEM)
		return fail(l->e, ENOMEM, "out of memory");
	if (r < 0)
		return refuse(l, at->lo, "it cannot be read");
	l->parts[l->n++] = *at;
	if (f->cut)
		return refuse(l, at->lo, "it is too long");
	if (f->holes)
		return refuse(l, at->lo, "it does not consist of instructions alone");
	return f->inside ? refuse(l, at->lo, "instructions overlap") : 0;
}

/* A stub of the dynamic linker's: jmp *slot(%rip), mostly behind an instruction that does nothing.
 */
static bool is_stub(const struct elf_object *o, uint64_t vaddr)
{
	_cleanup_(code_close) struct code c = {0};
	struct code_instruction x;

	return code_open(o, vaddr, 16, &c) == 0 && code_next(&c, &x) &&
	       (x.leaves || (x.flow == CODE_NEXT && code_next(&c, &x) && x.leaves));
}

/* Does the code in @at jump into the middle of a part? */
static bool comes_back(const struct leaving *l, const struct cfi_extent *at)
{
	_cleanup_(code_close) struct code c = {0};
	struct code_instruction x;

	if (code_open(l->o, at->lo, at->hi - at->lo, &c) < 0)
		return false;
	while (code_next(&c, &x))
		if (x.direct && x.flow != CODE_CALL && x.target != l->parts[0].lo &&
		    is_own(l, x.target))
			return true;
	return false;
}

/* Cold code of the function, which is never entered from elsewhere. */
static bool is_cold(const struct leaving *l, const struct elf_symbol *s)
{
	return strcmp(s->function, l->s->function) == 0 && strstr(s->name, ".cold");
}

/* What the code at @target, where a jump at @from goes, is: another function (0), or a part, which
 * is added (1). */
static int look_beyond(struct leaving *l, uint64_t from, uint64_t target)
{
	struct cfi_extent at;
	struct elf_symbol s;
	bool named, begins;
	int r = code_around(l->o, target, &at);

	if (r == -ENOMEM)
		return fail(l->e, ENOMEM, "out of memory");
	if (r < 0 || is_stub(l->o, target))
		return 0;
	named = elf_object_function_at(l->o, target, &s) == 0 && !s.is_nameless;
	begins = at.lo == target || (named && s.addr == target);
	if (begins && !named && at.hi - at.lo > l->left)
		return refuse(l, from, "it jumps to too much code that has no name");
	if (begins && !named)
		l->left -= at.hi - at.lo;
	if (begins && (named ? !is_cold(l, &s) : !comes_back(l, &at)))
		return 0;
	if (!begins && named && strcmp(s.function, l->s->function) != 0)
		return fail(l->e, EOPNOTSUPP,
			    "the returns of %s cannot be found in its code: it goes on in the "
			    "middle of %s (at 0x%llx of %s)",
			    l->s->name, s.name, (unsigned long long)from, elf_object_path(l->o));
	r = add_part(l, &at);
	return r < 0 ? r : 1;
}

/* A function in one part has no blocks that nothing leads to, but for data; others are looked at
 * again once all parts are known. */
static bool counts(const struct leaving *l, const struct flow *f, const struct flow_block *b)
{
	return b->reached || (f->open && !b->dead) || l->n > 1;
}

static const struct code_instruction *last_of(const struct flow *f, const struct flow_block *b)
{
	return &f->all[b->first + b->n - 1];
}

/* What part @i jumps to, and where exceptions are caught in its place. */
static int find_parts_of(struct leaving *l, size_t i)
{
	_cleanup_free_ uint64_t *pads = NULL;
	const struct flow *f = &l->flows[i];
	size_t n = 0;
	int r = code_pads(l->o, l->parts[i].lo, &pads, &n);

	for (size_t k = 0; r >= 0 && k < n; k++)
		if (!is_own(l, pads[k]))
			r = look_beyond(l, l->parts[i].lo, pads[k]);
	for (size_t b = 0; r >= 0 && b < f->n_blocks; b++) {
		const struct code_instruction *x = last_of(f, &f->blocks[b]);

		if (counts(l, f, &f->blocks[b]) && x->direct && x->flow != CODE_CALL &&
		    !is_own(l, x->target))
			r = look_beyond(l, x->at, x->target);
	}
	return r < 0 ? r : 0;
}

/* Reads part @i again, with where the others jump into it. */
static int enter_part(struct leaving *l, size_t i)
{
	_cleanup_free_ uint64_t *entries = NULL;
	const struct cfi_extent *at = &l->parts[i];
	struct flow f;
	size_t n = 0;
	int r = 0;

	for (size_t k = 0; r == 0 && k < l->n; k++)
		for (size_t b = 0; r == 0 && k != i && b < l->flows[k].n_blocks; b++) {
			const struct code_instruction *x =
				last_of(&l->flows[k], &l->flows[k].blocks[b]);

			if (x->direct && x->flow != CODE_CALL &&
			    x->target - at->lo < at->hi - at->lo)
				r = array_add(entries, n, x->target);
		}
	if (r == 0)
		r = flow_read_entered(l->o, at->lo, at->hi - at->lo, entries, n, &f);
	if (r < 0)
		return fail(l->e, -r, "out of memory");
	flow_free(&l->flows[i]);
	l->flows[i] = f;
	return 0;
}

static int find_parts(struct leaving *l)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n; i++)
		r = find_parts_of(l, i);
	for (size_t i = 0; r == 0 && l->n > 1 && i < l->n; i++)
		r = enter_part(l, i);
	return r;
}

static int add_exit(struct leaving *l, const struct code_instruction *x, enum code_when when)
{
	struct code_exit *to;

	if (array_room(l->exits, l->n_exits) < 0)
		return fail(l->e, ENOMEM, "out of memory");
	to = &l->exits[l->n_exits++];
	*to = (struct code_exit){.vaddr = x->at,
				 .cost = x->cost,
				 .when = when,
				 .condition = x->condition,
				 .n_parts = l->n};
	memcpy(to->parts, l->parts, sizeof(to->parts));
	if (when == CODE_BY_TARGET && code_jump_target(l->o, x->at, &to->target) < 0)
		return refuse(l, x->at, "it jumps to where only the CPU can tell");
	return 0;
}

/* A jump whose target is in a register or in memory. */
static int look_at_indirect(struct leaving *l, const struct flow *f, const struct flow_block *b,
			    const struct code_instruction *x)
{
	if (x->leaves)
		return add_exit(l, x, CODE_ALWAYS);
	/* By a table of the function's; with the prefix notrack, too, which compilers give to no
	 * other jumps. */
	if ((b->n_out && f->edges[b->out].kind == FLOW_TABLE) || x->cost == CODE_REFUSED)
		return 0;
	return add_exit(l, x, CODE_BY_TARGET);
}

static int look_at_end(struct leaving *l, const struct flow *f, const struct flow_block *b)
{
	const struct code_instruction *x = last_of(f, b);
	uint64_t next = x->at + x->length;
	int r = 0;

	if (x->flow == CODE_RETURN)
		return add_exit(l, x, CODE_ALWAYS);
	if (x->flow == CODE_JUMP && !x->direct)
		return look_at_indirect(l, f, b, x);
	if (x->flow == CODE_JUMP)
		return is_own(l, x->target) ? 0 : add_exit(l, x, CODE_ALWAYS);
	if (x->flow == CODE_BRANCH && !is_own(l, x->target))
		r = x->condition < 0
			    ? refuse(l, x->at, "it branches to another function by a counter")
			    : add_exit(l, x, CODE_BY_FLAGS);
	if (r < 0)
		return r;
	/* A call at the end is one that does not come back. */
	return x->flow != CODE_CALL && x->flow != CODE_STOP && !is_own(l, next)
		       ? refuse(l, x->at, "it goes on in what stands behind it")
		       : 0;
}

/* Calls into the middle, as code has them that hides from the prediction of jumps: its returns are
 * none of the function's. */
static int check_calls(const struct leaving *l, const struct flow *f, const struct flow_block *b)
{
	for (uint32_t k = b->first; k < b->first + b->n; k++) {
		const struct code_instruction *x = &f->all[k];

		if (x->flow == CODE_CALL && x->direct && x->target != l->parts[0].lo &&
		    is_own(l, x->target))
			return refuse(l, x->at, "it calls its own middle");
	}
	return 0;
}

static int find_exits(struct leaving *l)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n; i++) {
		const struct flow *f = &l->flows[i];

		for (size_t b = 0; r == 0 && b < f->n_blocks; b++) {
			if (!f->blocks[b].reached && (!f->open || f->blocks[b].dead))
				continue;
			r = check_calls(l, f, &f->blocks[b]);
			if (r == 0)
				r = look_at_end(l, f, &f->blocks[b]);
		}
	}
	return r;
}

/* Its returns would be those of a function that jumps into it, too. */
static int check_entered(const struct leaving *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (code_is_entered(l->o, l->parts, l->n, l->parts[i].lo, l->parts[i].hi))
			return refuse(l, l->parts[i].lo,
				      "another function goes on in the middle of it");
	return 0;
}

static int find_all(struct leaving *l)
{
	struct cfi_extent first = {.lo = l->s->addr, .hi = l->s->addr + l->s->size}, body;
	int r = code_body_at(l->o, l->s->addr, &body);

	if (r == -ENOMEM)
		return fail(l->e, ENOMEM, "out of memory");
	if (r == 0 && body.lo == first.lo)
		first = body;
	r = add_part(l, &first);
	if (r == 0)
		r = find_parts(l);
	if (r == 0)
		r = find_exits(l);
	if (r == 0 && !l->n_exits)
		r = refuse(l, first.lo, "it never returns");
	return r == 0 ? check_entered(l) : r;
}

int code_exits(const struct elf_object *o, const struct elf_symbol *s, struct code_exit **ret,
	       size_t *ret_n, struct error *e)
{
	struct leaving l = {.o = o, .s = s, .left = MAX_BEYOND, .e = e};
	int r = find_all(&l);

	for (size_t i = 0; i < CODE_MAX_PARTS; i++)
		flow_free(&l.flows[i]);
	if (r < 0) {
		free(l.exits);
		return r;
	}
	*ret = l.exits;
	*ret_n = l.n_exits;
	return 0;
}
