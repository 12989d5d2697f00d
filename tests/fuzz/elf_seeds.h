/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes small ELF files that have all that is read of one: symbols of every kind, code with jumps,
 * notes of probes, a dynamic section, call frame information, mini debug information, Go's table of
 * functions, and the debug information of line_seeds.h, which may be compressed. */
#pragma once

#include "elf_change.h"
#include "line_seeds.h"

#include <libdeflate.h>
#include <lzma.h>
#include <stdlib.h>

#define DATA 0x410000 /* where the file is mapped as a whole, but for its code */
#define TEXT_SIZE 0x200
#define ELF_SEED_ROOM (4 * SEED_ROOM)

/* What a seed has, by the bits of its number. */
enum {
	ELF_STRIPPED = 1, /* its symbols are in mini debug information */
	ELF_GO = 2,
	ELF_LINES = 4,	   /* of the kind that the bits above these say */
	ELF_PACKED = 8,	   /* and compressed */
	ELF_HEADLESS = 16, /* no section headers */
	ELF_LINES_SHIFT = 5,
};

enum elf_part {
	E_TEXT,
	E_NOTE,
	E_PROBES,
	E_PROBES_BASE,
	E_INTERP,
	E_DYNSYM,
	E_DYNSTR,
	E_DYNAMIC,
	E_FRAME,
	E_FRAME_HDR,
	E_MINI,
	E_SYMTAB,
	E_STRTAB,
	E_GO,
	E_GO_MODULE,
	N_ELF_PARTS
};

struct elf_parts {
	struct bytes p[N_ELF_PARTS];
	struct seed lines;
};

static inline void seed_code(struct rng *r, struct bytes *b)
{
	static const struct {
		unsigned char n, code[10];
	} all[] = {{1, {0x55}},
		   {1, {0x90}},
		   {1, {0xc3}},
		   {3, {0x48, 0x89, 0xe5}},
		   {4, {0xf3, 0x0f, 0x1e, 0xfa}},
		   {2, {0x66, 0x90}},
		   {5, {0x0f, 0x1f, 0x44, 0, 0}},
		   {2, {0xeb, 0xfa}},
		   {2, {0x75, 0x05}},
		   {2, {0x74, 0xf0}},
		   {5, {0xe8, 0x10}},
		   {5, {0xe9, 0xf0, 0xff, 0xff, 0xff}},
		   {6, {0x0f, 0x84, 0x20}},
		   {2, {0xff, 0xe0}},
		   {6, {0xff, 0x25, 0x10}},
		   {3, {0xff, 0x24, 0xc5}},
		   {4, {0xf0, 0x48, 0xff, 0x07}},
		   {9, {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28}},
		   {2, {0x0f, 0x05}},
		   {1, {0xcc}},
		   {2, {0x0f, 0x0b}},
		   {4, {0x48, 0x83, 0xec, 0x18}},
		   {2, {0xe2, 0xfb}},
		   {6, {0xc7, 0xf8, 4}},
		   {1, {0xc9}}};

	while (b->n < TEXT_SIZE) {
		size_t i = rng_below(r, sizeof(all) / sizeof(all[0]));

		put_all(b, all[i].code, all[i].n);
	}
	b->n = TEXT_SIZE;
}

static inline void seed_symbol(struct bytes *table, struct bytes *strings, const char *name,
			       unsigned int info, unsigned int section, uint64_t addr,
			       uint64_t size)
{
	Elf64_Sym s = {.st_info = (unsigned char)info,
		       .st_shndx = (Elf64_Half)section,
		       .st_value = addr,
		       .st_size = size};

	if (!table->n)
		put(table, 0, sizeof(s));
	if (!strings->n)
		put(strings, 0, 1);
	s.st_name = (Elf64_Word)strings->n;
	put_text(strings, name);
	put_all(table, (const unsigned char *)&s, sizeof(s));
}

/* Plain, C++, Rust old and new; parts and copies; an alias; without a size; from another file;
 * data; a version. */
static inline void seed_symbols(struct bytes *table, struct bytes *strings)
{
	static const struct {
		const char *name;
		unsigned char info, section, at, size;
	} all[] = {{"a.c", ELF64_ST_INFO(STB_LOCAL, STT_FILE), 0xf1, 0, 0},
		   {"helper", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 1, 0x80, 0x20},
		   {"work.cold", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 1, 0xa0, 0x10},
		   {"work.isra.0", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 1, 0xb0, 0x10},
		   {"gone.part.0", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 1, 0xc0, 0x10},
		   {"b.c", ELF64_ST_INFO(STB_LOCAL, STT_FILE), 0xf1, 0, 0},
		   {"helper", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 1, 0xd0, 0x10},
		   {"main", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1, 0, 0x40},
		   {"work", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1, 0x40, 0x40},
		   {"alias", ELF64_ST_INFO(STB_WEAK, STT_FUNC), 1, 0x40, 0x40},
		   {"_ZN2ns1fEi", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1, 0xe0, 0},
		   {"_ZN4core3fmt5write17h0123456789abcdefE", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 1,
		    0xf0, 0x8},
		   {"_RNvC6_123foo3bar", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 1, 0xf8, 0x8},
		   {"data", ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 4, 0, 8},
		   {"chosen@@V_1", ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC), 1, 0x10, 4}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		seed_symbol(table, strings, all[i].name, all[i].info,
			    all[i].section == 0xf1 ? SHN_ABS : all[i].section,
			    (all[i].section == 4 ? DATA : CODE) + all[i].at, all[i].size);
}

static inline void seed_dynamic(struct elf_parts *s)
{
	struct bytes *strings = &s->p[E_DYNSTR], *b = &s->p[E_DYNAMIC];

	seed_symbol(&s->p[E_DYNSYM], strings, "dlmopen", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		    SHN_UNDEF, 0, 0);
	seed_symbol(&s->p[E_DYNSYM], strings, "work", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1,
		    CODE + 0x40, 0x40);
	put(b, DT_NEEDED, 8);
	put(b, strings->n, 8);
	put_text(strings, "libnone.so.1");
	put(b, DT_RUNPATH, 8);
	put(b, strings->n, 8);
	put_text(strings, "$ORIGIN/../lib:${ORIGIN}::/nowhere");
	put(b, DT_NULL, 16);
}

static inline void seed_probe(struct bytes *b, uint64_t at, const char *name)
{
	size_t head = b->n, desc;
	uint32_t n;

	put(b, 8, 4);
	put(b, 0, 4);
	put(b, 3, 4);
	put_text(b, "stapsdt");
	desc = b->n;
	put(b, at, 8);
	put(b, DATA, 8);
	put(b, 0, 8);
	put_text(b, "provider");
	put_text(b, name);
	put_text(b, "-4@%eax 8@16(%rsp)");
	n = (uint32_t)(b->n - desc);
	memcpy(b->p + head + 4, &n, sizeof(n));
	while (b->n % 4)
		put(b, 0, 1);
}

/* A CIE and an entry for each function of 64 bytes. @at: where it will be. */
static inline void seed_frame(struct bytes *b, uint64_t at)
{
	PUT(b, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0,
	    0);
	put_length(b, 0);
	for (unsigned int i = 0; i < TEXT_SIZE / 0x40; i++) {
		size_t from = b->n;

		put(b, 0, 4);
		put(b, b->n, 4);
		put(b, CODE + i * 0x40 - (at + b->n), 4);
		put(b, 0x40, 4);
		PUT(b, 0, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x50, 0x0c, 7, 8, 0, 0, 0);
		put_length(b, from);
	}
	put(b, 0, 4);
}

static inline void set(struct bytes *b, size_t at, uint64_t v, size_t n)
{
	memcpy(b->p + at, &v, n);
}

/* Go's table of two functions, each with an inlined call, that will be at @at, as Go 1.16, 1.18
 * and 1.20 write it (@version 0, 1, 2). In the later two the module says where such calls are. */
static inline void seed_go(struct bytes *b, struct bytes *module, uint64_t version, uint64_t at)
{
	static const uint32_t magics[] = {0xfffffffa, 0xfffffff0, 0xfffffff1};
	size_t place = version ? 4 : 8, offsets = version ? 32 : 24, more[2], tree[2];
	uint64_t parts[5], code = version ? 0 : CODE;

	put(b, magics[version], 4);
	put(b, 0x08010000, 4);
	put(b, 2, 8);
	put(b, 1, 8);
	if (version)
		put(b, CODE, 8);
	put(b, 0, sizeof(parts));
	parts[0] = b->n;
	put_text(b, "main.work");
	put_text(b, "main.main");
	put_text(b, "main.inner");
	parts[1] = b->n;
	put(b, 0, 4);
	parts[2] = b->n;
	put_text(b, "/seed/go.go");
	parts[3] = b->n;
	/* From 1 on, the file; from 5 on, lines; from 14 on, the inlined call. */
	PUT(b, 0, 2, 0x80, 1, 0, 22, 0x10, 4, 0x10, 6, 0x20, 5, 0x40, 0, 0, 0x20, 2, 0x20, 1, 0x40,
	    0);
	while (b->n % 8)
		put(b, 0, 1);
	parts[4] = b->n;
	put(b, 0, 5 * place);
	for (size_t i = 0; i < 2; i++) {
		while (b->n % 8)
			put(b, 0, 1);
		more[i] = b->n - parts[4];
		put(b, code + 0x80 * i, place);
		put(b, i * sizeof("main.work"), 4);
		put(b, 0, 12);
		put(b, 1, 4);
		put(b, 5, 4);
		put(b, 3, 4);
		put(b, 0, version == 2 ? 11 : 7);
		put(b, 4, 1);
		put(b, 0, 8);
		put(b, 14, 4);
		while (!version && b->n % 8)
			put(b, 0, 1);
		put(b, 0, 3 * place);
		tree[i] = b->n;
		put(b, 0, place);
	}
	for (size_t i = 0; i < 2 && !version; i++)
		set(b, tree[i], at + b->n, place);
	set(module, 8 * (version == 1 ? 38 : 40), at + b->n, 8);
	put(b, 0, version == 2 ? 4 : 12);
	put(b, 2 * sizeof("main.work"), 4);
	put(b, 0x10, 4);
	put(b, 0, 4);
	for (size_t i = 0; i < 2; i++) {
		set(b, parts[4] + 2 * i * place, code + 0x80 * i, place);
		set(b, parts[4] + (2 * i + 1) * place, more[i], place);
		set(b, parts[4] + (2 * i + 2) * place, code + 0x80 * (i + 1), place);
	}
	for (size_t i = 0; i < 5; i++)
		set(b, offsets + 8 * i, parts[i], 8);
	set(module, 0, at, 8);
	for (size_t i = 0; i < 5; i++)
		set(module, 8 + 24 * i, at + parts[i], 8);
	set(module, 8 * 22, CODE, 8);
	module->n = 48 * 8;
}

static inline size_t seed_mini(struct rng *r, struct bytes *ret);

struct elf_file {
	unsigned char *out;
	size_t at, n_sections;
	Elf64_Shdr sh[N_ELF_PARTS + N_SEED_SECTIONS + 2];
	struct bytes strings;
};

static inline void link_section(struct elf_file *f, const char *name, const struct bytes *b,
				Elf64_Shdr s)
{
	f->at = (f->at + 7) & ~7UL;
	s.sh_name = (Elf64_Word)f->strings.n;
	s.sh_offset = f->at;
	s.sh_size = b->n;
	s.sh_addralign = 4;
	if (s.sh_flags & SHF_ALLOC)
		s.sh_addr = s.sh_flags & SHF_EXECINSTR ? CODE : DATA + f->at;
	put_text(&f->strings, name);
	memcpy(f->out + f->at, b->p, b->n);
	f->at += b->n;
	f->sh[f->n_sections++] = s;
}

static inline void link_debug(struct elf_file *f, const struct elf_parts *s, bool packed)
{
	static const char *const names[N_SEED_SECTIONS] = {
		NULL,	       ".debug_info",	".debug_abbrev",   ".debug_line",   ".debug_str",
		".debug_addr", ".debug_ranges", ".debug_rnglists", ".debug_aranges"};

	for (size_t i = S_INFO; i < N_SEED_SECTIONS; i++) {
		Elf64_Chdr head = {
			.ch_type = ELFCOMPRESS_ZLIB, .ch_size = s->lines.s[i].n, .ch_addralign = 1};
		struct libdeflate_compressor *c;
		struct bytes b = {.n = 0};

		if (!names[i] || !s->lines.s[i].n)
			continue;
		if (!packed) {
			link_section(f, names[i], &s->lines.s[i],
				     (Elf64_Shdr){.sh_type = SHT_PROGBITS});
			continue;
		}
		put_all(&b, (const unsigned char *)&head, sizeof(head));
		c = libdeflate_alloc_compressor(1);
		if (c)
			b.n += libdeflate_zlib_compress(c, s->lines.s[i].p, s->lines.s[i].n,
							b.p + b.n, sizeof(b.p) - b.n);
		libdeflate_free_compressor(c);
		link_section(f, names[i], &b,
			     (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_COMPRESSED});
	}
}

/* The seed of a kind, at most ELF_SEED_ROOM bytes; returns how many. Its code is @r's choice. */
static inline size_t seed_elf(struct rng *r, unsigned int kind, unsigned char *out)
{
	static struct elf_parts s;
	static struct elf_file f;
	Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = sizeof(h),
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 5,
			.e_shentsize = sizeof(Elf64_Shdr)};
	Elf64_Phdr ph[5];
	Elf64_Shdr *text, *note, *interp, *header;
	struct bytes none = {.n = 0};
	size_t table;

	memset(&s, 0, sizeof(s));
	memset(&f, 0, sizeof(f));
	f = (struct elf_file){.out = out, .at = sizeof(h) + sizeof(ph)};
	memset(out, 0, ELF_SEED_ROOM);
	seed_code(r, &s.p[E_TEXT]);
	PUT(&s.p[E_NOTE], 4, 0, 0, 0, 4, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0, 0xab,
	    0xcd, 0xef, 1);
	seed_probe(&s.p[E_PROBES], CODE + 8, "begin");
	seed_probe(&s.p[E_PROBES], CODE + 0x50, "end");
	put(&s.p[E_PROBES_BASE], 0, 8);
	put_text(&s.p[E_INTERP], "/lib64/ld-linux-x86-64.so.2");
	seed_dynamic(&s);
	if (kind & ELF_STRIPPED)
		(void)seed_mini(r, &s.p[E_MINI]);
	else
		seed_symbols(&s.p[E_SYMTAB], &s.p[E_STRTAB]);

	link_section(&f, "", &none, (Elf64_Shdr){.sh_type = SHT_NULL});
	link_section(&f, ".text", &s.p[E_TEXT],
		     (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR});
	link_section(&f, ".note.gnu.build-id", &s.p[E_NOTE],
		     (Elf64_Shdr){.sh_type = SHT_NOTE, .sh_flags = SHF_ALLOC});
	link_section(&f, ".note.stapsdt", &s.p[E_PROBES], (Elf64_Shdr){.sh_type = SHT_NOTE});
	link_section(&f, ".stapsdt.base", &s.p[E_PROBES_BASE],
		     (Elf64_Shdr){.sh_type = SHT_PROGBITS});
	f.sh[f.n_sections - 1].sh_addr = DATA;
	link_section(&f, ".interp", &s.p[E_INTERP],
		     (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC});
	link_section(&f, ".dynstr", &s.p[E_DYNSTR],
		     (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_flags = SHF_ALLOC});
	link_section(&f, ".dynsym", &s.p[E_DYNSYM],
		     (Elf64_Shdr){.sh_type = SHT_DYNSYM,
				  .sh_flags = SHF_ALLOC,
				  .sh_link = 6,
				  .sh_info = 1,
				  .sh_entsize = sizeof(Elf64_Sym)});
	link_section(&f, ".dynamic", &s.p[E_DYNAMIC],
		     (Elf64_Shdr){.sh_type = SHT_DYNAMIC,
				  .sh_flags = SHF_ALLOC,
				  .sh_link = 6,
				  .sh_entsize = sizeof(Elf64_Dyn)});
	seed_frame(&s.p[E_FRAME], DATA + ((f.at + 7) & ~7UL));
	link_section(&f, ".eh_frame", &s.p[E_FRAME],
		     (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC});
	header = &f.sh[f.n_sections];
	PUT(&s.p[E_FRAME_HDR], 1, 0x1b, 3, 0x3b);
	put(&s.p[E_FRAME_HDR], header[-1].sh_addr - (DATA + ((f.at + 7) & ~7UL) + 4), 4);
	put(&s.p[E_FRAME_HDR], 0, 4);
	link_section(&f, ".eh_frame_hdr", &s.p[E_FRAME_HDR],
		     (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC});
	if (kind & ELF_GO) {
		seed_go(&s.p[E_GO], &s.p[E_GO_MODULE], rng_below(r, 3), DATA + ((f.at + 7) & ~7UL));
		link_section(&f, ".gopclntab", &s.p[E_GO],
			     (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC});
		link_section(&f, ".noptrdata", &s.p[E_GO_MODULE],
			     (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC});
	}
	if (kind & ELF_STRIPPED) {
		link_section(&f, ".gnu_debugdata", &s.p[E_MINI],
			     (Elf64_Shdr){.sh_type = SHT_PROGBITS});
	} else {
		link_section(&f, ".strtab", &s.p[E_STRTAB], (Elf64_Shdr){.sh_type = SHT_STRTAB});
		link_section(&f, ".symtab", &s.p[E_SYMTAB],
			     (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					  .sh_link = (Elf64_Word)f.n_sections - 1,
					  .sh_info = 8,
					  .sh_entsize = sizeof(Elf64_Sym)});
	}
	if (kind & ELF_LINES) {
		s.lines.kind = kind >> ELF_LINES_SHIFT & (N_SEEDS - 1) &
			       ~(unsigned int)(SEED_SPLIT | SEED_PACKAGE | SEED_ALT);
		seed_sections(&s.lines);
		link_debug(&f, &s, kind & ELF_PACKED);
	}
	h.e_shstrndx = (Elf64_Half)f.n_sections;
	link_section(&f, ".shstrtab", &(struct bytes){.n = 0}, (Elf64_Shdr){.sh_type = SHT_STRTAB});
	memcpy(out + f.at, f.strings.p, f.strings.n);
	f.sh[h.e_shstrndx].sh_size = f.strings.n;
	table = (f.at + f.strings.n + 7) & ~7UL;

	text = &f.sh[1];
	note = &f.sh[2];
	interp = &f.sh[5];
	ph[0] = (Elf64_Phdr){.p_type = PT_LOAD,
			     .p_flags = PF_R,
			     .p_vaddr = DATA,
			     .p_filesz = f.at,
			     .p_memsz = f.at};
	ph[1] = (Elf64_Phdr){.p_type = PT_LOAD,
			     .p_flags = PF_R | PF_X,
			     .p_vaddr = CODE,
			     .p_offset = text->sh_offset,
			     .p_filesz = TEXT_SIZE,
			     .p_memsz = 0x1000};
	ph[2] = (Elf64_Phdr){.p_type = PT_NOTE,
			     .p_offset = note->sh_offset,
			     .p_filesz = note->sh_size,
			     .p_memsz = note->sh_size,
			     .p_align = 4};
	ph[3] = (Elf64_Phdr){.p_type = PT_INTERP,
			     .p_offset = interp->sh_offset,
			     .p_filesz = interp->sh_size,
			     .p_memsz = interp->sh_size};
	ph[4] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
			     .p_vaddr = header->sh_addr,
			     .p_offset = header->sh_offset,
			     .p_filesz = header->sh_size,
			     .p_memsz = header->sh_size};
	if (!(kind & ELF_HEADLESS)) {
		h.e_shnum = (Elf64_Half)f.n_sections;
		h.e_shoff = table;
	} else {
		h.e_shstrndx = 0;
	}
	memcpy(out, &h, sizeof(h));
	memcpy(out + sizeof(h), ph, sizeof(ph));
	memcpy(out + table, f.sh, f.n_sections * sizeof(f.sh[0]));
	return table + f.n_sections * sizeof(f.sh[0]);
}

/* A file with nothing but symbols, packed as .gnu_debugdata is. Every other one is changed before
 * that, since afterwards a checksum would tell. */
static inline size_t seed_mini(struct rng *r, struct bytes *ret)
{
	static const unsigned char names[] = "\0.symtab\0.strtab";
	unsigned char file[4096] = {0}, original[sizeof(file)];
	Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof(h),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 3,
			.e_shstrndx = 2,
			.e_shoff = sizeof(h)};
	Elf64_Shdr sh[3] = {{0}};
	struct bytes symbols = {.n = 0}, strings = {.n = 0};
	lzma_options_lzma options;
	lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
	size_t at = sizeof(h) + sizeof(sh), n = 0;

	put_all(&strings, names, sizeof(names));
	seed_symbols(&symbols, &strings);
	sh[1] = (Elf64_Shdr){.sh_name = 1,
			     .sh_type = SHT_SYMTAB,
			     .sh_offset = at,
			     .sh_size = symbols.n,
			     .sh_link = 2,
			     .sh_info = 8,
			     .sh_entsize = sizeof(Elf64_Sym),
			     .sh_addralign = 8};
	sh[2] = (Elf64_Shdr){.sh_name = 9,
			     .sh_type = SHT_STRTAB,
			     .sh_offset = at + symbols.n,
			     .sh_size = strings.n,
			     .sh_addralign = 1};
	memcpy(file, &h, sizeof(h));
	memcpy(file + sizeof(h), sh, sizeof(sh));
	memcpy(file + at, symbols.p, symbols.n);
	memcpy(file + at + symbols.n, strings.p, strings.n);
	at += symbols.n + strings.n;
	memcpy(original, file, at);
	if (rng_below(r, 2))
		change_elf(r, original, at, file);
	/* The smallest dictionary: what it takes is allocated for each input. */
	if (lzma_lzma_preset(&options, 0))
		return 0;
	options.dict_size = LZMA_DICT_SIZE_MIN;
	options.mf = LZMA_MF_HC3;
	if (lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL, file, at, ret->p, &n,
				      sizeof(ret->p)) == LZMA_OK)
		ret->n = n;
	return n;
}
