// SPDX-License-Identifier: BSD-2-Clause
/* The functions behind our wrappers of the same name: those of the next library that has them, the C library as a rule. dlsym would do it,
 * but in a glibc of before 2.34 it is in a library that a program need not have; so the symbol tables of what is loaded are looked through. */
#include "handover.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

struct search {
	const char *name;
	uint32_t hash;
	bool past; /* our own library */
	void *found;
};

struct tables {
	const Elf64_Sym *symbols;
	const char *strings;
	const Elf64_Half *versions;
	const uint32_t *hash;
};

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* The dynamic linker has made addresses of most; of an object whose section is read-only they are distances. */
static const void *at(const struct dl_phdr_info *o, Elf64_Addr value)
{
	return (const void *)(uintptr_t)(value < o->dlpi_addr ? value + o->dlpi_addr : value);
}

static bool tables_of(const struct dl_phdr_info *o, struct tables *t)
{
	const Elf64_Dyn *d = NULL;

	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const Elf64_Dyn *)(uintptr_t)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_SYMTAB)
			t->symbols = at(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			t->strings = at(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_VERSYM)
			t->versions = at(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			t->hash = at(o, d->d_un.d_ptr);
	return t->symbols && t->strings && t->hash;
}

/* Of functions of several versions the one that programs are linked with today. */
static bool is_default(const struct tables *t, uint32_t i, const char *name)
{
	return t->symbols[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(t->symbols[i].st_info) == STT_FUNC && !(t->versions && t->versions[i] & 0x8000) &&
	       strcmp(t->strings + t->symbols[i].st_name, name) == 0;
}

/* 0: it has none. */
static uint32_t find(const struct tables *t, const char *name, uint32_t hash)
{
	uint32_t n = t->hash[0], first = t->hash[1], words = t->hash[2], i;
	const uint32_t *buckets = t->hash + 4 + 2 * words, *chain = buckets + n;

	if (!n || (i = buckets[hash % n]) < first)
		return 0;
	for (;; i++) {
		if ((chain[i - first] | 1) == (hash | 1) && is_default(t, i, name))
			return i;
		if (chain[i - first] & 1)
			return 0;
	}
}

static bool is_ours(const struct dl_phdr_info *o)
{
	uint64_t here = (uint64_t)(uintptr_t)gnu_hash;

	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_LOAD && here - o->dlpi_addr - o->dlpi_phdr[i].p_vaddr < o->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static int look(struct dl_phdr_info *o, size_t size, void *arg)
{
	struct search *s = arg;
	struct tables t = {0};
	uint32_t i;

	(void)size;
	if (!s->past) {
		s->past = is_ours(o);
		return 0;
	}
	if (!tables_of(o, &t))
		return 0;
	i = find(&t, s->name, s->hash);
	if (i)
		s->found = (void *)(uintptr_t)(o->dlpi_addr + t.symbols[i].st_value);
	return i != 0;
}

void *next_function(const char *name)
{
	struct search s = {.name = name, .hash = gnu_hash(name)};

	(void)dl_iterate_phdr(look, &s);
	return s.found;
}
