// SPDX-License-Identifier: BSD-2-Clause
/* Finds the units of a file and what they cover. Opening a table costs the units' roots and no
 * more: not through libdwarf, which would read the whole of .debug_info first. */
#include "program/dwarf/lines_private.h"
#include "program/elf/go_table.h"
#include "program/elf/object_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <libdwarf/dwarf.h>

/* While the units are being listed: one entry a compilation unit. */
struct listing {
	struct line_table *t;
	struct found {
		uint64_t program, at;
		size_t unit; /* its number, once they have one */
		bool covers; /* it says itself which addresses it has */
	} * found;
	size_t n;
	uint64_t ranges_left;
};

/* Addresses of discarded code are 0, 1 or near the top, by linker: none of them is in a code
 * segment. Until the units are numbered a range's unit is the place of its entry in the listing. */
static int add_range(uint64_t lo, uint64_t hi, void *arg)
{
	struct listing *l = arg;
	struct line_table *t = l->t;
	uint64_t left = elf_object_code_left(t->object, lo);

	if (!lo || !left || hi <= lo)
		return 0;
	if (hi - lo > left)
		hi = lo + left;
	return array_add(t->index, t->n_index,
			 (struct unit_range){.lo = lo, .hi = hi, .unit = l->n - 1});
}

static int add_unit(struct listing *l, const struct debug_unit *u, const struct debug_root *root)
{
	size_t before = l->t->n_index;
	struct debug_range_source source;
	int r;

	if (!root->values[ROOT_PROGRAM].form)
		return 0;
	if (array_add(l->found, l->n,
		      (struct found){.program = root->values[ROOT_PROGRAM].v, .at = u->at}) < 0)
		return -ENOMEM;
	debug_range_source_init(&source, l->t->debug, u, root, &l->ranges_left);
	r = debug_ranges(&source, root->values[ROOT_LOW], root->values[ROOT_HIGH],
			 root->values[ROOT_RANGES], add_range, l);
	l->found[l->n - 1].covers = l->t->n_index > before;
	return r;
}

static int list_units(struct listing *l)
{
	struct line_table *t = l->t;
	uint64_t size = t->debug->sections[DEBUG_INFO].size;
	struct debug_unit u;
	struct debug_root root;
	int r = 0;

	for (uint64_t at = 0; r == 0 && at < size; at = u.end) {
		/* There is no way to the units behind it. */
		if (!debug_unit_read(t->debug, at, &u)) {
			line_table_warn(t,
					"%s: damaged debug information (unit at 0x%llx); lines of "
					"the units behind it are missing",
					t->debug->path, (unsigned long long)at);
			return 0;
		}
		if (u.kind == DW_UT_type || u.kind == DW_UT_split_type || u.root == u.end)
			continue;
		if (debug_root_read(&t->roots, &u, &root))
			r = add_unit(l, &u, &root);
		else
			line_table_warn(t,
					"%s: damaged debug information (unit at 0x%llx); its lines "
					"are missing",
					t->debug->path, (unsigned long long)at);
	}
	return r;
}

/* Files under the entry of the unit at @at, if that does not say itself what it covers. */
static int add_arange(struct listing *l, size_t total, uint64_t at, uint64_t start, uint64_t length)
{
	size_t lo = search_front(total, i, l->found[i].at < at); /* the listing is in file order */
	int r = 0;

	if (lo == total || l->found[lo].at != at || l->found[lo].covers)
		return 0;
	l->n = lo + 1; /* add_range files under the last one */
	r = add_range(start, start + length, l);
	l->n = total;
	return r;
}

/* Units that do not say which code they have (old assemblers and split debug information) may be in
 * .debug_aranges. */
static int add_aranges(struct listing *l)
{
	size_t size, k;
	const unsigned char *all;
	struct reader r;
	int result = 0;

	for (k = 0; k < l->n && l->found[k].covers; k++)
		;
	if (k == l->n)
		return 0;
	all = debug_section_bytes(&l->t->debug->sections[DEBUG_ARANGES], &size);
	if (!all)
		return 0;
	r = (struct reader){.at = all, .end = all + size};
	while (r.at < r.end) {
		const unsigned char *start = r.at, *end;
		unsigned int word;
		uint64_t length = debug_length(&r, &word), at, pair[2];

		if (r.bad || length > (uint64_t)(r.end - r.at))
			return 0;
		end = r.at + length;
		(void)fixed(&r, 2);
		at = fixed(&r, word);
		if (fixed(&r, 1) != 8 || fixed(&r, 1) != 0 || r.bad)
			return 0;
		r.at = start + (((size_t)(r.at - start) + 15) &
				~15UL); /* to a multiple of a pair from the header on */
		for (; r.at < end && end - r.at >= 16; r.at += 16) {
			memcpy(pair, r.at, 16);
			if (pair[1] && (result = add_arange(l, l->n, at, pair[0], pair[1])) < 0)
				return result;
		}
		r.at = end;
	}
	return 0;
}

/* Go's functions, each under its package. */
static int list_functions(struct listing *l)
{
	const struct go_table *go = l->t->go;
	struct go_function f;
	int r = 0;

	for (size_t i = 0; r == 0 && i < go_table_count(go); i++) {
		if (!go_function_read(go, i, &f) || !f.lines)
			continue;
		r = array_add(l->found, l->n, (struct found){.program = f.unit, .at = i});
		if (r == 0)
			r = add_range(f.lo, f.hi, l);
	}
	return r;
}

static int by_program(const void *pa, const void *pb)
{
	const struct found *const *a = pa, *const *b = pb;

	return sort_order((*a)->program, (*b)->program) ?: sort_order((*a)->at, (*b)->at);
}

static int by_lo(const void *pa, const void *pb)
{
	const struct unit_range *a = pa, *b = pb;

	return sort_order(a->lo, b->lo) ?: sort_order(a->hi, b->hi);
}

/* One unit a line program; the ranges' units become their numbers. */
static int number_units(struct listing *l)
{
	struct line_table *t = l->t;
	_cleanup_free_ struct found **sorted = reallocarray(NULL, l->n, sizeof(*sorted));

	t->units = calloc(l->n, sizeof(*t->units));
	t->dies = calloc(l->n, sizeof(*t->dies));
	if (!sorted || !t->units || !t->dies)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++)
		sorted[i] = &l->found[i];
	qsort(sorted, l->n, sizeof(*sorted), by_program);
	for (size_t i = 0; i < l->n; i++) {
		if (i == 0 || sorted[i]->program != sorted[i - 1]->program)
			t->units[t->n_units++] = (struct line_unit){.program = sorted[i]->program,
								    .dies = &t->dies[i]};
		t->dies[i] = sorted[i]->at;
		t->units[t->n_units - 1].n_dies++;
		sorted[i]->unit = t->n_units - 1;
	}
	for (size_t i = 0; i < t->n_index; i++)
		t->index[i].unit = l->found[t->index[i].unit].unit;
	sort_array(t->index, t->n_index, by_lo);
	for (size_t i = 0; i + 1 < t->n_index;
	     i++) /* no compiler lets them overlap; a search needs that they do not */
		if (t->index[i].hi > t->index[i + 1].lo)
			t->index[i].hi = t->index[i + 1].lo;
	return 0;
}

int line_units_open(struct line_table *t)
{
	struct listing l = {.t = t, .ranges_left = debug_range_budget(t->debug)};
	int r;

	t->roots.file = t->debug;
	r = t->go ? list_functions(&l) : list_units(&l);
	if (r == 0 && !t->go)
		r = add_aranges(&l);
	if (r == 0 && l.n)
		r = number_units(&l);
	free(l.found);
	return r < 0 ? r : t->n_index ? 0 : -ENODATA;
}
