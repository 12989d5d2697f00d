// SPDX-License-Identifier: BSD-2-Clause
#include "elf/demangle.h"
#include "elf/object.h"
#include "elf/object_private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* How far function_at looks back for a function that encloses a smaller one (assembly with labels inside). */
#define MAX_NESTED 64
/* Walked for every symbol without a size: a file with more does without. */
#define MAX_SECTIONS 256

struct symbol {
	uint64_t addr, size;
	const char *name;
	uint32_t rank;  /* 0 global, 1 weak, 2 local */
	uint32_t order; /* in the table */
};

struct symbol_index {
	bool loaded;
	struct symbol *all; /* by address; at one address the name to show comes first */
	size_t n;
	char **plain; /* names that needed a copy without their version */
	size_t n_plain;
};

struct symbol_index *symbol_index_new(void)
{
	return calloc(1, sizeof(struct symbol_index));
}

void symbol_index_free(struct symbol_index *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->n_plain; i++)
		free(x->plain[i]);
	free(x->plain);
	free(x->all);
	free(x);
}

struct table {
	Elf_Data *data;
	size_t n;
	size_t strings; /* section of the names */
	uint64_t max_size;
};

static bool find_table(const struct elf_object *o, uint32_t type, struct table *ret)
{
	Elf_Scn *s = NULL;
	GElf_Shdr h;

	while ((s = elf_nextscn(o->elf, s))) {
		if (!gelf_getshdr(s, &h) || h.sh_type != type || h.sh_offset > o->size || h.sh_size > o->size - h.sh_offset)
			continue;
		ret->data = elf_getdata(s, NULL);
		if (!ret->data)
			continue;
		ret->n = ret->data->d_size / sizeof(Elf64_Sym);
		if (ret->n > INT_MAX)
			ret->n = INT_MAX;
		ret->strings = h.sh_link;
		return true;
	}
	return false;
}

/* "memcpy@@GLIBC_2.14" is called memcpy. */
static const char *plain_name(struct symbol_index *x, const char *name)
{
	const char *at = strchr(name, '@');
	char *copy, **grown;

	if (!at || at == name)
		return name;
	grown = reallocarray(x->plain, x->n_plain + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	x->plain = grown;
	copy = strndup(name, (size_t)(at - name));
	if (copy)
		x->plain[x->n_plain++] = copy;
	return copy;
}

static uint32_t rank(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return 0;
	case STB_WEAK:
		return 1;
	default:
		return 2;
	}
}

static int load_table(const struct elf_object *o, const struct table *t)
{
	struct symbol_index *x = o->symbols;
	unsigned int type;
	GElf_Sym sym;

	x->all = reallocarray(NULL, t->n + 1, sizeof(*x->all));
	if (!x->all)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		const char *name;
		uint64_t left;

		if (!gelf_getsym(t->data, (int)i, &sym))
			break;
		type = GELF_ST_TYPE(sym.st_info);
		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym.st_shndx == SHN_UNDEF)
			continue;
		left = elf_object_code_left(o, sym.st_value);
		name = elf_strptr(o->elf, t->strings, sym.st_name);
		if (!left || !name || !*name)
			continue;
		name = plain_name(x, name);
		if (!name)
			return -ENOMEM;
		x->all[x->n++] = (struct symbol){
			.addr = sym.st_value,
			.size = sym.st_size < left ? sym.st_size : left,
			.name = name,
			.rank = rank(&sym),
			.order = (uint32_t)i,
		};
	}
	return 0;
}

static int by_address(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static uint64_t section_left(const struct elf_object *o, uint64_t addr)
{
	uint64_t left = elf_object_code_left(o, addr);
	Elf_Scn *s = NULL;
	size_t n;
	GElf_Shdr h;

	if (elf_getshdrnum(o->elf, &n) < 0 || n > MAX_SECTIONS)
		return left;
	while ((s = elf_nextscn(o->elf, s)))
		if (gelf_getshdr(s, &h) && h.sh_flags & SHF_ALLOC && h.sh_addr <= addr && addr - h.sh_addr < h.sh_size &&
		    h.sh_size - (addr - h.sh_addr) < left)
			left = h.sh_size - (addr - h.sh_addr);
	return left;
}

/* Hand-written assembly often has no sizes: such a symbol reaches to the next one, or to its section's end. */
static void fill_sizes(const struct elf_object *o)
{
	struct symbol_index *x = o->symbols;
	size_t end;

	for (size_t i = 0; i < x->n; i = end) {
		uint64_t longest = 0;

		for (end = i; end < x->n && x->all[end].addr == x->all[i].addr; end++)
			if (x->all[end].size > longest)
				longest = x->all[end].size;
		if (!longest)
			longest = section_left(o, x->all[i].addr);
		if (end < x->n && !x->all[i].size && longest > x->all[end].addr - x->all[i].addr)
			longest = x->all[end].addr - x->all[i].addr;
		for (size_t k = i; k < end; k++)
			if (!x->all[k].size)
				x->all[k].size = longest;
	}
}

static int load(const struct elf_object *o)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	struct symbol_index *x = o->symbols;
	struct table t;
	int r = 0;

	if (x->loaded)
		return 0;
	x->loaded = true;
	for (size_t i = 0; r == 0 && !x->n && i < 2; i++) {
		if (!find_table(o, types[i], &t))
			continue;
		free(x->all);
		x->all = NULL;
		r = load_table(o, &t);
	}
	if (x->n)
		qsort(x->all, x->n, sizeof(*x->all), by_address);
	fill_sizes(o);
	return r;
}

static struct elf_symbol public(const struct symbol *s)
{
	return (struct elf_symbol){.name = s->name, .addr = s->addr, .size = s->size, .is_function = true};
}

bool elf_object_has_symbols(const struct elf_object *o)
{
	(void)load(o);
	return o->symbols->n > 0;
}

/* Several static functions may share a name: the exported one, else the one that comes first. */
static const struct symbol *better(const struct symbol *a, const struct symbol *b)
{
	return a && a->rank <= b->rank ? a : b;
}

/* The identifier that a mangled form of @name must contain: the last one before the argument list, outside of template
 * arguments. Empty when there is none to rely on (operators). */
static void key_of(const char *name, char *ret, size_t size)
{
	const char *start = NULL, *end = NULL;
	int depth = 0;

	*ret = 0;
	if (strstr(name, "operator"))
		return;
	for (const char *c = name; *c; c++) {
		bool word = *c == '_' || (*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z');

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

static bool readable_matches(const char *raw, const char *name)
{
	static const struct {
		bool arguments, result;
	} forms[] = {{true, true}, {true, false}, {false, false}};
	bool same = false;

	for (size_t i = 0; !same && i < 3; i++) {
		char *s = demangle_as(raw, forms[i].arguments, forms[i].result);

		same = s && !strcmp(s, name);
		free(s);
	}
	return same;
}

static bool is_data(const struct elf_object *o, const char *name)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	size_t len = strlen(name);
	struct table t;
	GElf_Sym sym;

	for (size_t k = 0; k < 2; k++) {
		if (!find_table(o, types[k], &t))
			continue;
		for (size_t i = 0; i < t.n && gelf_getsym(t.data, (int)i, &sym); i++) {
			unsigned int type = GELF_ST_TYPE(sym.st_info);
			const char *s;

			if ((type != STT_OBJECT && type != STT_TLS && type != STT_COMMON) || sym.st_shndx == SHN_UNDEF)
				continue;
			s = elf_strptr(o->elf, t.strings, sym.st_name);
			if (s && !strncmp(s, name, len) && (!s[len] || s[len] == '@'))
				return true;
		}
	}
	return false;
}

int elf_object_find_function(const struct elf_object *o, const char *name, struct elf_symbol *ret)
{
	const struct symbol_index *x = o->symbols;
	const struct symbol *best = NULL;
	char key[256];
	int r = load(o);

	if (r < 0)
		return r;
	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->all[i].name, name))
			best = better(best, &x->all[i]);
	key_of(name, key, sizeof(key));
	for (size_t i = 0; !best && i < x->n; i++)
		if (demangle_is_mangled(x->all[i].name) && strstr(x->all[i].name, key) && readable_matches(x->all[i].name, name))
			best = &x->all[i];
	if (!best)
		return is_data(o, name) ? -EINVAL : -ENOENT;
	*ret = public(best);
	return 0;
}

int elf_object_function_at(const struct elf_object *o, uint64_t vaddr, struct elf_symbol *ret)
{
	const struct symbol_index *x = o->symbols;
	size_t lo = 0, hi, tries = 0;
	int r = load(o);

	if (r < 0)
		return r;
	hi = x->n;
	while (lo < hi) { /* the first symbol above @vaddr */
		size_t mid = lo + (hi - lo) / 2;

		if (x->all[mid].addr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo > 0 && tries++ < MAX_NESTED) {
		const struct symbol *s = &x->all[--lo];

		while (lo > 0 && x->all[lo - 1].addr == s->addr)
			s = &x->all[--lo];
		if (vaddr - s->addr < s->size) {
			*ret = public(s);
			return 0;
		}
	}
	return -ENOENT;
}

int elf_object_each_function(const struct elf_object *o, int (*cb)(const struct elf_symbol *sym, void *arg), void *arg)
{
	const struct symbol_index *x = o->symbols;
	int r = load(o);

	for (size_t i = 0; r == 0 && i < x->n; i++) {
		struct elf_symbol s = public(&x->all[i]);

		if (i == 0 || x->all[i - 1].addr != s.addr)
			r = cb(&s, arg);
	}
	return r;
}

int symbol_index_each_name(const struct elf_object *o, int (*cb)(const char *name, void *arg), void *arg)
{
	const struct symbol_index *x = o->symbols;
	int r = load(o);

	for (size_t i = 0; r == 0 && i < x->n; i++)
		r = cb(x->all[i].name, arg);
	return r;
}
