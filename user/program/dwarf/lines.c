// SPDX-License-Identifier: BSD-2-Clause
#include "program/dwarf/lines.h"
#include "program/elf/debug_find.h"
#include "program/dwarf/lines_private.h"
#include "program/elf/go_table.h"
#include "program/elf/object_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void line_table_warn(struct line_table *t, const char *fmt, ...)
{
	char text[sizeof(t->warning.text)];
	va_list ap;

	if (t->warning.text[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)fail(&t->warning, EINVAL, "%s", text);
}

const char *line_table_warning(const struct line_table *t)
{
	return t->warning.text[0] ? t->warning.text : NULL;
}

const char *line_table_debug_path(const struct line_table *t)
{
	return t->debug_path;
}

static int no_lines(const struct line_table *t, struct error *e)
{
	const char *path = elf_object_path(t->object);

	if (t->warning.text[0])
		return fail(e, ENODATA,
			    "%.150s: no line information (%.250s); build with -g, or use "
			    "--granularity function",
			    path, t->warning.text);
	return fail(e, ENODATA,
		    "%s: no line information; build with -g, or use --granularity function", path);
}

/* The file with the line information becomes t->debug. A damaged one that belongs is a warning. */
static int find_debug(struct line_table *t, struct error *e)
{
	const char *path = elf_object_path(t->object);
	/* A library of a process is known by its own name, not by its place in /proc. */
	_cleanup_free_ char *real =
		strncmp(path, "/proc/", 6) ? NULL : elf_object_real_path(t->object);
	struct debug_file *separate;
	int r = debug_file_open(real ? real : path, elf_object_fd(t->object), false, &t->debug, e);

	if (r < 0)
		return r;
	if (debug_file_has_lines(t->debug))
		return 0;
	if (debug_find_separate(t->object, t->debug, &t->options, true, &separate, &t->warning) < 0)
		return no_lines(t, e);
	debug_file_close(t->debug);
	t->debug = separate;
	t->warning.text[0] = 0; /* another one, elsewhere, did not belong */
	return 0;
}

static int open_here(struct line_table *t, struct error *e)
{
	int r = find_debug(t, e);

	if (r == -ENODATA)
		t->go = go_table_of(t->object);
	if (r < 0 && !t->go)
		return r;
	if (!t->go)
		(void)debug_find_alternate(t->object, t->debug, &t->options, &t->warning);
	r = line_units_open(t);
	if (r == -ENODATA)
		return no_lines(t, e);
	t->debug_path = strdup(t->debug->path);
	if (r < 0 || !t->debug_path)
		return fail(e, r < 0 ? -r : ENOMEM, "%s: out of memory for its debug information",
			    elf_object_path(t->object));
	return 0;
}

static const struct line_readers here = {
	.open = open_here,
	.files = line_unit_files_here,
	.rows = line_unit_rows_here,
	.inlined = line_unit_inlined_here,
	.statements = line_statements_here,
	.copies = line_copies_here,
};

int line_table_open(const struct elf_object *o, const struct debug_options *options,
		    struct line_table **ret, struct error *e)
{
	struct line_table *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return fail(e, ENOMEM, "out of memory");
	t->object = o;
	if (options)
		t->options = *options;
	t->readers = o->readers->lines ? o->readers->lines : &here;
	r = t->readers->open(t, e);
	if (r < 0) {
		line_table_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

void line_table_close(struct line_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_units; i++) {
		free(t->units[i].rows);
		free(t->units[i].folded);
		free(t->units[i].files);
		free(t->units[i].numbers.ids);
		free(t->units[i].inlined);
	}
	free(t->units);
	free(t->dies);
	free(t->index);
	HASH_CLEAR(hh, t->by_name);
	for (size_t i = 0; i < t->n_files; i++)
		free(t->files[i]);
	free(t->files);
	free(t->debug_path);
	debug_file_close(t->package);
	debug_file_close(t->debug);
	free(t);
}

int line_table_covered(const struct line_table *t, struct addr_range **ret, size_t *ret_n)
{
	struct addr_range *all = reallocarray(NULL, t->n_index + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_index; i++)
		all[i] = (struct addr_range){t->index[i].lo, t->index[i].hi};
	*ret = all;
	*ret_n = addr_ranges_merge(all, t->n_index);
	return 0;
}

size_t line_table_units(const struct line_table *t)
{
	return t->n_units;
}

size_t line_table_unit_at(const struct line_table *t, uint64_t vaddr)
{
	size_t lo = search_front(t->n_index, i, t->index[i].lo <= vaddr);

	/* Empty ranges (folded functions) have the same start as the one that counts. */
	while (lo > 0 && t->index[lo - 1].lo == t->index[lo - 1].hi)
		lo--;
	return lo > 0 && vaddr < t->index[lo - 1].hi ? t->index[lo - 1].unit : SIZE_MAX;
}

int line_table_unit_ranges(const struct line_table *t, size_t unit,
			   int (*cb)(struct addr_range r, void *arg), void *arg)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_index; i++)
		if (t->index[i].unit == unit && t->index[i].lo < t->index[i].hi)
			r = cb((struct addr_range){t->index[i].lo, t->index[i].hi}, arg);
	return r;
}

struct line_unit *line_unit_at(struct line_table *t, uint64_t vaddr)
{
	size_t unit = line_table_unit_at(t, vaddr);

	return unit == SIZE_MAX ? NULL : &t->units[unit];
}

/* How many rows are at or below: of several at one address, the last is in force. */
static size_t rows_until(const struct line_unit *u, uint64_t vaddr)
{
	return search_front(u->n_rows, i, u->rows[i].addr <= vaddr);
}

int line_table_rows(struct line_table *t, uint64_t lo, uint64_t hi,
		    int (*cb)(struct addr_range r, const struct line_location *where, void *arg),
		    void *arg)
{
	struct line_unit *u = line_unit_at(t, lo);
	int r = 0;
	size_t i;

	if (!u || !line_unit_rows(t, u))
		return -ENOENT;
	i = rows_until(u, lo);
	if (i)
		i--;
	while (i && u->rows[i - 1].addr == lo)
		i--;
	for (; r == 0 && i + 1 < u->n_rows && u->rows[i].addr < hi; i++) {
		const struct line_row *row = &u->rows[i];
		struct line_location where = {.file = row->line ? t->files[row->file]->name : NULL,
					      .line = row->line};
		struct addr_range range = {row->addr < lo ? lo : row->addr,
					   row[1].addr > hi ? hi : row[1].addr};

		if (!row->end && range.hi >= range.lo)
			r = cb(range, row->line ? &where : NULL, arg);
	}
	return r;
}

int line_table_at(struct line_table *t, uint64_t vaddr, struct line_location *ret)
{
	struct line_unit *u = line_unit_at(t, vaddr);
	size_t lo;

	if (!u || !line_unit_rows(t, u))
		return -ENOENT;
	lo = rows_until(u, vaddr);
	if (!lo || u->rows[lo - 1].end || !u->rows[lo - 1].line)
		return -ENOENT;
	*ret = (struct line_location){.file = t->files[u->rows[lo - 1].file]->name,
				      .line = u->rows[lo - 1].line};
	return 0;
}

int range_list_add(struct range_list *l, uint64_t lo, uint64_t hi)
{
	if (l->n && l->all[l->n - 1].hi == lo) {
		l->all[l->n - 1].hi = hi;
		return 0;
	}
	return array_add(l->all, l->n, (struct addr_range){lo, hi});
}

size_t addr_ranges_merge(struct addr_range *all, size_t n)
{
	size_t used = 0;

	sort_array(all, n, compare_u64);
	for (size_t i = 0; i < n; i++) {
		struct addr_range r = all[i];

		if (r.hi <= r.lo)
			continue;
		if (used && all[used - 1].hi >= r.lo) {
			if (all[used - 1].hi < r.hi)
				all[used - 1].hi = r.hi;
		} else {
			all[used++] = r;
		}
	}
	return used;
}
