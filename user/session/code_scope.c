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

/* Sources that came with a compiler, a distribution or a package manager. */
static bool system_source(const char *file)
{
	static const char *const roots[] = {
		"/usr/include/", "/usr/local/include/", "/usr/lib/gcc/", "/usr/lib/llvm-",
		"/usr/lib/go", "/usr/share/go-", "/usr/local/go/", /* Go's runtime and library */
		"/rustc/", "/rust/deps/", "/usr/src/rustc-",       /* Rust's, as the official builds and Debian's name them */
	};
	static const char *const parts[] = {"/.cargo/registry/", "/.cargo/git/", "/.rustup/toolchains/", "/go/pkg/mod/"};
	const char *go = getenv("GOROOT");

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (!strncmp(file, roots[i], strlen(roots[i])))
			return true;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(file, parts[i]))
			return true;
	return go && *go && !strncmp(file, go, strlen(go)) && !strncmp(file + strlen(go), "/src/", 5);
}

bool code_scope_source(const struct code_map *m, const char *file)
{
	bool in = !m->sources.n_includes && !system_source(file);

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

/* What is asked to be left out. What is left out unasked is found as it is sampled (code_owner.c): it is most of a program's line
 * information, which nobody waits for. */
static bool unwanted(const char *file, void *arg)
{
	const struct code_map *m = arg;

	for (size_t i = 0; i < m->sources.n; i++)
		if (source_glob(m->sources.all[i] + 1, file))
			return true;
	return false;
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

/* The part of an object's range that a mapping shows, in the process; empty (lo >= hi) if none. */
static struct addr_range seen(const struct code_mapping *p, struct addr_range r)
{
	uint64_t lo = p->start - p->bias, hi = p->end - p->bias; /* modulo 2^64, as the bias is */

	if (hi <= lo)
		return (struct addr_range){0};
	if (lo < r.lo)
		lo = r.lo;
	if (hi > r.hi)
		hi = r.hi;
	return lo < hi ? (struct addr_range){lo + p->bias, hi + p->bias} : (struct addr_range){0};
}

bool code_scope_ranges_are_all(const struct code_map *m)
{
	return !m->functions && m->sources.n_includes;
}

static size_t mapping_ranges(const struct code_map *m, const struct code_mapping *p, struct addr_range *out)
{
	const struct code_object *o = m->objects[p->object];
	uint64_t at = p->start;
	size_t n = 0;

	bool only = code_scope_ranges_are_all(m);

	for (size_t i = 0; i < o->n_ranges; i++) {
		struct addr_range r = seen(p, o->ranges[i]);

		if (r.hi <= r.lo)
			continue;
		if (only) {
			out[n++] = r;
		} else {
			out[n++] = (struct addr_range){at, r.lo};
			at = r.hi;
		}
	}
	if (!only)
		out[n++] = (struct addr_range){at, p->end};
	return n;
}

int code_scope_ranges(const struct code_map *m, struct addr_range **ret, size_t *ret_n)
{
	struct addr_range *all = NULL;
	size_t n = 0;

	for (size_t i = 0; i < m->n_mappings; i++) {
		const struct code_mapping *p = &m->mappings[i];
		struct addr_range *grown;

		if (!m->objects[p->object]->in_scope || !p->placed)
			continue;
		grown = reallocarray(all, n + m->objects[p->object]->n_ranges + 1, sizeof(*all));
		if (!grown) {
			free(all);
			return -ENOMEM;
		}
		all = grown;
		n += mapping_ranges(m, p, all + n);
	}
	*ret = all;
	*ret_n = code_ranges_merge(all, n);
	return 0;
}
