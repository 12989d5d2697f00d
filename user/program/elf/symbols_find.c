// SPDX-License-Identifier: BSD-2-Clause
/* From a name that a person wrote to the symbols of that function. */
#include "program/elf/demangle.h"
#include "program/elf/symbols_private.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Several static functions may share a name: the exported one, else the one that comes first. What
 * a function itself is comes before what was made of it. */
static const struct symbol *better(const struct symbol *a, const struct symbol *b)
{
	if (!a || a->kind != b->kind)
		return a && a->kind < b->kind ? a : b;
	return a->rank <= b->rank ? a : b;
}

void symbol_key_of(const char *name, char *ret, size_t size)
{
	const char *start = NULL, *end = NULL;
	int depth = 0;

	*ret = 0;
	if (strstr(name, "operator") || strchr(name, '{'))
		return;
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c >= 0x80)
			return;
	for (const char *c = name; *c; c++) {
		bool word = *c == '_' || (*c >= '0' && *c <= '9') ||
			    ((*c | 32) >= 'a' && (*c | 32) <= 'z');

		if (*c == '(' && !depth && strncmp(c, "(anonymous namespace)", 21))
			break;
		if (*c == '(' && !depth)
			c += 20, word = false;
		depth += (*c == '<') - (*c == '>');
		if (depth || !word)
			continue;
		if (end != c)
			start = c;
		end = c + 1;
	}
	if (start && (size_t)(end - start) < size) {
		memcpy(ret, start, (size_t)(end - start));
		ret[end - start] = 0;
	}
}

struct wanted {
	const char *name;
	const struct symbol *found;
};

static int take_wanted(const void *item, const char *readable, void *arg)
{
	struct wanted *w = arg;

	if (readable && !strcmp(readable, w->name))
		w->found = item;
	return w->found != NULL;
}

/* The first that reads as @name, in one of the forms. */
static const struct symbol *find_readable(const struct symbol_index *x, const char *name)
{
	static const struct {
		bool arguments, result;
	} forms[] = {{true, true}, {true, false}, {false, false}};
	struct wanted w = {.name = name};
	char key[256];

	symbol_key_of(name, key, sizeof(key));
	for (size_t f = 0; !w.found && f < 3; f++) {
		struct demangle_batch b = {.arguments = forms[f].arguments,
					   .result = forms[f].result,
					   .take = take_wanted,
					   .arg = &w};

		for (size_t i = 0; !w.found && i < x->n; i++)
			if (demangle_is_mangled(x->all[i].own) && strstr(x->all[i].own, key))
				(void)demangle_add(&b, x->all[i].own, &x->all[i]);
		if (!w.found)
			(void)demangle_end(&b);
	}
	return w.found;
}

int elf_object_find_data(const struct elf_object *o, const char *name, uint64_t *ret)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	const struct symbol_source own = {o->elf, o->size};
	size_t len = strlen(name);
	struct symbol_table t;
	GElf_Sym sym;

	for (size_t k = 0; k < 2; k++) {
		if (!symbol_table_find(&own, types[k], &t))
			continue;
		for (size_t i = 0; i < t.n && gelf_getsym(t.data, (int)i, &sym); i++) {
			unsigned int type = GELF_ST_TYPE(sym.st_info);
			const char *s;

			if ((type != STT_OBJECT && type != STT_TLS && type != STT_COMMON) ||
			    sym.st_shndx == SHN_UNDEF)
				continue;
			s = elf_strptr(o->elf, t.strings, sym.st_name);
			if (s && !strncmp(s, name, len) && (!s[len] || s[len] == '@')) {
				*ret = sym.st_value;
				return 0;
			}
		}
	}
	return -ENOENT;
}

/* Anything that was made of the function called @name. *ret_exact: it is written as one symbol is,
 * and that is what was found. */
static const struct symbol *relative(const struct symbol_index *x, const char *name,
				     bool *ret_exact)
{
	const struct symbol *found = NULL;

	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->all[i].name, name))
			found = better(found, &x->all[i]);
	*ret_exact = found;
	for (size_t i = 0; !found && i < x->n; i++)
		if (!strcmp(x->all[i].own, name))
			found = &x->all[i];
	return found ? found : find_readable(x, name);
}

struct family {
	const struct symbol *like;
	const char *readable; /* NULL: only the raw name counts */
	const struct symbol **all;
	size_t n;
};

static int take_relative(const void *item, const char *readable, void *arg)
{
	const struct symbol *s = item;
	struct family *f = arg;

	if (strcmp(s->own, f->like->own) && (!readable || strcmp(readable, f->readable)))
		return 0;
	return array_add(f->all, f->n, s);
}

/* All of the same function as @like, in the order of addresses. *ret is the caller's. */
static int family(const struct symbol_index *x, const struct symbol *like,
		  const struct symbol ***ret, size_t *ret_n)
{
	/* Of a generic function Rust writes several symbols that read the same. (In C++ the
	 * arguments of a template can be read, and what reads the same are the constructors of one
	 * class, which may call each other.) */
	_cleanup_free_ char *readable =
		demangle_is_rust(like->own) ? demangle_as(like->own, true, true) : NULL;
	struct family f = {.like = like, .readable = readable};
	struct demangle_batch b = {
		.arguments = true, .result = true, .take = take_relative, .arg = &f};
	char key[256] = "";
	int r = 0;

	if (readable)
		symbol_key_of(readable, key, sizeof(key));
	for (size_t i = 0; r == 0 && i < x->n; i++) {
		const struct symbol *s = &x->all[i];

		if (!readable)
			r = take_relative(s, NULL, &f);
		else if (!strcmp(s->own, like->own) ||
			 (demangle_is_rust(s->own) && strstr(s->own, key)))
			r = demangle_add(&b, s->own, s);
	}
	if (r == 0)
		r = demangle_end(&b);
	if (r < 0) {
		free(f.all);
		return r;
	}
	*ret = f.all;
	*ret_n = f.n;
	return 0;
}

/* May @s be of the same function as @best, and not of another static function of that name? */
static bool related(const struct symbol *best, const struct symbol *s)
{
	return best->rank != 2 || !best->unit || !s->unit || best->unit == s->unit ||
	       demangle_is_rust(best->own);
}

/* Is @s entered by calls that do not come through @best? */
static bool separate(const struct symbol *best, const struct symbol *s)
{
	if (best->kind > SYMBOL_RENAMED)
		return s->kind == best->kind;
	return s->kind == SYMBOL_COPY || (s->kind <= SYMBOL_RENAMED && strcmp(s->own, best->own));
}

/* Is it one symbol that was asked for, and no function of several? */
static bool is_alone(const struct symbol *best, const char *name)
{
	return !strcmp(best->name, name) && (best->kind != SYMBOL_WHOLE || demangle_is_rust(name));
}

static int find(const struct elf_object *o, const char *name, const struct symbol ***ret,
		size_t *ret_n, const struct symbol **ret_best)
{
	const struct symbol_index *x = o->symbols;
	const struct symbol *like, *best = NULL;
	uint64_t data;
	bool exact;
	int r = symbols_load(o);

	if (r < 0)
		return r;
	like = relative(x, name, &exact);
	if (!like)
		return elf_object_find_data(o, name, &data) == 0 ? -EINVAL : -ENOENT;
	r = family(x, like, ret, ret_n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < *ret_n; i++)
		best = better(best, (*ret)[i]);
	*ret_best = exact ? like : best;
	return 0;
}

int elf_object_find_function(const struct elf_object *o, const char *name, struct elf_symbol *ret)
{
	_cleanup_free_ const struct symbol **all = NULL;
	const struct symbol *best;
	size_t n;
	int r = find(o, name, &all, &n, &best);

	if (r == 0)
		*ret = symbol_public(best);
	return r;
}

/* Entries of the function or all its code: what both are, elf/object.h says. */
static int choose(const struct elf_object *o, const char *name, bool entries,
		  struct elf_symbol **ret, size_t *ret_n)
{
	_cleanup_free_ const struct symbol **all = NULL;
	const struct symbol *best;
	struct elf_symbol *chosen;
	size_t n, used = 0;
	bool alone;
	int r = find(o, name, &all, &n, &best);

	if (r < 0)
		return r;
	alone = is_alone(best, name);
	if (best->kind == SYMBOL_COLD && (entries || !alone))
		return -ENOENT;
	chosen = calloc(n + 1, sizeof(*chosen));
	if (!chosen)
		return -ENOMEM;
	if (entries)
		chosen[used++] = symbol_public(best);
	for (size_t i = 0; i < n; i++) {
		bool other = !alone && all[i]->addr != best->addr && related(best, all[i]);

		if (entries ? other && all[i]->addr != chosen[used - 1].addr &&
				      separate(best, all[i])
			    : other || all[i] == best)
			chosen[used++] = symbol_public(all[i]);
	}
	*ret = chosen;
	*ret_n = used;
	return 0;
}

int elf_object_find_entries(const struct elf_object *o, const char *name, struct elf_symbol **ret,
			    size_t *ret_n)
{
	return choose(o, name, true, ret, ret_n);
}

int elf_object_find_code(const struct elf_object *o, const char *name, struct elf_symbol **ret,
			 size_t *ret_n)
{
	return choose(o, name, false, ret, ret_n);
}
