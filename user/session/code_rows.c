// SPDX-License-Identifier: BSD-2-Clause
/* An object's unwinding table with the scope written into it, as BPF searches it. */
#include "session/code_map_private.h"

#include "base/error.h"
#include "elf/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)ABI_ROW_NONE == (int)CFI_NONE && (int)ABI_ROW_RSP == (int)CFI_RSP && (int)ABI_ROW_RBP == (int)CFI_RBP &&
		       (int)ABI_ROW_PLT == (int)CFI_PLT && (int)ABI_ROW_SIGNAL == (int)CFI_SIGNAL && (int)ABI_ROW_END == (int)CFI_END,
	       "kinds are copied");

/* The places where the scope begins or ends, in the object's own addresses, and how it is before the first. */
struct edges {
	const struct addr_range *ranges;
	size_t n, next;
	uint64_t base;
	bool in;
};

static struct edges edges_of(const struct code_map *m, const struct code_object *o, uint64_t base)
{
	bool by_range = o->in_scope && !m->functions;

	return (struct edges){
		.ranges = o->ranges,
		.n = by_range ? 2 * o->n_ranges : 0,
		.base = base,
		.in = o->in_scope && m->functions,
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

static void put(struct code_object *o, const struct cfi_row *row, uint64_t pc, bool in)
{
	struct abi_row x = {
		.pc = (unsigned int)pc,
		.cfa_offset = row->cfa_offset,
		.rbp_slot = row->rbp_slot,
		.kind = (unsigned char)(row->kind | (in ? ABI_ROW_IN_SCOPE : 0)),
	};
	const struct abi_row *last = o->n_rows ? &o->rows[o->n_rows - 1] : NULL;

	if (last && last->kind == x.kind && last->cfa_offset == x.cfa_offset && last->rbp_slot == x.rbp_slot)
		return;
	o->rows[o->n_rows++] = x;
}

/* Each row, cut where the scope begins or ends. */
static int split(const struct code_map *m, struct code_object *o, const struct cfi_table *t)
{
	struct edges x = edges_of(m, o, t->base);

	o->rows = calloc(t->n + x.n, sizeof(*o->rows));
	if (!o->rows)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		uint64_t pc = t->rows[i].pc, end = i + 1 < t->n ? t->rows[i + 1].pc : 1ULL << 32;

		for (; edge_at(&x) <= pc; x.next++)
			x.in = !x.in;
		put(o, &t->rows[i], pc, x.in);
		for (uint64_t at; (at = edge_at(&x)) < end; x.next++) {
			x.in = !x.in;
			put(o, &t->rows[i], at, x.in);
		}
	}
	return 0;
}

int code_rows_read(struct code_map *m, struct code_object *o, const struct elf_object *elf)
{
	struct cfi_row nothing = {.kind = CFI_NONE};
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
		return split(m, o, &none);
	r = split(m, o, &t);
	cfi_table_free(&t);
	return r;
}
