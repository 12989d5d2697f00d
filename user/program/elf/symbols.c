// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/demangle.h"
#include "program/elf/symbols_private.h"

#include "base/search.h"

#include <errno.h>
#include <string.h>

/* How far function_at looks back for a function that encloses a smaller one (assembly with labels
 * inside). */
#define MAX_NESTED 64

/* What compilers append to the names of the parts and copies that they make of a function. */
static const struct {
	const char *word;
	enum symbol_kind kind;
	bool plain; /* is one without a number, too */
} suffixes[] = {
	{".part", SYMBOL_PART, false},	      {".cold", SYMBOL_COLD, true},
	{".isra", SYMBOL_COPY, false},	      {".constprop", SYMBOL_COPY, false},
	{".lto_priv", SYMBOL_RENAMED, false}, {".llvm", SYMBOL_RENAMED, false},
	{".__uniq", SYMBOL_RENAMED, false},   {".localalias", SYMBOL_RENAMED, true},
};

/* The length without the last suffix, or @n if there is none. */
static size_t cut_one(const char *name, size_t n, enum symbol_kind *kind)
{
	size_t end = n;

	while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	if (end == n || !end || name[end - 1] != '.')
		end = n; /* no number */
	else
		end--;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t len = strlen(suffixes[i].word);

		if (end <= len || (end == n && !suffixes[i].plain) ||
		    memcmp(name + end - len, suffixes[i].word, len))
			continue;
		if (suffixes[i].kind > *kind)
			*kind = suffixes[i].kind;
		return end - len;
	}
	return n;
}

size_t symbol_own_length(const char *name, enum symbol_kind *ret_kind)
{
	enum symbol_kind kind = SYMBOL_WHOLE;
	size_t n = strlen(name), shorter;

	/* A leading dot is the name's own. */
	while (n && memchr(name + 1, '.', n - 1) && (shorter = cut_one(name, n, &kind)) < n)
		n = shorter;
	*ret_kind = kind;
	return n;
}

struct elf_symbol symbol_public(const struct symbol *s)
{
	return (struct elf_symbol){.name = s->name,
				   .function = s->own,
				   .addr = s->addr,
				   .size = s->size,
				   .is_nameless = s->nameless,
				   .is_indirect = s->indirect};
}

bool elf_object_has_symbols(const struct elf_object *o)
{
	(void)symbols_load(o);
	return o->symbols->n > o->symbols->n_nameless;
}

bool elf_object_has_functions(const struct elf_object *o)
{
	(void)symbols_load(o);
	return o->symbols->n > 0;
}

const char *elf_object_symbol_problem(const struct elf_object *o)
{
	(void)symbols_load(o);
	return o->symbols->problem.text[0] ? o->symbols->problem.text : NULL;
}

int elf_object_function_at(const struct elf_object *o, uint64_t vaddr, struct elf_symbol *ret)
{
	const struct symbol_index *x = o->symbols;
	size_t lo, tries = 0;
	int r = symbols_load(o);

	if (r < 0)
		return r;
	lo = search_front(x->n, i, x->all[i].addr <= vaddr);
	while (lo > 0 && tries++ < MAX_NESTED) {
		const struct symbol *s = &x->all[--lo];

		while (lo > 0 && x->all[lo - 1].addr == s->addr)
			s = &x->all[--lo];
		if (vaddr - s->addr < s->size) {
			*ret = symbol_public(s);
			return 0;
		}
	}
	return -ENOENT;
}

int elf_object_each_function(const struct elf_object *o,
			     int (*cb)(const struct elf_symbol *sym, void *arg), void *arg)
{
	const struct symbol_index *x = o->symbols;
	int r = symbols_load(o);

	for (size_t i = 0; r == 0 && i < x->n; i++) {
		struct elf_symbol s = symbol_public(&x->all[i]);

		if (i == 0 || x->all[i - 1].addr != s.addr)
			r = cb(&s, arg);
	}
	return r;
}

struct readable {
	int (*cb)(const struct elf_symbol *sym, const char *readable, void *arg);
	void *arg;
};

static int take_readable(const void *item, const char *readable, void *arg)
{
	const struct elf_symbol s = symbol_public(item);
	const struct readable *to = arg;

	return to->cb(&s, readable ? readable : s.function, to->arg);
}

int elf_object_each_readable(const struct elf_object *o, bool exported,
			     int (*cb)(const struct elf_symbol *sym, const char *readable,
				       void *arg),
			     void *arg)
{
	struct readable to = {cb, arg};
	struct demangle_batch b = {
		.arguments = true, .result = true, .take = take_readable, .arg = &to};
	const struct symbol_index *x = o->symbols;
	int r = symbols_load(o);

	/* Of an address the name that is seen from outside comes first. */
	for (size_t i = 0; r == 0 && i < x->n; i++)
		if ((!exported || x->all[i].rank < 2) &&
		    (i == 0 || x->all[i - 1].addr != x->all[i].addr))
			r = demangle_add(&b, x->all[i].own, &x->all[i]);
	return r ? r : demangle_end(&b);
}
