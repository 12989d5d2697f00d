/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes a few bytes of an ELF file, where it hurts. */
#pragma once

#include "base/rng.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where to write: in one of the tables, or in a section, small ones as often as large ones. */
static inline void choose_area(struct rng *r, const unsigned char *file, size_t size, uint64_t *at,
			       uint64_t *n)
{
	Elf64_Ehdr h;
	Elf64_Shdr s;

	memcpy(&h, file, sizeof(h));
	*at = 0;
	*n = sizeof(h) + h.e_phnum * sizeof(Elf64_Phdr);
	if (!h.e_shnum || h.e_shoff > size || h.e_shnum * sizeof(s) > size - h.e_shoff)
		return;
	switch (rng_below(r, 8)) {
	case 0:
		return;
	case 1:
		*at = h.e_shoff;
		*n = h.e_shnum * sizeof(s);
		return;
	default:
		for (int i = 0; i < 20; i++) {
			memcpy(&s, file + h.e_shoff + rng_below(r, h.e_shnum) * sizeof(s),
			       sizeof(s));
			if (s.sh_type == SHT_NOBITS || !s.sh_size || s.sh_offset > size ||
			    s.sh_size > size - s.sh_offset)
				continue;
			*at = s.sh_offset;
			*n = s.sh_size;
			return;
		}
	}
}

/* @original: the same file, unchanged: it says where things are. Both have @size bytes. */
static inline void change_elf(struct rng *r, const unsigned char *original, size_t size,
			      unsigned char *bytes)
{
	static const uint64_t values[] = {0,	      1,	 0x7f,	     0x80,
					  0xff,	      0xffff,	 0x7fffffff, 0xffffffff,
					  0xfffffff0, INT64_MAX, UINT64_MAX};
	uint64_t at, n, times = 1 + rng_below(r, 12);

	while (times--) {
		size_t width = 1ULL << rng_below(r, 4);
		uint64_t value = rng_below(r, 2)
					 ? rng_next(r)
					 : values[rng_below(r, sizeof(values) / sizeof(values[0]))];

		choose_area(r, original, size, &at, &n);
		if (rng_below(r, 3)) /* headers of units and tables are at the front */
			n = n < 256 ? n : 256;
		at += rng_below(r, n);
		if (at + width <= size)
			memcpy(bytes + at, &value, width);
	}
}
