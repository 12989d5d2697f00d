// SPDX-License-Identifier: BSD-2-Clause
#include "code/loops.h"

#include "base/array.h"

#include "elf/code.h"
#include "elf/object.h"

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

/* A function, decoded. */
struct flow {
	uint64_t start;
	struct code_instruction *all;
	size_t n;
	uint32_t *index; /* by offset: which instruction begins there, and 1 more */
	size_t size;
	uint32_t *stack; /* room for all of them */
	unsigned char *seen;
};

static void flow_free(struct flow *f)
{
	free(f->all);
	free(f->index);
	free(f->stack);
	free(f->seen);
}

static void flow_read(const struct elf_object *o, const struct elf_symbol *s, struct flow *f)
{
	struct code c = {0};

	*f = (struct flow){.start = s->addr};
	if (s->size > MAX_CODE || code_open(o, s->addr, s->size, &c) < 0)
		return;
	f->size = c.size;
	f->all = xcalloc(c.size, sizeof(*f->all));
	f->index = xcalloc(c.size, sizeof(*f->index));
	f->stack = xcalloc(c.size, sizeof(*f->stack));
	f->seen = xcalloc(c.size, 1);
	while (code_next(&c, &f->all[f->n])) {
		f->index[f->all[f->n].at - f->start] = (uint32_t)f->n + 1;
		f->n++;
	}
	code_close(&c);
}

static void visit(struct flow *f, uint64_t at, const struct code_instruction *jump, size_t *depth)
{
	uint32_t i = at >= jump->target && at <= jump->at ? f->index[at - f->start] : 0;

	if (!i || f->seen[i - 1])
		return;
	f->seen[i - 1] = 1;
	f->stack[(*depth)++] = i - 1;
}

/* Is there a way from the jump's target to the jump, between the two? Else it only jumps back to
 * where its block was taken out of, which is no loop. */
static bool closes_loop(struct flow *f, const struct code_instruction *jump)
{
	size_t depth = 0;

	memset(f->seen, 0, f->n);
	visit(f, jump->target, jump, &depth);
	while (depth) {
		const struct code_instruction *x = &f->all[f->stack[--depth]];

		if (x == jump)
			return true;
		if ((x->flow == CODE_BRANCH || x->flow == CODE_JUMP) && x->direct)
			visit(f, x->target, jump, &depth);
		if (x->flow != CODE_JUMP && x->flow != CODE_RETURN)
			visit(f, x->at + x->length, jump, &depth);
	}
	return false;
}

int code_each_loop(const struct elf_object *o, struct line_table *t, const struct elf_symbol *s,
		   int (*cb)(const struct code_loop *loop, void *arg), void *arg)
{
	struct rows rows = {0};
	struct flow f;
	bool read = false;
	int r = 0, found = 0;

	flow_read(o, s, &f);
	for (size_t i = 0; r == 0 && i < f.n && found < MAX_LOOPS; i++) {
		const struct code_instruction *x = &f.all[i];
		struct code_loop loop = {.jump = x->at};

		if ((x->flow != CODE_JUMP && x->flow != CODE_BRANCH) || !x->direct ||
		    x->target < s->addr || x->target > x->at)
			continue;
		if (!closes_loop(&f, x))
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
	flow_free(&f);
	return r;
}
