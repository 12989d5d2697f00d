// SPDX-License-Identifier: BSD-2-Clause
/* A function of which nothing is left but its inlined copies: where these are entered. */
#include "points/point_find.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "program/dwarf/lines.h"
#include "program/elf/code.h"
#include "program/elf/object.h"

#include <errno.h>

/* Does something in the range jump to the copy's entry? Then it is passed once for each round of a
 * loop. */
static bool goes_back(const struct elf_object *o, const struct line_copy *copy)
{
	_cleanup_(code_close) struct code c = {0};
	struct code_instruction i;

	if (code_open(o, copy->range.lo, copy->range.hi - copy->range.lo, &c) < 0)
		return true;
	while (code_next(&c, &i))
		if (i.direct && i.target == copy->entry && i.flow != CODE_CALL)
			return true;
	return false;
}

int point_find_inlined(const struct elf_object *o, struct line_table *lines,
		       const struct point_spec *p, uint64_t **ret, size_t *ret_n, struct error *e)
{
	_cleanup_free_ struct line_copy *all = NULL;
	_cleanup_free_ uint64_t *entries = NULL;
	size_t n = 0, found = 0;
	int r = lines ? line_table_copies(lines, p->function, &all, &n) : -ENOENT;

	if (r == -ENOTUNIQ)
		return fail(e, ENOTUNIQ,
			    "several functions called %s were inlined; use FILE:LINE of one",
			    p->function);
	if (r < 0)
		return r == -ENOMEM ? fail(e, ENOMEM, "out of memory") : -ENOENT;
	if (p->at_return || p->exact || p->offset)
		return fail(e, ENOTSUP,
			    "%s was inlined: its copies have no returns, arguments and offsets of "
			    "their own; use FILE:LINE",
			    p->function);
	entries = xcalloc(n, sizeof(*entries));
	for (size_t i = 0; i < n; i++) {
		if (goes_back(o, &all[i]))
			return fail(
				e, ENOTSUP,
				"%s was inlined, and its copy at 0x%llx begins with a loop, each "
				"round of which would count; use FILE:LINE of its call",
				p->function, (unsigned long long)all[i].entry);
		if (!found || entries[found - 1] != all[i].entry)
			entries[found++] = all[i].entry;
	}
	*ret = TAKE_PTR(entries);
	*ret_n = found;
	return 0;
}
