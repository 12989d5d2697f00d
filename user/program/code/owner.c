// SPDX-License-Identifier: BSD-2-Clause
#include "program/code/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A symbol that claims more is not a function that anybody wrote. */
#define MAX_FUNCTION (16 << 20)

static int first_row(struct addr_range r, const struct line_location *where, void *arg)
{
	(void)r;
	if (where)
		*(struct line_location *)arg = *where;
	return where != NULL;
}

bool code_function_location(struct line_table *t, uint64_t entry, struct line_location *ret)
{
	return line_table_rows(t, entry, entry + 1, first_row, ret) > 0;
}

/* Is the source of a function that is entered at @vaddr out of scope? */
static bool begins_outside(const struct code_map *m, struct line_table *t, uint64_t vaddr,
			   struct line_location *ret)
{
	return code_function_location(t, vaddr, ret) && !code_map_has_source(m, ret->file);
}

static void take_out(struct code_object *o, struct addr_range r)
{
	if (r.lo < r.hi)
		xarray_add(o->cuts, o->n_cuts, r);
}

struct code_name *code_line_name(struct code_map *m, const struct line_location *where)
{
	_cleanup_free_ char *text = xasprintf("%s:%u", where->file, where->line);

	return code_name_intern(m, text);
}

/* A function whose rows are gone through. */
struct walk {
	struct code_map *m;
	size_t object;
	bool outside;		   /* the function itself */
	struct line_location last; /* in scope; line 0: none yet */
	struct addr_range inlined; /* code of one owner that is not filed yet */
	struct line_location owner;
	const char *file; /* looked at last: rows of one file follow each other, and one spelling is
			     one address */
	bool file_in;
	struct inline_sweep inlining;
};

static void add_inlined(struct code_object *o, struct addr_range r, const char *line)
{
	size_t n = o->n_inlined + o->n_added++;

	xarray_add(o->inlined, n, (struct code_inlined){r, line});
}

/* Puts what was added in its place. */
static void place_added(struct code_object *o)
{
	size_t old = o->n_inlined, n = o->n_added;
	_cleanup_free_ struct code_inlined *added =
		n ? xmemdup(o->inlined + old, n, sizeof(*added)) : NULL;

	o->n_added = 0;
	o->n_inlined += n;
	while (n) {
		bool behind = old && o->inlined[old - 1].range.lo > added[n - 1].range.lo;
		struct code_inlined *to = &o->inlined[old + n - 1];

		*to = behind ? o->inlined[--old] : added[--n];
	}
}

static void file_inlined(struct walk *w)
{
	struct code_object *o = w->m->objects[w->object];
	struct code_name *owner = NULL;
	struct addr_range r = w->inlined;

	w->inlined = (struct addr_range){0};
	if (r.lo == r.hi)
		return;
	if (w->outside)
		take_out(o, r);
	if (w->owner.line) {
		owner = code_line_name(w->m, &w->owner);
		code_name_add(owner, w->object, r);
	}
	add_inlined(o, r, owner ? owner->text : NULL);
}

/* Code of one owner that goes on where the last such code ended is one with it. */
static void add_piece(struct walk *w, struct addr_range r, struct line_location owner)
{
	if (w->inlined.hi != r.lo || w->owner.file != owner.file || w->owner.line != owner.line) {
		file_inlined(w);
		w->inlined.lo = r.lo;
		w->owner = owner;
	}
	w->inlined.hi = r.hi;
}

static int walk_row(struct addr_range r, const struct line_location *where, void *arg)
{
	struct walk *w = arg;

	if (where && w->file != where->file) {
		w->file = where->file;
		w->file_in = code_map_has_source(w->m, where->file);
	}
	if (where && w->file_in)
		w->last = *where;
	if (r.lo == r.hi)
		return 0;
	if (where ? w->file_in : !w->outside) {
		file_inlined(w);
		return 0;
	}
	while (r.lo < r.hi) {
		uint64_t edge = inline_sweep_edge(&w->inlining, r.lo),
			 hi = edge < r.hi ? edge : r.hi;
		struct line_location owner = {0};

		if (!inline_sweep_owner(&w->inlining, r.lo, &owner) && !w->outside)
			owner = w->last;
		add_piece(w, (struct addr_range){r.lo, hi}, owner);
		r.lo = hi;
	}
	return 0;
}

/* How many entries begin at or below @vaddr. */
static size_t inlined_until(const struct code_object *o, uint64_t vaddr)
{
	return search_front(o->n_inlined, i, o->inlined[i].range.lo <= vaddr);
}

static const struct code_inlined *find_inlined(const struct code_object *o, uint64_t vaddr)
{
	size_t n = inlined_until(o, vaddr);

	return n && vaddr < o->inlined[n - 1].range.hi ? &o->inlined[n - 1] : NULL;
}

/* Goes through the function around @vaddr, as far as the next code that is known. Only in a damaged
 * file there is any: functions that lie over each other would have the same rows gone through and
 * the same code filed for each of them. */
static int walk_function(struct code_map *m, size_t object, const struct elf_symbol *s,
			 uint64_t vaddr, bool outside)
{
	struct walk w = {.m = m, .object = object, .outside = outside};
	const struct code_object *o = m->objects[object];
	size_t next = inlined_until(o, vaddr);
	uint64_t lo = s->addr, hi = s->addr + s->size;
	int r;

	if (next && o->inlined[next - 1].range.hi > lo)
		lo = o->inlined[next - 1].range.hi;
	if (next < o->n_inlined && o->inlined[next].range.lo < hi)
		hi = o->inlined[next].range.lo;
	/* The rows of a function are those of the unit that it begins in. */
	if (lo >= hi || line_table_unit_at(o->lines, lo) != line_table_unit_at(o->lines, s->addr))
		return 0;
	inline_sweep_begin(&w.inlining, m, o->lines, lo, hi);
	r = line_table_rows(o->lines, lo, hi, walk_row, &w);
	if (r == 0)
		file_inlined(&w);
	inline_sweep_end(&w.inlining);
	return r;
}

/* Finds what is inlined in the function around @vaddr, once: that is all its code of files out of
 * scope. */
static int read_function(struct code_map *m, size_t object, uint64_t vaddr)
{
	struct code_object *o = m->objects[object];
	struct line_location entry;
	struct elf_symbol s;
	int r;

	if (elf_object_function_at(o->elf, vaddr, &s) < 0 || s.size > MAX_FUNCTION ||
	    line_table_unit_at(o->lines, s.addr) != line_table_unit_at(o->lines, vaddr))
		return 0;
	r = walk_function(m, object, &s, vaddr, begins_outside(m, o->lines, s.addr, &entry));
	place_added(o);
	return r;
}

/* The function that begins at @at or, behind what fills up to a multiple of 16, a little later. */
static bool next_function(const struct elf_object *elf, uint64_t at, uint64_t end,
			  struct elf_symbol *ret)
{
	for (int i = 0; i < 4 && at < end; i++, at = (at | 15) + 1)
		if (elf_object_function_at(elf, at, ret) == 0 && ret->addr + ret->size > at)
			return true;
	return false;
}

struct reading {
	struct code_map *m;
	size_t object;
	uint64_t done; /* where the last function ends: it may have any number of ranges */
};

/* Code of no line (line 0) is its caller's: it has no name of its own by which it could be tried.
 */
static int cut_nameless(struct addr_range r, const struct line_location *where, void *arg)
{
	if (!where)
		take_out(arg, r);
	return 0;
}

static int read_range(struct addr_range range, void *arg)
{
	struct reading *u = arg;
	struct code_object *o = u->m->objects[u->object];
	struct line_location entry;
	struct elf_symbol s;

	(void)line_table_rows(o->lines, range.lo, range.hi, cut_nameless, o);
	if (u->done < range.lo)
		u->done = range.lo;
	for (; next_function(o->elf, u->done, range.hi, &s); u->done = s.addr + s.size) {
		int r = 0;

		/* One that begins before is another range's, or another unit's. A part that was
		 * split off begins anywhere. */
		if (s.addr >= u->done && s.size <= MAX_FUNCTION && !strcmp(s.name, s.function) &&
		    begins_outside(u->m, o->lines, s.addr, &entry))
			r = walk_function(u->m, u->object, &s, s.addr, true);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

/* A unit that is asked for the first time says which of its functions are out of scope: one sample
 * for all of them, instead of one for each, which nobody gets. */
static int read_unit(struct code_map *m, size_t object, uint64_t vaddr)
{
	struct code_object *o = m->objects[object];
	size_t unit = line_table_unit_at(o->lines, vaddr);
	struct reading u = {.m = m, .object = object};
	int r;

	if (!o->units_read)
		o->units_read = xcalloc(line_table_units(o->lines), sizeof(*o->units_read));
	if (unit == SIZE_MAX || o->units_read[unit])
		return 0;
	o->units_read[unit] = true;
	m->n_learned++;
	r = line_table_unit_ranges(o->lines, unit, read_range, &u);
	place_added(o);
	return r;
}

int code_owner_line(struct code_map *m, size_t object, uint64_t vaddr, const char **ret)
{
	struct code_object *o = m->objects[object];
	const struct code_inlined *in;
	struct line_location line;
	bool has_line = line_table_at(o->lines, vaddr, &line) == 0;
	int r = 0;

	if (read_unit(m, object, vaddr) < 0)
		return -ENOMEM;
	if (!has_line)
		return -ENOENT;
	if (code_map_has_source(m, line.file)) {
		*ret = code_line_name(m, &line)->text;
		return 0;
	}
	in = find_inlined(o, vaddr);
	if (!in)
		r = read_function(m, object, vaddr);
	if (r < 0)
		return r;
	in = find_inlined(o, vaddr);
	if (!in || !in->line)
		return -ENOENT;
	*ret = in->line;
	return 0;
}

const char *code_map_source_out_of_scope(const struct code_map *m, const struct code_listed *o,
					 uint64_t vaddr)
{
	struct line_location entry;

	return o->lines && begins_outside(m, o->lines, vaddr, &entry) ? entry.file : NULL;
}

bool code_owner_function(struct code_map *m, struct code_object *o, const struct elf_symbol *s)
{
	struct code_listed listed = {.lines = code_object_lines(o, NULL)};

	if (!code_map_source_out_of_scope(m, &listed, s->addr))
		return true;
	take_out(o, (struct addr_range){s->addr, s->addr + s->size});
	m->n_learned++;
	return false;
}
