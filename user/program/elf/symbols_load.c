// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/cfi_private.h"
#include "program/elf/debug_find.h"
#include "program/elf/symbols_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sort.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Walked for every symbol without a size: a file with more does without. */
#define MAX_SECTIONS 256
#define MAX_STUBS 8 /* sections of them: .plt, .plt.got, .plt.sec */
/* Functions without a name. The largest programs (browsers) have less than a million of all kinds.
 */
#define MAX_EXTENTS (4U << 20)

void symbol_index_free(struct symbol_index *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->n_copies; i++)
		free(x->copies[i]);
	free(x->copies);
	free(x->extents);
	free(x->all);
	go_table_close(x->go);
	minidebug_close(&x->mini);
	debug_file_close(x->separate);
	free(x);
}

bool symbol_table_find(const struct symbol_source *source, uint32_t type, struct symbol_table *ret)
{
	Elf_Scn *s = NULL;
	GElf_Shdr h;

	while ((s = elf_nextscn(source->elf, s))) {
		if (!gelf_getshdr(s, &h) || h.sh_type != type || h.sh_offset > source->size ||
		    h.sh_size > source->size - h.sh_offset)
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

static const char *keep_copy(struct symbol_index *x, const char *name, size_t n)
{
	char *copy;

	if (array_room(x->copies, x->n_copies) < 0)
		return NULL;
	copy = strndup(name, n);
	if (copy)
		x->copies[x->n_copies++] = copy;
	return copy;
}

/* "memcpy@@GLIBC_2.14" is called memcpy. */
static const char *plain_name(struct symbol_index *x, const char *name)
{
	const char *at = strchr(name, '@');

	return at && at != name ? keep_copy(x, name, (size_t)(at - name)) : name;
}

static const char *own_name(struct symbol_index *x, const char *name, enum symbol_kind *ret_kind)
{
	size_t n = symbol_own_length(name, ret_kind);

	return name[n] ? keep_copy(x, name, n) : name;
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

/* Adds the table's functions to the index. */
static int load_table(const struct elf_object *o, const struct symbol_source *source,
		      const struct symbol_table *t)
{
	struct symbol_index *x = o->symbols;
	struct symbol *grown = reallocarray(x->all, x->n + t->n + 1, sizeof(*grown));
	uint32_t unit = 0;
	GElf_Sym sym;

	if (!grown)
		return -ENOMEM;
	x->all = grown;
	for (size_t i = 0; i < t->n; i++) {
		struct symbol s = {.order = (uint32_t)i};
		unsigned int type;
		uint64_t left;

		if (!gelf_getsym(t->data, (int)i, &sym))
			break;
		type = GELF_ST_TYPE(sym.st_info);
		unit += type == STT_FILE;
		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym.st_shndx == SHN_UNDEF)
			continue;
		left = elf_object_code_left(o, sym.st_value);
		s.name = elf_strptr(source->elf, t->strings, sym.st_name);
		if (!left || !s.name || !*s.name)
			continue;
		s.name = s.own = plain_name(x, s.name);
		if (s.name && !x->go)
			s.own = own_name(x, s.name, &s.kind);
		if (!s.own)
			return -ENOMEM;
		s.addr = sym.st_value;
		s.size = sym.st_size < left ? sym.st_size : left;
		s.rank = rank(&sym);
		s.indirect = type == STT_GNU_IFUNC;
		s.unit = s.rank == 2 ? unit : 0;
		x->all[x->n++] = s;
	}
	return 0;
}

static int load_type(const struct elf_object *o, const struct symbol_source *source, uint32_t type)
{
	struct symbol_table t;

	return symbol_table_find(source, type, &t) ? load_table(o, source, &t) : 0;
}

static int by_address(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	return sort_order(a->addr, b->addr)	  ?: sort_order(a->rank, b->rank)
	       ?: sort_order(a->kind, b->kind) ?: sort_order(b->size, a->size)
	       ?: sort_order(a->order, b->order);
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
		if (gelf_getshdr(s, &h) && h.sh_flags & SHF_ALLOC && h.sh_addr <= addr &&
		    addr - h.sh_addr < h.sh_size && h.sh_size - (addr - h.sh_addr) < left)
			left = h.sh_size - (addr - h.sh_addr);
	return left;
}

/* Hand-written assembly often has no sizes: such a symbol reaches to the next one, or to its
 * section's end. */
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

/* The separate debug file of a stripped one. */
static bool open_separate(const struct elf_object *o, struct symbol_index *x)
{
	_cleanup_debug_file_ struct debug_file *self = NULL;

	/* Objects of a process are opened through its /proc; the file's own name is what others are
	 * found by. */
	return !o->is_image && debug_file_open(o->path, o->fd, false, &self, NULL) == 0 &&
	       debug_find_separate(o, self, o->options, false, &x->separate, &x->problem) == 0;
}

/* Stripped: what it exports, and the rest if it is in a debug file, or came along packed. */
static int load_stripped(const struct elf_object *o, const struct symbol_source *own)
{
	struct symbol_index *x = o->symbols;
	struct error no_separate;
	int r = load_type(o, own, SHT_DYNSYM);

	if (r == 0 && open_separate(o, x)) {
		x->problem.text[0] = 0; /* another one, elsewhere, did not belong */
		return load_type(o, &(struct symbol_source){x->separate->elf, x->separate->size},
				 SHT_SYMTAB);
	}
	no_separate = x->problem;
	if (r == 0 && minidebug_open(o, &x->mini, &x->problem) == 0) {
		x->problem.text[0] = 0;
		r = load_type(o, &(struct symbol_source){x->mini.elf, x->mini.size}, SHT_SYMTAB);
	} else if (no_separate.text[0]) {
		x->problem = no_separate;
	}
	return r;
}

/* Stubs of the dynamic linker's have call frame information, but are no functions. */
struct stubs {
	struct cfi_extent all[MAX_STUBS];
	size_t n;
};

static void find_stubs(const struct elf_object *o, struct stubs *ret)
{
	size_t strings, sections;
	Elf_Scn *s = NULL;
	GElf_Shdr h;

	ret->n = 0;
	if (elf_getshdrnum(o->elf, &sections) < 0 || sections > MAX_SECTIONS ||
	    elf_getshdrstrndx(o->elf, &strings) < 0 || !elf_object_has_strings(o, strings))
		return;
	while (ret->n < MAX_STUBS && (s = elf_nextscn(o->elf, s))) {
		const char *name;

		if (!gelf_getshdr(s, &h) || !(h.sh_flags & SHF_EXECINSTR))
			continue;
		name = elf_strptr(o->elf, strings, h.sh_name);
		if (name && strncmp(name, ".plt", 4) == 0 && h.sh_size <= UINT64_MAX - h.sh_addr)
			ret->all[ret->n++] = (struct cfi_extent){h.sh_addr, h.sh_addr + h.sh_size};
	}
}

/* A function that no table names. There is room for it. */
static int add_nameless(const struct elf_object *o, const struct cfi_extent *at)
{
	struct symbol_index *x = o->symbols;
	struct symbol s = {.addr = at->lo, .size = at->hi - at->lo, .rank = 2, .nameless = true};
	_cleanup_free_ char *name = NULL;

	if (asprintf(&name, "%s+0x%" PRIx64, elf_object_base_name(o), at->lo) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	s.name = s.own = keep_copy(x, name, strlen(name));
	if (!s.name)
		return -ENOMEM;
	x->all[x->n++] = s;
	x->n_nameless++;
	return 0;
}

/* What the tables of a stripped file leave out, its call frame information has, without names. The
 * symbols are sorted. Without memory for more there are no more. */
static void add_extents(const struct elf_object *o)
{
	struct symbol_index *x = o->symbols;
	const struct cfi_extent *all = x->extents;
	size_t n = x->n_extents, named = x->n, next = 0;
	struct symbol *grown = reallocarray(x->all, named + n + 1, sizeof(*grown));
	uint64_t covered = 0;
	struct stubs stubs;

	if (!grown)
		return;
	x->all = grown;
	find_stubs(o, &stubs);
	for (size_t i = 0; i < n; i++) {
		bool there = false;

		for (; next < named && x->all[next].addr <= all[i].lo; next++) {
			struct symbol *s = &x->all[next];

			/* Hand-written assembly often has no sizes. */
			there |= s->addr == all[i].lo;
			if (s->addr == all[i].lo && !s->size)
				s->size = all[i].hi - all[i].lo;
			if (s->addr + s->size > covered)
				covered = s->addr + s->size;
		}
		if (!there && covered <= all[i].lo &&
		    !cfi_extents_hold(stubs.all, stubs.n, all[i].lo) &&
		    add_nameless(o, &all[i]) < 0)
			return;
	}
}

/* Those of call frame information, as far as they are code. */
static void read_extents(const struct elf_object *o)
{
	struct symbol_index *x = o->symbols;
	size_t n = 0, used = 0;

	if (cfi_extents_read_here(o, &x->extents, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n && n <= MAX_EXTENTS; i++) {
		struct cfi_extent at = x->extents[i];
		uint64_t left = elf_object_code_left(o, at.lo);

		if (!left)
			continue;
		if (at.hi - at.lo > left)
			at.hi = at.lo + left;
		x->extents[used++] = at;
	}
	x->n_extents = used;
}

static int add_go_extents(const struct elf_object *o)
{
	struct symbol_index *x = o->symbols;
	int r = go_add_extents(o);

	x->n_extents = sort_unique(x->extents, x->n_extents, sizeof(*x->extents), compare_u64);
	return r;
}

int symbols_read(const struct elf_object *o)
{
	struct symbol_index *x = o->symbols;
	struct symbol_source own = {o->elf, o->size};
	int r;

	(void)go_table_of(o);
	read_extents(o);
	r = load_type(o, &own, SHT_SYMTAB);
	if (r == 0 && !x->n) {
		r = load_stripped(o, &own);
		sort_array(x->all, x->n, by_address);
		if (r == 0 && x->go)
			r = go_add_symbols(o);
		sort_array(x->all, x->n, by_address);
		if (r == 0)
			add_extents(o);
	}
	sort_array(x->all, x->n, by_address);
	fill_sizes(o);
	if (r == 0 && x->go)
		r = add_go_extents(o);
	return r;
}

int symbols_load(const struct elf_object *o)
{
	if (o->symbols->loaded)
		return 0;
	o->symbols->loaded = true;
	return o->readers->symbols(o);
}
