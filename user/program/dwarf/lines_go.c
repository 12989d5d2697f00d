// SPDX-License-Identifier: BSD-2-Clause
/* Lines of a program of Go's that has no debug information, by the table of functions that all of
 * them have. A unit is a package. */
#include "program/dwarf/lines_private.h"
#include "program/elf/go_table.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Go's compiler counts the calls that it inlines into a function with 16 bits. */
#define MAX_CALLS (1 << 15)
/* Deeper nesting than any compiler makes: further copies count as the one around them. */
#define MAX_DEPTH 512

/* A package's files reach to the next one's, if it has any. */
bool line_go_files(struct line_table *t, struct line_unit *u)
{
	size_t next = (size_t)(u - t->units) + 1, first = u->program, end = go_table_files(t->go);

	if (next < t->n_units && t->units[next].program < end)
		end = t->units[next].program;
	if (first > end)
		first = end;
	u->numbers.ids = reallocarray(NULL, end - first + 1, sizeof(*u->numbers.ids));
	if (!u->numbers.ids)
		return false;
	for (size_t i = first; i < end; i++) {
		const char *name = go_table_file(t->go, i);

		u->numbers.ids[u->numbers.n++] =
			name ? line_file_intern(t, NULL, NULL, name) : NO_FILE;
	}
	return true;
}

/* A row where file or line change. False: no memory. */
static bool add_row(struct line_unit *u, uint64_t addr, int32_t file, int32_t line)
{
	const struct line_row *last = u->n_rows ? &u->rows[u->n_rows - 1] : NULL;
	struct line_row row = {.addr = addr, .stmt = 1};

	if (line > 0 && file >= 0 && (size_t)file < u->numbers.n &&
	    u->numbers.ids[file] != NO_FILE) {
		row.line = (uint32_t)line;
		row.file = u->numbers.ids[file];
	}
	return (last && !last->end && last->line == row.line && last->file == row.file) ||
	       array_add(u->rows, u->n_rows, row) == 0;
}

/* False: no memory, or more rows than a sound table makes. */
static bool add_function(const struct line_table *t, struct line_unit *u,
			 const struct go_function *f)
{
	struct go_numbers files, lines;
	uint64_t at = f->lo;
	bool more;

	/* Functions are in the order of their addresses, and do not overlap. */
	if (u->n_rows && u->rows[u->n_rows - 1].addr > f->lo)
		return true;
	go_numbers_begin(t->go, f, f->files, &files);
	go_numbers_begin(t->go, f, f->lines, &lines);
	more = go_numbers_next(&files) && go_numbers_next(&lines);
	while (more) {
		uint64_t end = files.end < lines.end ? files.end : lines.end;

		if (u->n_rows > go_table_size(t->go) || !add_row(u, at, files.value, lines.value))
			return false;
		at = end;
		more = (files.end > at || go_numbers_next(&files)) &&
		       (lines.end > at || go_numbers_next(&lines));
	}
	return at == f->lo ||
	       array_add(u->rows, u->n_rows, (struct line_row){.addr = at, .end = 1}) == 0;
}

bool line_go_rows(struct line_table *t, struct line_unit *u)
{
	struct go_function f;

	for (size_t i = 0; i < u->n_dies; i++)
		if (go_function_read(t->go, u->dies[i], &f) && !add_function(t, u, &f))
			return false;
	return u->rows || array_room(u->rows, 0) == 0;
}

/* Code that comes from one inlined call, by the number of that call in its function. */
struct piece {
	uint64_t lo, hi;
	int32_t call;
};

/* A function, and what was inlined into it. */
struct copies {
	const struct line_unit *unit;
	struct go_function f;
	struct piece *pieces; /* by address */
	size_t n_pieces;
	size_t n_calls;
	uint32_t
		*called; /* of each call, where it was called: distance from the function's begin */
	size_t *instances; /* of each call; SIZE_MAX: none yet */
	size_t *last;	   /* of each call, its last range; SIZE_MAX: none yet */
};

static int read_pieces(const struct line_table *t, struct copies *c)
{
	struct go_numbers calls;
	uint64_t at = c->f.lo;

	go_numbers_begin(t->go, &c->f, c->f.copies, &calls);
	for (; go_numbers_next(&calls); at = calls.end) {
		if (calls.value < 0 || calls.value >= MAX_CALLS)
			continue;
		if (c->n_pieces > go_table_size(t->go))
			return 0;
		if (array_add(c->pieces, c->n_pieces, (struct piece){at, calls.end, calls.value}) <
		    0)
			return -ENOMEM;
		if (c->n_calls <= (size_t)calls.value)
			c->n_calls = (size_t)calls.value + 1;
	}
	return 0;
}

/* The call whose code is at @distance in the function; -1: that is its own. */
static int32_t call_at(const struct copies *c, uint32_t distance)
{
	uint64_t at = c->f.lo + distance;
	size_t n = search_front(c->n_pieces, i, c->pieces[i].lo <= at);

	return n && at < c->pieces[n - 1].hi ? c->pieces[n - 1].call : -1;
}

/* What @call was inlined into. Callers have smaller numbers: else a forged file could have it go in
 * a circle. */
static int32_t caller_of(const struct copies *c, int32_t call)
{
	int32_t caller = call_at(c, c->called[call]);

	return caller < call ? caller : -1;
}

static struct line_instance instance_of(const struct copies *c, int32_t call, size_t parent,
					struct addr_range entry)
{
	const struct line_unit *u = c->unit;
	uint64_t at = c->f.lo + c->called[call];
	size_t row = search_front(u->n_rows, i, u->rows[i].addr <= at);
	struct line_instance copy = {
		.parent = parent, .entry = entry, .inlined = true, .call_file = NO_FILE};

	if (row && u->rows[row - 1].line) {
		copy.call_file = u->rows[row - 1].file;
		copy.call_line = u->rows[row - 1].line;
	}
	return copy;
}

/* The piece is code of the copy, and of those around it: each range goes on where the copy's last
 * one ended, or is another one. Outer ones first, so that they have smaller numbers. */
static int add_piece(struct copies *c, const struct piece *p, size_t function,
		     struct line_instances *out)
{
	int32_t chain[MAX_DEPTH], call = p->call;
	size_t depth = 0, parent = function;

	for (; call >= 0 && depth < MAX_DEPTH; call = caller_of(c, call))
		chain[depth++] = call;
	while (depth) {
		struct addr_range range = {p->lo, p->hi};

		call = chain[--depth];
		if (c->instances[call] == SIZE_MAX) {
			c->instances[call] = out->n;
			if (array_add(out->all, out->n, instance_of(c, call, parent, range)) < 0)
				return -ENOMEM;
		}
		parent = c->instances[call];
		if (c->last[call] != SIZE_MAX && out->ranges[c->last[call]].hi == p->lo) {
			out->ranges[c->last[call]].hi = p->hi;
			continue;
		}
		c->last[call] = out->n_ranges;
		if (array_add(out->ranges, out->n_ranges,
			      (struct instance_range){p->lo, p->hi, parent}) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The function, and the copies in it if they can be told. */
static int add_instances(const struct line_table *t, struct copies *c, struct line_instances *out)
{
	size_t function = out->n;
	int r = array_add(out->all, out->n,
			  (struct line_instance){.parent = SIZE_MAX,
						 .entry = {c->f.lo, c->f.hi},
						 .call_file = NO_FILE});

	if (r == 0)
		r = array_add(out->ranges, out->n_ranges,
			      (struct instance_range){c->f.lo, c->f.hi, function});
	if (r == 0)
		r = read_pieces(t, c);
	if (r < 0 || !c->n_calls)
		return r;
	c->called = calloc(c->n_calls, sizeof(*c->called));
	c->instances = malloc(2 * c->n_calls * sizeof(*c->instances));
	if (!c->called || !c->instances)
		return -ENOMEM;
	if (!go_calls_read(t->go, &c->f, c->n_calls, c->called))
		return 0;
	memset(c->instances, 0xff, 2 * c->n_calls * sizeof(*c->instances));
	c->last = c->instances + c->n_calls;
	for (size_t i = 0; r == 0 && i < c->n_pieces && out->n_ranges <= go_table_size(t->go); i++)
		r = add_piece(c, &c->pieces[i], function, out);
	return r;
}

int line_go_instances(struct line_table *t, const struct line_unit *u,
		      bool (*wanted)(uint64_t lo, uint64_t hi, void *arg), void *arg,
		      struct line_instances *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < u->n_dies; i++) {
		struct copies c = {.unit = u};

		if (!go_function_read(t->go, u->dies[i], &c.f) ||
		    (wanted && !wanted(c.f.lo, c.f.hi, arg)))
			continue;
		r = add_instances(t, &c, ret);
		free(c.pieces);
		free(c.called);
		free(c.instances);
	}
	return r;
}
