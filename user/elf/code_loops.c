// SPDX-License-Identifier: BSD-2-Clause
#include "elf/code_loops.h"

#include "elf/code.h"
#include "elf/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* For a list: bounded work for each function. */
#define MAX_ROWS 16384
#define MAX_LOOPS 256

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
	if (!(x->n & (x->n - 1))) { /* at powers of two */
		struct row *grown = reallocarray(x->all, x->n ? 2 * x->n : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		x->all = grown;
	}
	x->all[x->n++] = (struct row){r.lo, *where};
	return 0;
}

static bool same_line(const struct line_location *a, const struct line_location *b)
{
	return a->line == b->line && !strcmp(a->file, b->file);
}

/* Has the line no code of the function outside of [lo, hi]? The first part of a for statement has. */
static bool inside_alone(const struct rows *x, const struct line_location *line, uint64_t lo, uint64_t hi)
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
		if (x->all[i].at >= lo && x->all[i].at <= hi && inside_alone(x, &x->all[i].where, lo, hi))
			return x->all[i].where;
	return none;
}

int code_each_loop(const struct elf_object *o, struct line_table *t, const struct elf_symbol *s,
		   int (*cb)(const struct code_loop *loop, void *arg), void *arg)
{
	struct code_instruction x;
	struct rows rows = {0};
	struct code c = {0};
	bool read = false;
	int r = 0, found = 0;

	if (code_open(o, s->addr, s->size, &c) < 0)
		return 0;
	while (r == 0 && found < MAX_LOOPS && code_next(&c, &x)) {
		struct code_loop loop = {.jump = x.at};

		if ((x.flow != CODE_JUMP && x.flow != CODE_BRANCH) || !x.direct || x.target < s->addr || x.target > x.at)
			continue;
		if (!read) {
			r = line_table_rows(t, s->addr, s->addr + s->size, add_row, &rows);
			r = r == -ENOMEM ? r : 0;
			read = true;
		}
		found++;
		loop.line = choose(&rows, x.target, x.at);
		if (r == 0)
			r = cb(&loop, arg);
	}
	free(rows.all);
	code_close(&c);
	return r;
}
