// SPDX-License-Identifier: BSD-2-Clause
#include "program/code/loops.h"

#include "base/array.h"
#include "base/cleanup.h"

#include "program/elf/flow.h"
#include "program/elf/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* For a list: bounded work for each function. */
#define MAX_ROWS 16384
#define MAX_LOOPS 64
#define MAX_CODE (64U << 10)

struct row {
	uint64_t at;
	struct line_location where;
};

struct rows {
	struct row *all;
	size_t n;
};

static int add_row(struct addr_range r, const struct line_location *where, void *arg)
{
	struct rows *x = arg;

	if (!where || x->n == MAX_ROWS)
		return x->n == MAX_ROWS;
	xarray_add(x->all, x->n, (struct row){r.lo, *where});
	return 0;
}

static bool same_line(const struct line_location *a, const struct line_location *b)
{
	return a->line == b->line && !strcmp(a->file, b->file);
}

/* Has the line no code of the function outside of [lo, hi]? The first part of a for statement has.
 */
static bool inside_alone(const struct rows *x, const struct line_location *line, uint64_t lo,
			 uint64_t hi)
{
	for (size_t i = 0; i < x->n; i++)
		if ((x->all[i].at < lo || x->all[i].at > hi) && same_line(&x->all[i].where, line))
			return false;
	return true;
}

static struct line_location choose(const struct rows *x, uint64_t lo, uint64_t hi)
{
	struct line_location none = {0};

	/* Backwards from the jump for its own line, then forwards from the loop's head. */
	for (size_t i = x->n; i-- > 0;)
		if (x->all[i].at <= hi) {
			if (x->all[i].at >= lo && inside_alone(x, &x->all[i].where, lo, hi))
				return x->all[i].where;
			break;
		}
	for (size_t i = 0; i < x->n; i++)
		if (x->all[i].at >= lo && x->all[i].at <= hi &&
		    inside_alone(x, &x->all[i].where, lo, hi))
			return x->all[i].where;
	return none;
}

/* Ways through a function, as far as all its bytes are instructions. */
struct ways {
	const struct flow *f;
	size_t n;	 /* instructions */
	uint32_t *stack; /* room for all of them */
	size_t depth;
	bool *seen;
};

static void visit(struct ways *w, uint64_t at, const struct code_instruction *jump)
{
	size_t i = at >= jump->target && at <= jump->at ? flow_find(w->f, at) : SIZE_MAX;

	if (i >= w->n || w->f->all[i].at != at || w->seen[i])
		return;
	w->seen[i] = true;
	w->stack[w->depth++] = (uint32_t)i;
}

/* Is there a way from the jump's target to the jump, between the two? Else it only jumps back to
 * where its block was taken out of, which is no loop. */
static bool closes_loop(struct ways *w, const struct code_instruction *jump)
{
	memset(w->seen, 0, w->n * sizeof(*w->seen));
	w->depth = 0;
	visit(w, jump->target, jump);
	while (w->depth) {
		const struct code_instruction *x = &w->f->all[w->stack[--w->depth]];

		if (x == jump)
			return true;
		if ((x->flow == CODE_BRANCH || x->flow == CODE_JUMP) && x->direct)
			visit(w, x->target, jump);
		if (x->flow != CODE_JUMP && x->flow != CODE_RETURN)
			visit(w, x->at + x->length, jump);
	}
	return false;
}

int code_each_loop(const struct elf_object *o, struct line_table *t, const struct elf_symbol *s,
		   int (*cb)(const struct code_loop *loop, void *arg), void *arg)
{
	_cleanup_(code_close) struct code c = {0};
	_cleanup_(flow_free) struct flow f = {0};
	struct ways w = {.f = &f};
	struct rows rows = {0};
	bool read = false;
	int r, found = 0;

	if (s->size > MAX_CODE || code_open(o, s->addr, s->size, &c) < 0)
		return 0;
	r = flow_of(&c, NULL, NULL, &f);
	for (uint64_t end = f.start; w.n < f.n && f.all[w.n].at == end; w.n++)
		end += f.all[w.n].length;
	w.stack = xcalloc(w.n, sizeof(*w.stack));
	w.seen = xcalloc(w.n, sizeof(*w.seen));
	for (size_t i = 0; r == 0 && i < w.n && found < MAX_LOOPS; i++) {
		const struct code_instruction *x = &f.all[i];
		struct code_loop loop = {.jump = x->at};

		if ((x->flow != CODE_JUMP && x->flow != CODE_BRANCH) || !x->direct ||
		    x->target < s->addr || x->target > x->at)
			continue;
		if (!closes_loop(&w, x))
			continue;
		if (!read) {
			r = line_table_rows(t, s->addr, s->addr + s->size, add_row, &rows);
			r = r == -ENOMEM ? r : 0;
			read = true;
		}
		found++;
		loop.line = choose(&rows, x->target, x->at);
		if (r == 0)
			r = cb(&loop, arg);
	}
	free(rows.all);
	free(w.stack);
	free(w.seen);
	return r;
}
