// SPDX-License-Identifier: BSD-2-Clause
/* Where code was inlined: the way from an address out of a function's inlined copies. */
#include "program/code/private.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A chain to be shown: more is cut, the innermost part is what tells. */
#define MAX_CALLS 24
#define MAX_TEXT 1024
/* Copies around one address to look at: no tree of entries is read deeper, so more of them only
 * overlap. */
#define MAX_AROUND 512
/* To show it is not worth reading a larger tree of entries. */
#define QUICK_TREE (4ULL << 20)

void inline_sweep_begin(struct inline_sweep *w, const struct code_map *m, struct line_table *t,
			uint64_t lo, uint64_t hi)
{
	*w = (struct inline_sweep){.m = m, .t = t};
	if (line_table_inlined(t, lo, hi, &w->all, &w->n) == 0)
		w->stack = xcalloc(w->n, sizeof(*w->stack));
}

void inline_sweep_end(struct inline_sweep *w)
{
	free(w->stack);
	w->stack = NULL;
}

/* The stack holds the copies around @addr, innermost on top; where a damaged file has them overlap,
 * some that are over below. */
static void advance(struct inline_sweep *w, uint64_t addr)
{
	for (; w->next < w->n && w->all[w->next].range.lo <= addr; w->next++) {
		while (w->depth &&
		       w->all[w->stack[w->depth - 1]].range.hi <= w->all[w->next].range.lo)
			w->depth--;
		w->stack[w->depth++] = w->next;
	}
	while (w->depth && w->all[w->stack[w->depth - 1]].range.hi <= addr)
		w->depth--;
}

bool inline_sweep_owner(struct inline_sweep *w, uint64_t addr, struct line_location *ret)
{
	advance(w, addr);
	for (size_t i = w->depth; i > 0 && w->depth - i < MAX_AROUND; i--) {
		const struct line_inlined *x = &w->all[w->stack[i - 1]];
		struct line_location call = line_inlined_call(w->t, x);

		if (x->range.hi <= addr || !call.file)
			continue;
		if (w->file != call.file) { /* calls follow each other in one file */
			w->file = call.file;
			w->file_in = code_map_has_source(w->m, w->file);
		}
		if (w->file_in) {
			*ret = call;
			return true;
		}
	}
	return false;
}

uint64_t inline_sweep_edge(struct inline_sweep *w, uint64_t addr)
{
	uint64_t edge = UINT64_MAX;

	advance(w, addr);
	if (w->next < w->n)
		edge = w->all[w->next].range.lo;
	if (w->depth && w->all[w->stack[w->depth - 1]].range.hi < edge)
		edge = w->all[w->stack[w->depth - 1]].range.hi;
	return edge;
}

static bool append(char *text, size_t *n, const struct line_location *where)
{
	int add = snprintf(text + *n, MAX_TEXT - *n, "%s%s:%u", *n ? "\t" : "", where->file,
			   where->line);

	if (add < 0 || (size_t)add >= MAX_TEXT - *n) {
		text[*n] = '\0';
		return false;
	}
	*n += (size_t)add;
	return true;
}

const char *code_inlined_text(struct code_map *m, struct code_object *o, uint64_t vaddr)
{
	struct line_location where, calls[MAX_CALLS];
	char text[MAX_TEXT];
	size_t n = 0, n_calls;

	if (!o->lines || line_table_at(o->lines, vaddr, &where) < 0)
		return NULL;
	n_calls = line_table_calls(o->lines, vaddr, QUICK_TREE, calls, MAX_CALLS);
	if (!n_calls || !append(text, &n, &where))
		return NULL;
	for (size_t i = 0; i < n_calls && append(text, &n, &calls[i]); i++)
		;
	return code_name_intern(m, text)->text;
}

size_t code_inlined_callers(struct code_map *m, struct code_object *o, uint64_t vaddr,
			    const char **ret, size_t max)
{
	struct line_location calls[MAX_CALLS];
	size_t n = 0,
	       n_calls = o->lines ? line_table_calls(o->lines, vaddr, UINT64_MAX, calls, MAX_CALLS)
				  : 0;

	for (size_t i = 0; i < n_calls && n < max; i++)
		if (code_map_has_source(m, calls[i].file))
			ret[n++] = code_line_name(m, &calls[i])->text;
	return n;
}
