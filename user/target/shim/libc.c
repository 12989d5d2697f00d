// SPDX-License-Identifier: BSD-2-Clause
/* Functions of other objects, found in the tables of what the dynamic linker has loaded. dlsym and
 * dl_iterate_phdr would do it, but another preloaded library may have its own (and a glibc of
 * before 2.34 has dlsym in a library that a program need not have). The linker's list is read
 * without its lock: what is looked for is in objects that were there at the start, which stay. */
#include "libc.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What musl's programs lack is weak: they would not start. glibc's linker has the first; musl's
 * list begins with the program, whose DT_DEBUG leads to what is called _r_debug elsewhere. */
#pragma weak _r_debug
#pragma weak dl_iterate_phdr

struct tables {
	const Elf64_Sym *symbols;
	const char *strings, *soname;
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

/* The dynamic linker has made addresses of most; of an object whose section is read-only (the
 * vDSO) they are distances. */
static const void *at(const struct link_map *o, Elf64_Addr value)
{
	return (const void *)(uintptr_t)(value < o->l_addr ? value + o->l_addr : value);
}

static struct tables tables_of(const struct link_map *o)
{
	struct tables t = {0};
	Elf64_Addr soname = 0;

	for (const Elf64_Dyn *d = o->l_ld; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_SYMTAB)
			t.symbols = at(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			t.strings = at(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_VERSYM)
			t.versions = at(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			t.hash = at(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_SONAME)
			soname = d->d_un.d_val;
	t.soname = t.strings && soname ? t.strings + soname : "";
	return t;
}

/* Of functions of several versions the one that programs are linked with today. */
static bool is_default(const struct tables *t, uint32_t i, const char *name)
{
	return t->symbols[i].st_shndx != SHN_UNDEF &&
	       ELF64_ST_TYPE(t->symbols[i].st_info) == STT_FUNC &&
	       !(t->versions && t->versions[i] & 0x8000) &&
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

static void *function_of(const struct link_map *o, const char *name)
{
	struct tables t = tables_of(o);
	uint32_t i = t.symbols && t.strings && t.hash ? find(&t, name, gnu_hash(name)) : 0;

	return i ? (void *)(uintptr_t)(o->l_addr + t.symbols[i].st_value) : NULL;
}

static int find_debug(struct dl_phdr_info *o, size_t size, void *ret)
{
	(void)size;
	for (unsigned int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
			for (const Elf64_Dyn *d =
				     (const void *)(uintptr_t)(o->dlpi_addr +
							       o->dlpi_phdr[i].p_vaddr);
			     d->d_tag != DT_NULL; d++)
				if (d->d_tag == DT_DEBUG)
					*(const void **)ret =
						(const void *)(uintptr_t)d->d_un.d_ptr;
	return 1;
}

/* Is first called by the constructor: later the linker's lock could be held. */
static const struct link_map *first_object(void)
{
	static const struct r_debug *known;
	const struct r_debug *d = &_r_debug;

	if (!d)
		d = __atomic_load_n(&known, __ATOMIC_RELAXED);
	if (!d && dl_iterate_phdr) {
		(void)dl_iterate_phdr(find_debug, &d);
		__atomic_store_n(&known, d, __ATOMIC_RELAXED);
	}
	return d ? d->r_map : NULL;
}

void *next_function(const char *name)
{
	bool past = false;
	void *found = NULL;

	for (const struct link_map *o = first_object(); o && !found; o = o->l_next) {
		if (past)
			found = function_of(o, name);
		past |= o->l_ld == _DYNAMIC;
	}
	return found;
}

/* musl's has no soname, and is known by its path: that of the program's interpreter. */
static bool is_musl(const char *path)
{
	const char *name = path;

	for (; path && *path; path++)
		if (*path == '/')
			name = path + 1;
	return name && (strncmp(name, "ld-musl-", 8) == 0 || strncmp(name, "libc.musl-", 10) == 0 ||
			strcmp(name, "libc.so") == 0);
}

void *own_function(const char *soname, const char *name)
{
	for (const struct link_map *o = first_object(); o; o = o->l_next)
		if (soname ? strcmp(tables_of(o).soname, soname) == 0 : is_musl(o->l_name))
			return function_of(o, name);
	return NULL;
}

int *shim_errno(void)
{
	static int *(*location)(void);
	static int none;
	int *(*f)(void) = __atomic_load_n(&location, __ATOMIC_RELAXED);

	if (!f) {
		f = (int *(*)(void))own_function(SHIM_LIBC, "__errno_location");
		if (!f)
			f = (int *(*)(void))own_function(NULL, "__errno_location");
		__atomic_store_n(&location, f, __ATOMIC_RELAXED);
	}
	return f ? f() : &none;
}

__attribute__((constructor)) static void find_errno(void)
{
	(void)shim_errno();
}

long shim_result(long result)
{
	if (result < 0 && result >= -4095) {
		errno = (int)-result;
		return -1;
	}
	return result;
}
