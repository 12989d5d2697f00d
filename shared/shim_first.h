/* SPDX-License-Identifier: BSD-2-Clause */
/* Libraries that have to be the first: AddressSanitizer's runtime ends a program in which another
 * one is loaded before it. A preloaded library would be, so the runtime is preloaded, too, before
 * ours: "LD_PRELOAD=libasan.so.8:/proc/self/fd/./<n>". The "./" says that the element before it is
 * ours as well. */
#pragma once

#include "shared/shim_launch.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#define SHIM_FIRST_MAX 64
#define SHIM_FIRST_MARK "./"

static inline bool shim_read_at(int fd, void *to, size_t size, unsigned long long offset)
{
	return offset <= 1ULL << 62 && raw_call(SYS_pread64, fd, to, size, offset) == (long)size;
}

/* The first program header of @type; of PT_LOAD, the one that has @vaddr from the file. */
static inline bool shim_header(int fd, const Elf64_Ehdr *elf, unsigned int type,
			       unsigned long long vaddr, Elf64_Phdr *ret)
{
	for (unsigned int i = 0; i < elf->e_phnum && i < 64; i++)
		if (shim_read_at(fd, ret, sizeof(*ret), elf->e_phoff + i * sizeof(*ret)) &&
		    ret->p_type == type &&
		    (type != PT_LOAD || vaddr - ret->p_vaddr < ret->p_filesz))
			return true;
	return false;
}

/* @ret: what the executable of @fd has to have loaded first, a bare name; "" if that is any
 * library. Whatever is in the file, this is short. */
static inline void shim_first_library(int fd, char ret[SHIM_FIRST_MAX])
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";
	unsigned long long strings = 0, name = 0;
	bool has_name = false;
	Elf64_Ehdr elf;
	Elf64_Phdr p;
	size_t size;
	Elf64_Dyn d;

	ret[0] = '\0';
	if (!shim_read_at(fd, &elf, sizeof(elf), 0) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_phentsize != sizeof(Elf64_Phdr))
		return;
	if (!shim_header(fd, &elf, PT_DYNAMIC, 0, &p))
		return;
	for (unsigned int i = 0;
	     i < 256 && i < p.p_filesz / sizeof(d) &&
	     shim_read_at(fd, &d, sizeof(d), p.p_offset + i * sizeof(d)) && d.d_tag != DT_NULL;
	     i++) {
		if (d.d_tag == DT_STRTAB)
			strings = d.d_un.d_ptr;
		if (d.d_tag == DT_NEEDED && !has_name) {
			name = d.d_un.d_val;
			has_name = true;
		}
	}
	if (!has_name || !shim_header(fd, &elf, PT_LOAD, strings, &p) || name > 1ULL << 40 ||
	    !shim_read_at(fd, ret, SHIM_FIRST_MAX, strings - p.p_vaddr + p.p_offset + name)) {
		ret[0] = '\0';
		return;
	}
	size = strnlen(ret, SHIM_FIRST_MAX);
	/* With the names that the runtime itself looks for. */
	if (size == SHIM_FIRST_MAX || strspn(ret, plain) != size ||
	    (!strstr(ret, "libasan.so") && !strstr(ret, "libclang_rt.asan")))
		ret[0] = '\0';
}

#define SHIM_PRELOAD "LD_PRELOAD="

/* The environment of a program that is about to be started. */
struct shim_environment {
	char *const *envp;
	const char *old;	    /* LD_PRELOAD=..., in @envp; or NULL */
	size_t n, had;		    /* strings; bytes of @old */
	char first[SHIM_FIRST_MAX]; /* of shim_first_library */
};

/* Upper limit of the bytes that shim_preload writes. */
static inline size_t shim_preload_room(const struct shim_environment *e)
{
	return e->had + sizeof(e->first) + 48;
}

/* "LD_PRELOAD=<what there was>:/proc/self/fd/<first>", with the separator that there was. */
static inline void shim_preload(const struct shim_environment *e, int first, char *to)
{
	bool empty = !e->old || e->had == strlen(SHIM_PRELOAD);

	if (e->old) {
		memcpy(to, e->old, e->had);
		to += e->had;
		*to++ = strchr(e->old, ' ') && !strchr(e->old, ':') ? ' ' : ':';
	} else {
		memcpy(to, SHIM_PRELOAD, strlen(SHIM_PRELOAD));
		to += strlen(SHIM_PRELOAD);
	}
	/* Behind other libraries it would not be the first. */
	if (empty && e->first[0])
		to = stpcpy(stpcpy(stpcpy(to, e->first), ":/proc/self/fd/"), SHIM_FIRST_MARK);
	else
		to = stpcpy(to, "/proc/self/fd/");
	shim_put_number(to, (unsigned int)first);
}

/* The environment with @entry for the old LD_PRELOAD; @vector has room for n + 2. */
static inline void shim_environment_fill(const struct shim_environment *e, char *entry,
					 char **vector)
{
	size_t where = e->n;

	for (size_t i = 0; i < e->n; i++) {
		vector[i] = e->envp[i];
		if (e->envp[i] == e->old)
			where = i;
	}
	vector[e->n] = vector[e->n + 1] = NULL;
	vector[where] = entry;
}
