// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/counted.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <stdlib.h>

struct certain {
	const struct flow *f;
	bool *sure;	 /* of each instruction: that it is one */
	uint32_t *stack; /* blocks whose begin is sure, to go on from */
	size_t depth;
};

/* Does the CPU go on to the next instruction, or to a target in the code, for certain? */
static bool comes_back(const struct code_instruction *i)
{
	return i->flow != CODE_CALL && i->flow != CODE_KERNEL && i->flow != CODE_STOP;
}

/* From an instruction of @block that surely is one, to where the CPU goes on by itself. */
static void go_on(struct certain *x, uint32_t block, uint32_t i)
{
	const struct flow_block *b = &x->f->blocks[block];

	for (; i < b->first + b->n; i++) {
		if (x->sure[i])
			return;
		x->sure[i] = true;
		if (!comes_back(&x->f->all[i]))
			return;
	}
	for (uint32_t k = b->out; k < b->out + b->n_out; k++) {
		const struct flow_edge *e = &x->f->edges[k];

		if ((e->kind == FLOW_FALL || e->kind == FLOW_TAKEN) && e->to < x->f->n_blocks &&
		    !x->sure[x->f->blocks[e->to].first])
			x->stack[x->depth++] = e->to;
	}
}

static void follow(struct certain *x, uint32_t block, uint32_t i)
{
	go_on(x, block, i);
	while (x->depth) {
		block = x->stack[--x->depth];
		go_on(x, block, x->f->blocks[block].first);
	}
}

/* The cheapest instruction of each class; SIZE_MAX: it has none. */
static void choose(const struct certain *x, const struct classes *c, size_t *best)
{
	const struct flow *f = x->f;

	for (uint32_t b = 0; b < f->n_blocks; b++) {
		size_t *at = c->blocks[b] == CLASS_NONE ? NULL : &best[c->blocks[b]];

		if (!at)
			continue;
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].first + f->blocks[b].n; i++)
			if (x->sure[i] && f->all[i].cost < CODE_NOP5 &&
			    (*at == SIZE_MAX || f->all[i].cost < f->all[*at].cost))
				*at = i;
	}
}

void counted_places(const struct flow *f, const struct classes *c, const double *found, bool begins,
		    struct counted_place **ret, size_t *ret_n)
{
	/* An edge puts its block there once at most. */
	_cleanup_free_ uint32_t *stack = xcalloc(f->n_edges, sizeof(*stack));
	_cleanup_free_ bool *sure = xcalloc(f->n, sizeof(*sure));
	_cleanup_free_ size_t *best = xcalloc(c->n, sizeof(*best));
	struct certain x = {.f = f, .sure = sure, .stack = stack};
	struct counted_place *all = NULL;
	size_t n = 0;

	for (uint32_t b = 0; b < f->n_blocks; b++)
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].first + f->blocks[b].n; i++)
			if (found[i] > 0 || (i == 0 && begins))
				follow(&x, b, i);
	for (uint32_t k = 0; k < c->n; k++)
		best[k] = SIZE_MAX;
	choose(&x, c, best);
	for (uint32_t k = 0; k < c->n; k++)
		if (best[k] != SIZE_MAX)
			xarray_add(all, n, (struct counted_place){f->all[best[k]].at, k});
	*ret = all;
	*ret_n = n;
}
