// SPDX-License-Identifier: BSD-2-Clause
/* Where to put a probe for a line: once in each function and each inlined or cloned copy. A loop's
 * line has several runs of code in one function (start, condition, step); a probe on each would
 * count it several times. */
#include "program/dwarf/lines_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMED 4 /* files in a message */

/* A row of the line. */
struct hit {
	uint64_t addr;
	uint64_t copy; /* equal for the rows of one copy: the number of an instance, or a function's
			  address */
	size_t instance; /* SIZE_MAX: the unit does not tell */
	bool stmt;
	bool real; /* it has an instruction of its own, it does not only mark where a statement went
		    */
};

struct hits {
	struct hit *all;
	size_t n;
};

struct addresses {
	uint64_t *all;
	size_t n;
};

static int add_hit(struct hits *h, const struct line_row *row)
{
	return array_add(h->all, h->n,
			 (struct hit){
				 .addr = row->addr,
				 .instance = SIZE_MAX,
				 .stmt = row->stmt,
				 .real = row[1].addr > row->addr,
			 });
}

/* Is one in the range? They are by address. */
static bool any_hit(uint64_t from, uint64_t to, void *arg)
{
	const struct hits *h = arg;
	size_t lo = search_front(h->n, i, h->all[i].addr < from);

	return lo < h->n && h->all[lo].addr < to;
}

/* Hits and ranges are both by address: one sweep, with the ranges around the current address
 * stacked, innermost on top. */
static int find_instances(struct hits *h, const struct line_instances *in)
{
	_cleanup_free_ size_t *stack = reallocarray(NULL, in->n_ranges + 1, sizeof(*stack));
	size_t depth = 0, next = 0;

	if (!stack)
		return -ENOMEM;
	for (size_t i = 0; i < h->n; i++) {
		for (; next < in->n_ranges && in->ranges[next].lo <= h->all[i].addr; next++) {
			while (depth && in->ranges[stack[depth - 1]].hi <= in->ranges[next].lo)
				depth--;
			stack[depth++] = next;
		}
		while (depth && in->ranges[stack[depth - 1]].hi <= h->all[i].addr)
			depth--;
		if (depth)
			h->all[i].instance = in->ranges[stack[depth - 1]].instance;
	}
	return 0;
}

/* A copy where nothing of the line is left but a marker, while a copy inside or around it has its
 * instructions: the compiler moved the marker out of its block. Counting both would count one visit
 * twice. */
static int drop_strays(struct hits *h, const struct line_instances *in)
{
	enum { REAL = 1, AROUND_REAL = 2 };
	_cleanup_free_ unsigned char *is = calloc(in->n + 1, 1);
	size_t used = 0;

	if (!is)
		return -ENOMEM;
	for (size_t i = 0; i < h->n; i++) {
		size_t at = h->all[i].instance;

		if (!h->all[i].real || at == SIZE_MAX || is[at] & REAL)
			continue;
		is[at] |= REAL;
		for (at = in->all[at].parent; at != SIZE_MAX && !(is[at] & AROUND_REAL);
		     at = in->all[at].parent)
			is[at] |= AROUND_REAL;
	}
	for (size_t i = 0; i < h->n; i++) {
		size_t at = h->all[i].instance;
		bool stray = at != SIZE_MAX && !(is[at] & REAL) && is[at] & AROUND_REAL;

		if (at != SIZE_MAX && !(is[at] & REAL))
			for (at = in->all[at].parent; !stray && at != SIZE_MAX;
			     at = in->all[at].parent)
				stray = is[at] & REAL;
		if (!stray)
			h->all[used++] = h->all[i];
	}
	h->n = used;
	return 0;
}

/* Lower is better: the first statement, and rather in the part of the function that is entered than
 * in its cold part. */
static int grade(const struct hit *h, const struct line_instances *in)
{
	bool entry = h->instance == SIZE_MAX || (h->addr >= in->all[h->instance].entry.lo &&
						 h->addr < in->all[h->instance].entry.hi);

	if (h->stmt)
		return entry ? 0 : 1;
	return h->real ? entry ? 2 : 3 : 4;
}

static int by_copy(const void *pa, const void *pb)
{
	const struct hit *a = pa, *b = pb;

	return sort_order(a->instance == SIZE_MAX, b->instance == SIZE_MAX)
	       ?: sort_order(a->copy, b->copy) ?: sort_order(a->addr, b->addr);
}

static int pick(struct line_table *t, struct hits *h, const struct line_instances *in,
		struct addresses *out)
{
	struct elf_symbol sym;

	for (size_t i = 0; i < h->n; i++) {
		struct hit *x = &h->all[i];

		x->copy = x->instance;
		if (x->instance == SIZE_MAX)
			x->copy = elf_object_function_at(t->object, x->addr, &sym) == 0 ? sym.addr
											: x->addr;
	}
	sort_array(h->all, h->n, by_copy);
	for (size_t i = 0, end; i < h->n; i = end) {
		const struct hit *best = &h->all[i];

		for (end = i; end < h->n && h->all[end].copy == best->copy &&
			      (h->all[end].instance == SIZE_MAX) == (best->instance == SIZE_MAX);
		     end++)
			if (grade(&h->all[end], in) < grade(best, in))
				best = &h->all[end];
		if (elf_object_is_code(t->object, best->addr) &&
		    array_add(out->all, out->n, best->addr) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Files that have code for the line. */
struct statement_files {
	uint32_t all[MAX_NAMED];
	size_t n;
};

static void add_file(struct statement_files *files, uint32_t id)
{
	for (size_t i = 0; i < files->n; i++)
		if (files->all[i] == id)
			return;
	if (files->n < MAX_NAMED)
		files->all[files->n++] = id;
}

/* Functions that were folded into others: the first statement of the line in each. */
static int folded_statements(struct file_filter *f, const struct line_unit *u, uint32_t line,
			     struct statement_files *files, struct addresses *out)
{
	bool found = false;

	for (size_t i = 0; i + 1 < u->n_folded; i++) {
		const struct line_row *row = &u->folded[i];

		if (row->end) {
			found = false;
			continue;
		}
		if (found || row->line != line || row[1].addr <= row->addr ||
		    !file_filter_wants(f, row->file))
			continue;
		if (array_add(out->all, out->n, row->addr) < 0)
			return -ENOMEM;
		add_file(files, row->file);
		found = true;
	}
	return 0;
}

static int unit_statements(struct file_filter *f, struct line_unit *u, uint32_t line,
			   struct statement_files *files, struct addresses *out, uint32_t *nearest)
{
	struct line_instances in = {0};
	struct hits h = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i + 1 < u->n_rows; i++) {
		const struct line_row *row = &u->rows[i];
		uint32_t gap, best = *nearest > line ? *nearest - line : line - *nearest;

		if (row->end || !row->line || !file_filter_wants(f, row->file))
			continue;
		if (row->line == line) {
			r = add_hit(&h, row);
			add_file(files, row->file);
			continue;
		}
		gap = row->line > line ? row->line - line : line - row->line;
		/* Of two equally near the one below: a probe on a comment is meant for what it
		 * comments. */
		if (row[1].addr > row->addr &&
		    (!*nearest || gap < best || (gap == best && row->line > *nearest)))
			*nearest = row->line;
	}
	if (r == 0 && h.n)
		r = line_instances_read(f->t, u, any_hit, &h, NULL, &in);
	if (r == 0 && h.n)
		r = find_instances(&h, &in);
	if (r == 0 && h.n)
		r = drop_strays(&h, &in);
	if (r == 0)
		r = pick(f->t, &h, &in, out);
	if (r == 0)
		r = folded_statements(f, u, line, files, out);
	line_instances_free(&in);
	free(h.all);
	return r;
}

static bool match_exactly(const char *file, void *arg)
{
	return strcmp(file, arg) == 0;
}

/* Is what was written the whole name of one of them? */
static bool is_whole(const struct line_table *t, const struct statement_files *files,
		     const char *file)
{
	for (size_t i = 0; i < files->n; i++)
		if (strcmp(t->files[files->all[i]]->name, file) == 0)
			return true;
	return false;
}

static int name_files(struct line_table *t, const struct statement_files *files)
{
	char text[sizeof(t->several.text)] = "";
	size_t used = 0;

	for (size_t i = 0; i < files->n && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
					 !i		     ? ""
					 : i + 1 == files->n ? " and "
							     : ", ",
					 t->files[files->all[i]]->name);
	(void)fail(&t->several, ENOTUNIQ, "%s", text);
	return -ENOTUNIQ;
}

static int statements(struct file_filter *f, const char *file, uint32_t line, uint64_t **ret,
		      size_t *ret_n, uint32_t *ret_nearest)
{
	struct line_table *t = f->t;
	struct statement_files files = {0};
	struct addresses out = {0};
	uint32_t nearest = 0;
	int r = 0;
	bool known = false;

	for (size_t i = 0; r == 0 && i < t->n_units; i++) {
		if (!file_filter_unit(f, &t->units[i]))
			continue;
		known = true;
		if (line_unit_rows(t, &t->units[i]))
			r = unit_statements(f, &t->units[i], line, &files, &out, &nearest);
	}
	if (r == 0 && files.n > 1)
		r = is_whole(t, &files, file) ? -ENOTUNIQ : name_files(t, &files);
	if (r == 0 && !out.n)
		r = known ? -ENOENT : -ENXIO;
	if (r == -ENOENT)
		*ret_nearest = nearest;
	if (r < 0) {
		free(out.all);
		return r;
	}
	*ret = out.all;
	*ret_n = sort_unique(out.all, out.n, sizeof(*out.all), compare_u64);
	return 0;
}

int line_statements_here(struct line_table *t, const char *file, uint32_t line, uint64_t **ret,
			 size_t *ret_n, uint32_t *ret_nearest)
{
	_cleanup_(file_filter_free) struct file_filter f = file_filter_named(t, file);
	_cleanup_(file_filter_free) struct file_filter exact = {
		.t = t, .match = match_exactly, .arg = (void *)(uintptr_t)file};
	int r;

	t->several.text[0] = 0;
	r = statements(&f, file, line, ret, ret_n, ret_nearest);
	/* No name is named, since one of the files is called exactly so. */
	if (r == -ENOTUNIQ && !t->several.text[0])
		r = statements(&exact, file, line, ret, ret_n, ret_nearest);
	return r;
}

const char *line_table_several(const struct line_table *t)
{
	return t->several.text;
}

int line_table_statements(struct line_table *t, const char *file, uint32_t line, uint64_t **ret,
			  size_t *ret_n, uint32_t *ret_nearest)
{
	return t->readers->statements(t, file, line, ret, ret_n, ret_nearest);
}
