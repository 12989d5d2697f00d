// SPDX-License-Identifier: BSD-2-Clause
/* Which code was inlined, and where: from the entries of inlined copies, which say the file and
 * line of their call. */
#include "program/dwarf/lines_private.h"

#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_INLINED (1U << 21)
/* How many copies before an address may have to be looked at for those around it: deep nesting, or
 * a hostile file. */
#define MAX_BACK 4096

bool line_unit_inlined_here(struct line_table *t, struct line_unit *u, uint64_t most)
{
	struct line_instances in = {0};

	if (line_unit_size(t, u) > most)
		return false;
	u->inlined_state = UNIT_BAD;
	if (!(t->go ? line_unit_rows(t, u) : line_unit_files(t, u)) ||
	    line_unit_size(t, u) > LINE_MAX_TREE ||
	    line_instances_read(t, u, NULL, NULL, NULL, &in) < 0)
		return false;
	u->inlined =
		in.n_ranges <= MAX_INLINED ? calloc(in.n_ranges + 1, sizeof(*u->inlined)) : NULL;
	for (size_t i = 0; u->inlined && i < in.n_ranges; i++) {
		const struct instance_range *r = &in.ranges[i];
		const struct line_instance *copy = &in.all[r->instance];

		if (copy->inlined)
			u->inlined[u->n_inlined++] = (struct line_inlined){
				{r->lo, r->hi}, copy->call_file, copy->call_line};
	}
	line_instances_free(&in);
	if (u->inlined)
		u->inlined_state = UNIT_READ;
	return u->inlined;
}

bool line_unit_inlined(struct line_table *t, struct line_unit *u, uint64_t most)
{
	return u->inlined_state == UNIT_UNREAD ? t->readers->inlined(t, u, most)
					       : u->inlined_state == UNIT_READ;
}

struct line_location line_inlined_call(const struct line_table *t, const struct line_inlined *x)
{
	return (struct line_location){x->file == NO_FILE ? NULL : t->files[x->file]->name, x->line};
}

static size_t first_from(const struct line_unit *u, uint64_t addr)
{
	return search_front(u->n_inlined, i, u->inlined[i].range.lo < addr);
}

int line_table_inlined(struct line_table *t, uint64_t lo, uint64_t hi,
		       const struct line_inlined **ret, size_t *ret_n)
{
	struct line_unit *u = line_unit_at(t, lo);
	size_t first;

	if (!u || !line_unit_inlined(t, u, UINT64_MAX))
		return -ENOENT;
	first = first_from(u, lo);
	*ret = u->inlined + first;
	*ret_n = first_from(u, hi) - first;
	return 0;
}

size_t line_table_calls(struct line_table *t, uint64_t vaddr, uint64_t most,
			struct line_location *ret, size_t max)
{
	struct line_unit *u = line_unit_at(t, vaddr);
	size_t n = 0, at;

	if (!u || !line_unit_inlined(t, u, most))
		return 0;
	at = first_from(u, vaddr + 1);
	for (size_t i = at; i > 0 && at - i < MAX_BACK && n < max; i--)
		if (vaddr < u->inlined[i - 1].range.hi && u->inlined[i - 1].file != NO_FILE)
			ret[n++] = line_inlined_call(t, &u->inlined[i - 1]);
	return n;
}

int line_table_called(struct line_table *t, const char *file, uint32_t line,
		      struct addr_range **ret, size_t *ret_n)
{
	_cleanup_(file_filter_free) struct file_filter f = file_filter_named(t, file);
	struct range_list out = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && line && i < t->n_units; i++) {
		struct line_unit *u = &t->units[i];

		if (u->rows_state != UNIT_READ || !file_filter_unit(&f, u) ||
		    !line_unit_inlined(t, u, UINT64_MAX))
			continue;
		for (size_t k = 0; r == 0 && k < u->n_inlined; k++)
			if (u->inlined[k].line == line && u->inlined[k].file != NO_FILE &&
			    file_filter_wants(&f, u->inlined[k].file))
				r = range_list_add(&out, u->inlined[k].range.lo,
						   u->inlined[k].range.hi);
	}
	return range_list_finish(&out, r, ret, ret_n);
}
