// SPDX-License-Identifier: BSD-2-Clause
/* An object's unwinding table with the scope written into it, as BPF searches it. */
#include "program/code/private.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/elf/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The places where the scope begins or ends, in the object's own addresses, and how it is before
 * the first. */
struct edges {
	const struct addr_range *ranges;
	size_t n, next;
	uint64_t base;
	bool in;
};

static struct edges edges_of(const struct code_map *m, struct code_object *o)
{
	bool by_function = o->in_scope && code_object_by_function(m, o),
	     by_range = o->in_scope && !by_function;

	return (struct edges){
		.ranges = o->ranges,
		.n = by_range ? 2 * o->n_ranges : 0,
		.base = o->rows_base,
		.in = by_function,
	};
}

/* Of the next edge, relative to the base; more than any pc if there is none. */
static uint64_t edge_at(const struct edges *x)
{
	const struct addr_range *r;
	uint64_t addr;

	if (x->next == x->n)
		return UINT64_MAX;
	r = &x->ranges[x->next / 2];
	addr = x->next % 2 ? r->hi : r->lo;
	return addr > x->base ? addr - x->base : 0;
}

static void put(struct code_object *o, struct abi_row row, uint64_t pc, bool in)
{
	const struct abi_row *last = o->n_rows ? &o->rows[o->n_rows - 1] : NULL;

	row.pc = (unsigned int)pc;
	if (!in)
		row.kind = (unsigned char)(row.kind & ~ABI_ROW_IN_SCOPE);
	if (last && last->kind == row.kind && last->cfa_offset == row.cfa_offset &&
	    last->rbp_slot == row.rbp_slot)
		return;
	o->rows[o->n_rows++] = row;
}

/* Each row, cut where the scope begins or ends: a row is in it if it was and the edges say so too.
 */
static void split(struct code_object *o, const struct abi_row *rows, size_t n, struct edges x)
{
	o->rows = xcalloc(n + x.n + 1, sizeof(*o->rows));
	o->n_rows = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t pc = rows[i].pc, end = i + 1 < n ? rows[i + 1].pc : 1ULL << 32;

		for (; edge_at(&x) <= pc; x.next++)
			x.in = !x.in;
		put(o, rows[i], pc, x.in);
		for (uint64_t at; (at = edge_at(&x)) < end; x.next++) {
			x.in = !x.in;
			put(o, rows[i], at, x.in);
		}
	}
	o->rows_new = true;
}

int code_rows_read(struct code_map *m, struct code_object *o, const struct elf_object *elf)
{
	struct abi_row nothing = {.kind = ABI_ROW_NONE};
	struct cfi_table none = {.base = elf_object_code_base(elf), .rows = &nothing, .n = 1}, t;
	struct error e = {.text = ""};
	int r;

	if (o->rows_tried)
		return 0;
	o->rows_tried = true;
	r = cfi_table_read(elf, ABI_MAX_ROWS, &t, &e);
	if (r == -ENOMEM)
		return r;
	if (r < 0 && r != -ENODATA && !m->n_without_rows++)
		m->rows_error = e;
	o->rows_base = none.base;
	if (r < 0)
		t = none;
	for (size_t i = 0; i < t.n; i++)
		t.rows[i].kind = (unsigned char)(t.rows[i].kind | ABI_ROW_IN_SCOPE |
						 (o->is_python ? ABI_ROW_PYTHON : 0));
	split(o, t.rows, t.n, edges_of(m, o));
	if (r >= 0)
		cfi_table_free(&t);
	return 0;
}

void code_rows_cut(struct code_object *o, bool *ret_changed)
{
	struct abi_row *old = o->rows;
	struct edges x = {.ranges = o->cuts, .base = o->rows_base, .in = true};
	size_t n = o->n_rows;
	bool was_new = o->rows_new;

	if (!o->n_cuts || !old)
		return;
	o->n_cuts = addr_ranges_merge(o->cuts, o->n_cuts);
	x.n = 2 * o->n_cuts;
	split(o, old, n, x);
	if (n == o->n_rows && !memcmp(old, o->rows, n * sizeof(*old)))
		o->rows_new = was_new;
	else
		*ret_changed = true;
	free(old);
	free(o->cuts);
	o->cuts = NULL;
	o->n_cuts = 0;
}
