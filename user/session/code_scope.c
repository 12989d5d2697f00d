// SPDX-License-Identifier: BSD-2-Clause
#include "session/code_map_private.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

int globs_copy(struct globs *g, const char *const *all, size_t n)
{
	g->all = calloc(n + 1, sizeof(*g->all));
	if (!g->all)
		return -ENOMEM;
	for (; g->n < n; g->n++) {
		g->all[g->n] = strdup(all[g->n]);
		if (!g->all[g->n])
			return -ENOMEM;
		g->n_includes += *all[g->n] != '!';
	}
	return 0;
}

void globs_free(struct globs *g)
{
	for (size_t i = 0; i < g->n; i++)
		free(g->all[i]);
	free(g->all);
}

static bool binary_glob(const char *glob, const struct code_object *o)
{
	const char *base = strrchr(o->entry.path, '/');

	if (o->is_main && !strcmp(glob, "MAIN"))
		return true;
	return !fnmatch(glob, o->entry.path, 0) || (base && !fnmatch(glob, base + 1, 0));
}

/* What is written may begin at any directory of the name. */
static bool source_glob(const char *glob, const char *file)
{
	if (!fnmatch(glob, file, 0))
		return true;
	for (const char *s = strchr(file, '/'); s; s = strchr(s + 1, '/'))
		if (!fnmatch(glob, s + 1, 0))
			return true;
	return false;
}

bool code_scope_binary(const struct code_map *m, const struct code_object *o)
{
	bool in = m->binaries.n_includes ? false : o->is_main;

	for (size_t i = 0; i < m->binaries.n; i++) {
		const char *glob = m->binaries.all[i];

		if (*glob != '!')
			in |= binary_glob(glob, o);
		else if (binary_glob(glob + 1, o))
			return false;
	}
	return in;
}

bool code_scope_source(const struct code_map *m, const char *file)
{
	bool in = !m->sources.n_includes;

	for (size_t i = 0; i < m->sources.n; i++) {
		const char *glob = m->sources.all[i];

		if (*glob != '!')
			in |= source_glob(glob, file);
		else if (source_glob(glob + 1, file))
			return false;
	}
	return in;
}

static bool wanted(const char *file, void *m)
{
	return code_scope_source(m, file);
}

static bool unwanted(const char *file, void *m)
{
	return !code_scope_source(m, file);
}

/* With includes the object's ranges are those of their lines. With excludes alone they are what to take out: code without line
 * information stays in scope. */
int code_scope_read(struct code_map *m, struct code_object *o)
{
	struct line_table *lines;
	int r;

	if (o->scope_tried || m->functions || !m->sources.n)
		return 0;
	o->scope_tried = true;
	lines = code_object_lines(o, NULL);
	if (!lines)
		return 0;
	r = line_table_scope(lines, m->sources.n_includes ? wanted : unwanted, m, &o->ranges, &o->n_ranges);
	if (r == 0)
		o->n_ranges = code_ranges_merge(o->ranges, o->n_ranges);
	return r == -ENOENT ? 0 : r;
}

static int by_lo(const void *pa, const void *pb)
{
	const struct addr_range *a = pa, *b = pb;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return a->hi < b->hi ? -1 : a->hi > b->hi;
}

size_t code_ranges_merge(struct addr_range *all, size_t n)
{
	size_t used = 0;

	if (n)
		qsort(all, n, sizeof(*all), by_lo);
	for (size_t i = 0; i < n; i++) {
		struct addr_range r = all[i];

		if (r.hi <= r.lo)
			continue;
		if (used && all[used - 1].hi >= r.lo) {
			if (all[used - 1].hi < r.hi)
				all[used - 1].hi = r.hi;
		} else {
			all[used++] = r;
		}
	}
	return used;
}
