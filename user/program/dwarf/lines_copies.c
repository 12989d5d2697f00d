// SPDX-License-Identifier: BSD-2-Clause
/* Where the inlined copies of a function are, by its name. */
#include "program/dwarf/lines_private.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes of entries of all units: some seconds of work. */
#define MAX_ENTRIES (64ULL << 20)
#define MAX_COPIES (1U << 20)

struct copies {
	struct line_copy *all;
	size_t n;
};

static int by_entry(const void *pa, const void *pb)
{
	const struct line_copy *a = pa, *b = pb;

	return sort_order(a->entry, b->entry) ?: sort_order(a->range.lo, b->range.lo);
}

static int add_unit(struct line_table *t, struct line_unit *u, struct line_search *search,
		    struct copies *out)
{
	struct line_instances in = {0};
	int r = line_unit_files(t, u) ? line_instances_read(t, u, NULL, NULL, search, &in) : 0;

	for (size_t i = 0; r == 0 && i < in.n_ranges && out->n < MAX_COPIES; i++)
		r = array_add(out->all, out->n,
			      (struct line_copy){in.all[in.ranges[i].instance].entered,
						 {in.ranges[i].lo, in.ranges[i].hi}});
	line_instances_free(&in);
	return r;
}

static int add_all(struct line_table *t, struct line_search *search, struct copies *out)
{
	uint64_t size = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_units; i++) {
		size += line_unit_size(t, &t->units[i]);
		r = size > MAX_ENTRIES ? -EFBIG : add_unit(t, &t->units[i], search, out);
	}
	return r;
}

int line_copies_here(struct line_table *t, const char *name, struct line_copy **ret, size_t *ret_n)
{
	struct line_search search = {.name = name};
	struct copies out = {0};
	int r = add_all(t, &search, &out);

	/* Link-time optimisation has functions in other units than their copies, before or behind
	 * them. */
	search.over = true;
	if (r == 0 && !out.n && search.n)
		r = add_all(t, &search, &out);
	free(search.found);
	if (r == 0 && search.several)
		r = -ENOTUNIQ;
	if (r == 0 && !out.n)
		r = -ENOENT;
	if (r < 0) {
		free(out.all);
		return r;
	}
	sort_array(out.all, out.n, by_entry);
	*ret = out.all;
	*ret_n = out.n;
	return 0;
}

int line_table_copies(struct line_table *t, const char *name, struct line_copy **ret, size_t *ret_n)
{
	return t->readers->copies(t, name, ret, ret_n);
}
