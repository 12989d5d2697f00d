// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/names.h"

#include "program/elf/demangle.h"
#include "program/elf/symbols_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JOINED 4
#define MOST_SYMBOLS 1024 /* at one address that are looked at */

void elf_names_free(struct elf_names *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->all[i]);
	free(n->all);
	*n = (struct elf_names){0};
}

static bool ends_in(const char *name, size_t n, const char *with)
{
	size_t length = strlen(with);

	return n > length && memcmp(name + n - length, with, length) == 0;
}

/* What is left of a name in C without the marks by which libraries tell aliases apart. */
static void find_stem(const char *name, const char **ret, size_t *ret_n)
{
	static const char *const marks[] = {"IO_", "libc_", "GI_"};
	const char *stem = name + strspn(name, "_");
	size_t n;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (stem > name && strncmp(stem, marks[i], strlen(marks[i])) == 0)
			stem += strlen(marks[i]);
	stem += strspn(stem, "_");
	n = strlen(stem);
	/* glibc's versioned functions are called so in its own object files: name_alias_1,
	 * name_impl. */
	while (n > 1 && isdigit((unsigned char)stem[n - 1]))
		n--;
	n = ends_in(stem, n, "_alias_") ? n - strlen("_alias_") : strlen(stem);
	if (ends_in(stem, n, "_impl"))
		n -= strlen("_impl");
	if (ends_in(stem, n, "64"))
		n -= 2;
	*ret = n ? stem : name;
	*ret_n = n ? n : strlen(name);
}

static bool same_stem(const char *a, const char *b)
{
	size_t na, nb;

	find_stem(a, &a, &na);
	find_stem(b, &b, &nb);
	return na == nb && memcmp(a, b, na) == 0;
}

/* Takes the arguments of templates out of a readable name: what stands between < and > behind a
 * word. In the name of an operator these may be its own. */
static void drop_template_arguments(char *name)
{
	char *to = name;
	int depth = 0;

	if (strstr(name, "operator"))
		return;
	for (const char *c = name; *c; c++) {
		bool behind_word = c > name && (isalnum((unsigned char)c[-1]) || c[-1] == '_');

		if (*c == '<' && (depth || behind_word))
			depth++;
		if (!depth)
			*to++ = *c;
		if (*c == '>' && depth)
			depth--;
	}
	*to = 0;
}

/* What two names of one function have in common. */
static char *readable(const struct symbol *s, bool by_source)
{
	char *name =
		demangle_is_mangled(s->own) ? demangle_as(s->own, !by_source, !by_source) : NULL;

	if (name && by_source)
		drop_template_arguments(name);
	return name ? name : strdup(s->own);
}

struct kept {
	const struct symbol *symbol;
	char *readable;
};

struct kept_list {
	struct kept *all;
	size_t n;
	bool more; /* than were kept */
};

static void kept_free(struct kept_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->all[i].readable);
	free(l->all);
}

/* Keeps @s if it is another function than those that were kept. @max (few) can be kept. */
static int keep(struct kept_list *l, const struct symbol *s, bool by_source, size_t max,
		bool (*is_same)(const struct kept *k, const struct symbol *s, const char *name))
{
	_cleanup_free_ char *name = readable(s, by_source);

	if (!name)
		return -ENOMEM;
	for (size_t k = 0; k < l->n; k++)
		if (is_same(&l->all[k], s, name))
			return 0;
	l->more = l->n == max;
	if (l->more)
		return 0;
	return array_add(l->all, l->n, (struct kept){s, TAKE_PTR(name)});
}

static bool is_alias(const struct kept *k, const struct symbol *s, const char *name)
{
	const struct symbol *of = k->symbol;

	if (strcmp(of->own, s->own) == 0 || strcmp(k->readable, name) == 0)
		return true;
	if (demangle_is_mangled(of->own) || demangle_is_mangled(s->own))
		return false;
	return same_stem(of->own, s->own) || (of->rank == 1) != (s->rank == 1);
}

/* Keeps the functions at one address: the symbols from @first on that have it. Ends at the first
 * name that has no room in @ret. */
static int keep_functions(const struct symbol_index *x, size_t first, bool by_source,
			  struct kept_list *ret)
{
	size_t end = x->n - first < MOST_SYMBOLS ? x->n : first + MOST_SYMBOLS;
	uint64_t addr = x->all[first].addr;
	int r = 0;

	for (size_t i = first; r == 0 && !ret->more && i < end && x->all[i].addr == addr; i++)
		if (x->all[i].kind < SYMBOL_COLD)
			r = keep(ret, &x->all[i], by_source, ELF_MOST_NAMES, is_alias);
	return r;
}

int elf_object_sharers(const struct elf_object *o, uint64_t vaddr, bool by_source,
		       struct elf_names *ret)
{
	const struct symbol_index *x = o->symbols;
	_cleanup_(kept_free) struct kept_list kept = {0};
	struct elf_names out = {0};
	int r = symbols_load(o);
	size_t first;

	*ret = out;
	if (r < 0)
		return r;
	first = search_front(x->n, i, x->all[i].addr < vaddr);
	/* Names are made readable by another process: not of code that has one. */
	if (x->n - first < 2 || x->all[first].addr != vaddr || x->all[first + 1].addr != vaddr)
		return 0;
	r = keep_functions(x, first, by_source, &kept);
	if (r < 0 || kept.n < 2)
		return r;
	out.all = calloc(kept.n, sizeof(*out.all));
	if (!out.all)
		return -ENOMEM;
	for (; r == 0 && out.n < kept.n; out.n += r == 0) {
		out.all[out.n] = elf_demangle(kept.all[out.n].symbol->own);
		r = out.all[out.n] ? 0 : -ENOMEM;
	}
	if (r < 0) {
		elf_names_free(&out);
		return r;
	}
	out.more = kept.more;
	*ret = out;
	return 0;
}

char *elf_names_join(const struct elf_names *n, const char *except)
{
	char *text = NULL;
	size_t size, shown = 0, all = 0;
	FILE *f = open_memstream(&text, &size);

	for (size_t i = 0; i < n->n; i++)
		all += !except || !same_stem(n->all[i], except);
	for (size_t i = 0; f && i < n->n && shown < MAX_JOINED; i++) {
		if (except && same_stem(n->all[i], except))
			continue;
		(void)fprintf(f, "%s%s",
			      !shown		 ? ""
			      : shown + 1 == all ? " and "
						 : ", ",
			      n->all[i]);
		shown++;
	}
	if (f && all > shown)
		(void)fprintf(f, " and %s%zu more", n->more ? "over " : "", all - shown);
	if (f && fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

struct sakes {
	const char *name;
	const struct symbol **all;
	size_t n;
};

static int take_readable(const void *item, const char *name, void *arg)
{
	struct sakes *w = arg;

	return name && strcmp(name, w->name) == 0 ? array_add(w->all, w->n, item) : 0;
}

/* All symbols of functions that are called @w->name, as it stands or without what was mangled. */
static int find_sakes(const struct symbol_index *x, struct sakes *w)
{
	struct demangle_batch b = {.take = take_readable, .arg = w};
	char key[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < x->n; i++)
		if (x->all[i].kind <= SYMBOL_RENAMED && strcmp(x->all[i].own, w->name) == 0)
			r = array_add(w->all, w->n, &x->all[i]);
	if (r < 0 || w->n || demangle_is_mangled(w->name))
		return r;
	/* One that is written with its arguments is one function, or static in several files. */
	b.arguments = b.result = strchr(w->name, '(');
	symbol_key_of(w->name, key, sizeof(key));
	for (size_t i = 0; r == 0 && i < x->n; i++)
		if (x->all[i].kind <= SYMBOL_RENAMED && demangle_is_mangled(x->all[i].own) &&
		    !demangle_is_rust(x->all[i].own) && strstr(x->all[i].own, key))
			r = demangle_add(&b, x->all[i].own, &x->all[i]);
	return r ? r : demangle_end(&b);
}

/* Is @s the function of @k, or a static one whose name the exported function @k has? */
static bool is_known(const struct kept *k, const struct symbol *s, const char *name)
{
	if (k->symbol->addr == s->addr)
		return true;
	if (strcmp(k->symbol->own, s->own) == 0)
		return k->symbol->rank != 2;
	return strcmp(k->readable, name) == 0;
}

/* Keeps up to @max functions in @ret. */
static int keep_namesakes(const struct sakes *w, bool local, size_t max, struct kept_list *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->n && ret->n < max; i++)
		if ((w->all[i]->rank == 2) == local)
			r = keep(ret, w->all[i], false, max, is_known);
	return r;
}

int elf_object_namesakes(const struct elf_object *o, const char *name, struct elf_symbol *ret,
			 size_t max)
{
	_cleanup_(kept_free) struct kept_list kept = {0};
	struct sakes w = {.name = name};
	int r = symbols_load(o);

	if (r == 0 && demangle_is_rust(name))
		return 0;
	if (r == 0)
		r = find_sakes(o->symbols, &w);
	/* Those that are exported first. */
	for (int local = 0; r == 0 && local < 2; local++)
		r = keep_namesakes(&w, local, max < 2 ? 2 : max, &kept);
	free(w.all);
	if (r < 0)
		return r;
	if (kept.n < 2)
		return 0;
	for (size_t i = 0; i < kept.n && i < max; i++)
		ret[i] = symbol_public(kept.all[i].symbol);
	return (int)(kept.n < max ? kept.n : max);
}
