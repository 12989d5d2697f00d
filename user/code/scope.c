// SPDX-License-Identifier: BSD-2-Clause
#include "code/private.h"

#include "base/array.h"

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

/* What is asked to be left out. What is left out unasked is found as it is sampled (owner.c): it is most of a program's line
 * information, which nobody waits for. */
static bool unwanted(const char *file, void *arg)
{
	const struct code_map *m = arg;

	for (size_t i = 0; i < m->sources.n; i++)
		if (source_glob(m->sources.all[i] + 1, file))
			return true;
	return false;
}

/* What is left of sorted, disjoint @from without the sorted, disjoint @out. Room for both is in *ret. */
static size_t subtract(const struct addr_range *from, size_t n, const struct addr_range *out, size_t n_out, struct addr_range *ret)
{
	size_t used = 0, k = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t at = from[i].lo;

		while (k < n_out && out[k].hi <= at)
			k++;
		for (size_t j = k; j < n_out && out[j].lo < from[i].hi; j++) {
			if (out[j].lo > at)
				ret[used++] = (struct addr_range){at, out[j].lo};
			at = out[j].hi;
		}
		if (at < from[i].hi)
			ret[used++] = (struct addr_range){at, from[i].hi};
	}
	return used;
}

/* Cuts [@at, @hi) at the functions in it: up to where the first one ends, and is that a function that begins in scope, so that all of it
 * is somebody's line? Code of other files in it was inlined (owner.c). */
static bool next_function(const struct code_map *m, const struct code_object *o, struct line_table *lines, uint64_t at, uint64_t hi,
			  struct addr_range *ret)
{
	struct line_location entry;
	struct elf_symbol s;

	*ret = (struct addr_range){at, hi};
	if (elf_object_function_at(o->elf, at, &s) < 0)
		return false;
	*ret = (struct addr_range){s.addr, s.addr + s.size};
	return code_function_location(lines, s.addr, &entry) && code_scope_source(m, entry.file);
}

static int add_range(struct addr_range **all, size_t *n, struct addr_range r)
{
	if (array_room(*all, *n) < 0)
		return -ENOMEM;
	(*all)[(*n)++] = r;
	return 0;
}

/* Of @all: with @whole, that and the functions in scope that it is in; else what of it is in no such function. Takes @all over. */
static int by_functions(const struct code_map *m, const struct code_object *o, struct line_table *lines, bool whole,
			struct addr_range **all, size_t *n)
{
	struct addr_range *out = NULL, f;
	size_t used = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < *n; i++)
		for (uint64_t at = (*all)[i].lo, end; r == 0 && at < (*all)[i].hi; at = end) {
			bool in = next_function(m, o, lines, at, (*all)[i].hi, &f);

			end = f.hi < (*all)[i].hi ? f.hi : (*all)[i].hi;
			if (in && whole)
				r = add_range(&out, &used, f);
			else if (!in)
				r = add_range(&out, &used, (struct addr_range){at, end});
		}
	free(*all);
	*all = out;
	*n = code_ranges_merge(out, used);
	return r;
}

static int without_excludes(struct code_map *m, struct code_object *o, struct line_table *lines)
{
	struct addr_range *out, *left;
	size_t n;
	int r = line_table_scope(lines, unwanted, m, &out, &n);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = by_functions(m, o, lines, false, &out, &n);
	if (r < 0) {
		free(out);
		return r;
	}
	left = calloc(o->n_ranges + n + 1, sizeof(*left));
	if (left) {
		o->n_ranges = subtract(o->ranges, o->n_ranges, out, n, left);
		free(o->ranges);
		o->ranges = left;
	}
	free(out);
	return left ? 0 : -ENOMEM;
}

/* In scope is what can be named: code with line information, of the wanted sources. What else is linked into an executable (libc in a static
 * one, stubs) is somebody's callee, as if it were in a library. */
int code_scope_read(struct code_map *m, struct code_object *o)
{
	struct line_table *lines;
	int r;

	if (o->scope_tried || m->functions)
		return 0;
	o->scope_tried = true;
	lines = code_object_lines(o, NULL);
	if (!lines)
		return 0;
	if (m->sources.n_includes) {
		r = line_table_scope(lines, wanted, m, &o->ranges, &o->n_ranges);
		if (r == 0)
			r = by_functions(m, o, lines, true, &o->ranges, &o->n_ranges);
		return r == -ENOENT ? 0 : r;
	}
	r = line_table_covered(lines, &o->ranges, &o->n_ranges);
	return r == 0 && m->sources.n ? without_excludes(m, o, lines) : r;
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
