// SPDX-License-Identifier: BSD-2-Clause
/* The functions of Go's programs, which have no call frame information that is loaded with them and
 * often no symbols, by Go's own table. */
#include "program/elf/go_table.h"
#include "program/elf/symbols_private.h"

#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

int go_add_extents(const struct elf_object *o)
{
	struct symbol_index *x = o->symbols;
	size_t n = go_table_count(x->go);
	struct cfi_extent *grown = reallocarray(x->extents, x->n_extents + n + 1, sizeof(*grown));
	struct go_function f;

	if (!grown)
		return -ENOMEM;
	x->extents = grown;
	for (size_t i = 0; i < n; i++)
		if (go_function_read(x->go, i, &f))
			x->extents[x->n_extents++] = (struct cfi_extent){.lo = f.lo, .hi = f.hi};
	return 0;
}

int go_add_symbols(const struct elf_object *o)
{
	struct symbol_index *x = o->symbols;
	size_t n = go_table_count(x->go), known = x->n;
	struct symbol *grown = reallocarray(x->all, known + n + 1, sizeof(*grown));
	struct go_function f;

	if (!grown)
		return -ENOMEM;
	x->all = grown;
	for (size_t i = 0; i < n; i++) {
		size_t at;

		if (!go_function_read(x->go, i, &f) || !f.name)
			continue;
		at = search_front(known, k, x->all[k].addr < f.lo);
		if (at == known || x->all[at].addr != f.lo)
			x->all[x->n++] = (struct symbol){.addr = f.lo,
							 .size = f.hi - f.lo,
							 .name = f.name,
							 .own = f.name,
							 .rank = 2,
							 .order = (uint32_t)i};
	}
	return 0;
}
