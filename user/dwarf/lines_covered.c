// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/lines_private.h"

#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

int line_table_covered(const struct line_table *t, struct addr_range **ret, size_t *ret_n)
{
	struct range_list out = {0};

	for (size_t i = 0; i < t->n_index; i++)
		if (range_list_add(&out, t->index[i].lo, t->index[i].hi) < 0) {
			free(out.all);
			return -ENOMEM;
		}
	out.n = addr_ranges_merge(out.all, out.n);
	*ret = out.all;
	*ret_n = out.n;
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

int line_table_unit_ranges(const struct line_table *t, size_t unit, int (*cb)(struct addr_range r, void *arg), void *arg)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_index; i++)
		if (t->index[i].unit == unit && t->index[i].lo < t->index[i].hi)
			r = cb((struct addr_range){t->index[i].lo, t->index[i].hi}, arg);
	return r;
}
