/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes ELF files of sections that claim what no compiler writes. */
#pragma once

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FORGED_CODE 0x400000

struct forged_section {
	const char *name;
	const void *bytes;
	Elf64_Shdr h; /* what matters of it; the first section is the code */
};

#define FORGED_NAME 32

/* Symbols of functions in the first section, at most @max. */
struct forged_symbols {
	Elf64_Sym *all;
	char (*names)[FORGED_NAME];
	size_t n;
};

static inline struct forged_symbols forge_symbols(size_t max)
{
	struct forged_symbols x = {.all = calloc(max + 1, sizeof(*x.all)),
				   .names = calloc(max + 1, sizeof(*x.names)),
				   .n = 1};

	assert_true(x.all && x.names);
	return x;
}

static inline void forge_symbol(struct forged_symbols *x, const char *name, uint64_t at,
				uint64_t size)
{
	x->all[x->n] = (Elf64_Sym){.st_name = (Elf64_Word)(x->n * FORGED_NAME),
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				   .st_shndx = 1,
				   .st_value = FORGED_CODE + at,
				   .st_size = size};
	memcpy(x->names[x->n++], name, strnlen(name, FORGED_NAME - 1));
}

static inline void forge_symbols_free(struct forged_symbols *x)
{
	free(x->all);
	free(x->names);
}

/* The table as section 2, its strings as section 3. */
#define FORGED_SYMBOLS(x)                                                     \
	{".symtab",                                                           \
	 (x).all,                                                             \
	 {.sh_type = SHT_SYMTAB,                                              \
	  .sh_size = (x).n * sizeof(Elf64_Sym),                               \
	  .sh_link = 3,                                                       \
	  .sh_info = 1,                                                       \
	  .sh_entsize = sizeof(Elf64_Sym)}},                                  \
	{                                                                     \
		".strtab", (x).names,                                         \
		{                                                             \
			.sh_type = SHT_STRTAB, .sh_size = (x).n * FORGED_NAME \
		}                                                             \
	}

static inline void forge_write(int fd, const void *bytes, size_t n, off_t at)
{
	assert_int_equal(pwrite(fd, bytes, n, at), n);
}

/* @n sections from number 1 on, their names, and @empty more. Returns the file, and a path that it
 * can be opened by. */
static inline int forge_elf(const struct forged_section *s, size_t n, size_t empty, char path[64])
{
	Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = sizeof(h),
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
			.e_shoff = sizeof(h) + sizeof(Elf64_Phdr),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = (Elf64_Half)(n + 2 + empty),
			.e_shstrndx = (Elf64_Half)(n + 1)};
	size_t at = h.e_shoff + h.e_shnum * sizeof(Elf64_Shdr), names = 1;
	Elf64_Phdr ph = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_vaddr = FORGED_CODE,
			 .p_offset = at,
			 .p_filesz = s[0].h.sh_size,
			 .p_memsz = s[0].h.sh_size};
	char text[256] = "";
	int fd = memfd_create("forged", MFD_CLOEXEC);

	(void)snprintf(path, 64, "/proc/self/fd/%d", fd);
	forge_write(fd, &h, sizeof(h), 0);
	forge_write(fd, &ph, sizeof(ph), sizeof(h));
	for (size_t i = 0; i <= n; i++) {
		struct forged_section x =
			i < n ? s[i]
			      : (struct forged_section){
					".shstrtab",
					text,
					{.sh_type = SHT_STRTAB, .sh_size = sizeof(text)}};

		x.h.sh_name = (Elf64_Word)names;
		x.h.sh_offset = at;
		if (i == 0) {
			x.h.sh_addr = FORGED_CODE;
			x.h.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
		}
		names += strlen(strcpy(text + names, x.name)) + 1;
		forge_write(fd, &x.h, sizeof(x.h), (off_t)(h.e_shoff + (i + 1) * sizeof(x.h)));
		forge_write(fd, x.bytes, x.h.sh_size, (off_t)at);
		at += (x.h.sh_size + 7) & ~7UL;
	}
	assert_int_equal(ftruncate(fd, (off_t)at), 0);
	return fd;
}
