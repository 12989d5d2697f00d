/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes small ELF files with debug information of every kind that the line map reads: versions 4
 * and 5, ranges and lists, split units with a .dwo or a package, an alternate file of dwz. All
 * bytes count, so that most mutations hit something. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SEED_ROOM 16384
#define CODE 0x401000 /* the code segment: one page */
#define SPLIT_ID 0x1122334455667788ULL

struct bytes {
	unsigned char p[SEED_ROOM / 4];
	size_t n;
};

/* What a seed has, by the bits of its number. */
enum {
	SEED_V5 = 1,
	SEED_SPLIT = 2,	   /* the tree is in a split unit */
	SEED_PACKAGE = 4,  /* which is in a package */
	SEED_LISTS = 8,	   /* lists of ranges, not low and high addresses */
	SEED_ALT = 16,	   /* the directory's name is in the alternate file */
	SEED_ARANGES = 32, /* the unit does not say itself what it covers */
	N_SEEDS = 64,
};

enum seed_section {
	S_TEXT,
	S_INFO,
	S_ABBREV,
	S_LINE,
	S_STR,
	S_ADDR,
	S_RANGES,
	S_RNGLISTS,
	S_ARANGES,
	S_INDEX,
	S_LINK,
	S_NOTE,
	N_SEED_SECTIONS
};

struct seed {
	unsigned int kind;
	bool split; /* this file is the split one */
	struct bytes s[N_SEED_SECTIONS];
};

static inline void put(struct bytes *b, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n && b->n < sizeof(b->p); i++)
		b->p[b->n++] = i < 8 ? (unsigned char)(v >> 8 * i) : 0;
}

static inline void put_text(struct bytes *b, const char *text)
{
	do
		put(b, (unsigned char)*text, 1);
	while (*text++);
}

/* Small numbers are their own LEB128. */
static inline void put_all(struct bytes *b, const unsigned char *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(b, all[i], 1);
}
#define PUT(b, ...)                                      \
	put_all(b, (const unsigned char[]){__VA_ARGS__}, \
		sizeof((const unsigned char[]){__VA_ARGS__}))

static inline void put_length(struct bytes *b, size_t at)
{
	uint32_t n = (uint32_t)(b->n - at - 4);

	memcpy(b->p + at, &n, 4);
}

/* Code, tag, children, pairs of attribute and form; forms of two bytes are LEB128 by hand. */
static inline void seed_abbrev(struct seed *s)
{
	struct bytes *b = &s->s[S_ABBREV];
	bool v5 = s->kind & SEED_V5, split = s->kind & SEED_SPLIT;

	if (!s->split) {
		PUT(b, 1, 0x11, !split, 0x10, 0x17); /* compile unit: stmt_list */
		if (s->kind & SEED_ALT)
			PUT(b, 0x1b, 0xa1, 0x3e); /* comp_dir, GNU_strp_alt */
		else
			PUT(b, 0x1b, 0x0e);	/* strp */
		PUT(b, 0x11, v5 ? 0x1b : 0x01); /* low_pc: addrx, addr */
		if (!(s->kind & SEED_ARANGES)) {
			if (s->kind & SEED_LISTS)
				PUT(b, 0x55, v5 ? 0x23 : 0x17); /* ranges: rnglistx, sec_offset */
			else
				PUT(b, 0x12, 0x06); /* high_pc: data4 */
		}
		if (v5)
			PUT(b, 0x73, 0x17, 0x74, 0x17); /* addr_base, rnglists_base */
		else
			PUT(b, 0xb3, 0x42, 0x17, 0xb2, 0x42,
			    0x17); /* GNU_addr_base, GNU_ranges_base */
		if (split && v5)
			PUT(b, 0x76, 0x08); /* dwo_name: string */
		else if (split)
			PUT(b, 0xb0, 0x42, 0x08, 0xb1, 0x42,
			    0x07); /* GNU_dwo_name: string, GNU_dwo_id: data8 */
		PUT(b, 0, 0);
	} else {
		PUT(b, 1, 0x11, 1);
		if (!v5)
			PUT(b, 0xb1, 0x42, 0x07); /* GNU_dwo_id */
		PUT(b, 0, 0);
	}
	PUT(b, 2, 0x2e, 1, 0x03, 0x08, 0x11); /* subprogram: name, low_pc */
	if (s->split && !v5)
		PUT(b, 0x81, 0x3e); /* GNU_addr_index */
	else
		PUT(b, v5 ? 0x1b : 0x01);
	PUT(b, 0x12, 0x0b, 0, 0); /* high_pc: data1 */
	PUT(b, 3, 0x1d, 0, 0x52, v5 ? 0x1b : 0x0b, 0x55, v5 ? 0x23 : 0x17, 0x58, 0x0b, 0x59, 0x0b,
	    0, 0);			      /* inlined: entry_pc, ranges */
	PUT(b, 4, 0x0b, 1, 0x01, 0x13, 0, 0); /* block, with a sibling */
	put(b, 0, 1);
}

static inline void seed_tree(struct seed *s, struct bytes *b)
{
	bool v5 = s->kind & SEED_V5;
	size_t sibling;

	put(b, 2, 1);
	put_text(b, "work");
	if (v5 || s->split)
		put(b, 0, 1);
	else
		put(b, CODE, 8);
	put(b, 0x40, 1);
	put(b, 3, 1);
	put(b, v5 ? 1 : 8, 1);
	put(b, 0, v5 ? 1 : 4);
	PUT(b, 1, 6);
	put(b, 4, 1);
	sibling = b->n;
	put(b, 0, 4);
	put(b, 3, 1);
	put(b, v5 ? 1 : 8, 1);
	put(b, v5 ? 1 : 0, v5 ? 1 : 4);
	PUT(b, 1, 8, 0);
	b->p[sibling] = (unsigned char)b->n;
	PUT(b, 0, 0);
}

static inline void seed_info(struct seed *s)
{
	struct bytes *b = &s->s[S_INFO];
	bool v5 = s->kind & SEED_V5, split = s->kind & SEED_SPLIT;

	put(b, 0, 4);
	put(b, v5 ? 5 : 4, 2);
	if (v5) {
		PUT(b, s->split ? 5 : split ? 4 : 1, 8);
		put(b, 0, 4);
		if (split)
			put(b, SPLIT_ID, 8);
	} else {
		put(b, 0, 4);
		put(b, 8, 1);
	}
	put(b, 1, 1);
	if (s->split) {
		if (!v5)
			put(b, SPLIT_ID, 8);
	} else {
		put(b, 0, 4);
		put(b, 0, 4);
		if (v5)
			put(b, 0, 1);
		else
			put(b, CODE, 8);
		if (!(s->kind & SEED_ARANGES))
			put(b, s->kind & SEED_LISTS ? 0 : 0x80, s->kind & SEED_LISTS && v5 ? 1 : 4);
		put(b, v5 ? 8 : 0, 4);
		put(b, v5 ? 12 : 0, 4);
		if (split)
			put_text(b, "seed.dwo");
		if (split && !v5)
			put(b, SPLIT_ID, 8);
	}
	if (s->split || !split)
		seed_tree(s, b);
	put_length(b, 0);
}

static inline void seed_line(struct seed *s)
{
	struct bytes *b = &s->s[S_LINE];
	bool v5 = s->kind & SEED_V5;
	size_t header;

	put(b, 0, 4);
	put(b, v5 ? 5 : 4, 2);
	if (v5)
		PUT(b, 8, 0);
	header = b->n;
	put(b, 0, 4);
	PUT(b, 1, 1, 1, (unsigned char)-5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1);
	if (v5) {
		PUT(b, 1, 1, 0x08, 2); /* directories: path, string */
		put_text(b, "/seed");
		put_text(b, "inc");
		PUT(b, 2, 1, 0x0e, 2, 0x0b, 2); /* files: path, strp; directory, data1 */
		put(b, 6, 4);
		put(b, 0, 1);
		put(b, 10, 4);
		put(b, 1, 1);
	} else {
		put_text(b, "inc");
		put(b, 0, 1);
		put_text(b, "a.c");
		PUT(b, 0, 0, 0);
		put_text(b, "b.h");
		PUT(b, 1, 0, 0, 0);
	}
	put_length(b, header);
	for (int i = 0; i < 2; i++) {
		PUT(b, 0, 9, 2); /* set_address */
		put(b, CODE + (i ? 0x40 : 0), 8);
		PUT(b, 3, 4, 1, 5, 7, 4, v5 ? 1 : 2, 10, 0x4b, 6, 4, v5 ? 0 : 1, 0x83, 8, 9, 4, 0,
		    3, 0x7d, 0xf3, 2, 0x10, 0, 1, 1);
	}
	put_length(b, 0);
}

static inline void seed_lists(struct seed *s)
{
	struct bytes *b = &s->s[S_RNGLISTS];

	if (s->kind & SEED_V5) {
		put(b, 0, 4);
		PUT(b, 5, 0, 8, 0);
		put(b, 2, 4);
		put(b, 8, 4);
		put(b, 15, 4);
		PUT(b, 3, 0, 0x30, 4, 0x40, 0x70, 0); /* startx_length, offset_pair */
		PUT(b, 1, 1, 4, 0, 8, 2, 0, 1, 0);    /* base_addressx, offset_pair, startx_endx */
		put_length(b, 0);
	} else {
		b = &s->s[S_RANGES];
		for (int i = 0; i < 2; i++) {
			put(b, i * 0x40ULL, 8);
			put(b, i * 0x40ULL + 0x20, 8);
		}
		put(b, UINT64_MAX, 8);
		put(b, CODE + 0x20, 8);
		put(b, 0, 8);
		put(b, 8, 8);
		put(b, 0, 16);
	}
	b = &s->s[S_ADDR];
	if (s->kind & SEED_V5) {
		put(b, 20, 4);
		PUT(b, 5, 0, 8, 0);
	}
	put(b, CODE, 8);
	put(b, CODE + 0x40, 8);
	b = &s->s[S_ARANGES];
	put(b, 44, 4);
	put(b, 2, 2);
	put(b, 0, 4);
	PUT(b, 8, 0, 0, 0, 0, 0);
	put(b, CODE, 8);
	put(b, 0x80, 8);
	put(b, 0, 16);
}

/* One row; the slot by the id's low bits. */
static inline void seed_index(struct seed *s)
{
	static const unsigned char columns[] = {1, 3, 8};
	struct bytes *b = &s->s[S_INDEX];
	const enum seed_section parts[] = {S_INFO, S_ABBREV, S_RNGLISTS};

	put(b, s->kind & SEED_V5 ? 5 : 2, 4);
	put(b, 3, 4);
	put(b, 1, 4);
	put(b, 2, 4);
	put(b, SPLIT_ID, 8);
	put(b, 0, 8);
	put(b, 1, 4);
	put(b, 0, 4);
	for (size_t i = 0; i < 3; i++)
		put(b, columns[i], 4);
	for (size_t i = 0; i < 3; i++)
		put(b, 0, 4);
	for (size_t i = 0; i < 3; i++)
		put(b, s->s[parts[i]].n, 4);
}

/* The sections as an ELF file; returns its size, at most SEED_ROOM. */
static inline size_t seed_link(const struct seed *s, unsigned char *out)
{
	static const char *const names[N_SEED_SECTIONS] = {
		".text",	  ".debug_info",     ".debug_abbrev",	  ".debug_line",
		".debug_str",	  ".debug_addr",     ".debug_ranges",	  ".debug_rnglists",
		".debug_aranges", ".debug_cu_index", ".gnu_debugaltlink", ".note.gnu.build-id"};
	Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = sizeof(h),
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
			.e_shentsize = sizeof(Elf64_Shdr)};
	Elf64_Phdr ph = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_vaddr = CODE,
			 .p_memsz = 0x1000,
			 .p_filesz = 64};
	Elf64_Shdr sh[N_SEED_SECTIONS + 2] = {{0}};
	struct bytes strings = {.n = 1};
	size_t at = sizeof(h) + sizeof(ph), n = 1;

	for (size_t i = 0; i < N_SEED_SECTIONS; i++) {
		if (!s->s[i].n)
			continue;
		sh[n] = (Elf64_Shdr){.sh_name = (Elf64_Word)strings.n,
				     .sh_type = SHT_PROGBITS,
				     .sh_offset = at,
				     .sh_size = s->s[i].n,
				     .sh_addralign = 1,
				     .sh_flags = i == S_TEXT ? SHF_ALLOC | SHF_EXECINSTR : 0,
				     .sh_addr = i == S_TEXT ? CODE : 0};
		put_text(&strings, names[i]);
		if (s->split && i != S_INDEX) {
			strings.n--;
			put_text(&strings, ".dwo");
		}
		memcpy(out + at, s->s[i].p, s->s[i].n);
		at += s->s[i].n;
		n++;
	}
	sh[n] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = strings.n, .sh_addralign = 1};
	memcpy(out + at, strings.p, strings.n);
	at = (at + strings.n + 7) & ~7UL;
	h.e_shstrndx = (Elf64_Half)n++;
	h.e_shnum = (Elf64_Half)n;
	h.e_shoff = at;
	memcpy(out + at, sh, n * sizeof(*sh));
	memcpy(out, &h, sizeof(h));
	memcpy(out + sizeof(h), &ph, sizeof(ph));
	return at + n * sizeof(*sh);
}

/* The sections of the program of s->kind, but for its code. */
static inline void seed_sections(struct seed *s)
{
	seed_abbrev(s);
	seed_info(s);
	seed_line(s);
	seed_lists(s);
	put_text(&s->s[S_STR], "/seed");
	put_text(&s->s[S_STR], "a.c");
	put_text(&s->s[S_STR], "b.h");
}

/* The program of a kind. */
static inline size_t seed_program(unsigned int kind, unsigned char *out)
{
	struct seed s = {.kind = kind};

	s.s[S_TEXT].n = 64;
	seed_sections(&s);
	if (kind & SEED_ALT) {
		put_text(&s.s[S_LINK], "seed.alt");
		PUT(&s.s[S_LINK], 0xab, 0xcd);
	}
	return seed_link(&s, out);
}

/* Its .dwo or .dwp. */
static inline size_t seed_split(unsigned int kind, unsigned char *out)
{
	struct seed s = {.kind = kind, .split = true};

	seed_abbrev(&s);
	seed_info(&s);
	if (kind & SEED_V5)
		seed_lists(&s);
	s.s[S_ADDR].n = s.s[S_ARANGES].n = 0;
	if (kind & SEED_PACKAGE)
		seed_index(&s);
	return seed_link(&s, out);
}

/* Its alternate file. The build id is in a note. */
static inline size_t seed_alternate(unsigned char *out)
{
	struct seed s = {0};

	put_text(&s.s[S_STR], "/alternate/seed");
	PUT(&s.s[S_NOTE], 4, 0, 0, 0, 2, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0, 0xab,
	    0xcd, 0, 0);
	return seed_link(&s, out);
}
