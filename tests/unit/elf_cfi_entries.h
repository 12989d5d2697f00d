/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes .eh_frame sections entry by entry, has them parsed, and compares the rows. */
#pragma once

#include "program/elf/cfi.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VADDR 0xc000ULL
#define CODE_LO 0x10000ULL
#define CODE_HI 0x20000ULL

static uint8_t bytes[65536];
static size_t size;

static inline void put(const void *p, size_t n)
{
	assert_true(size + n <= sizeof(bytes));
	if (n)
		memcpy(bytes + size, p, n);
	size += n;
}

static inline void put_u(uint64_t v, size_t n)
{
	put(&v, n);
}

/* The length field of the entry that begins at @at. */
static inline void close_entry(size_t at)
{
	uint32_t length = (uint32_t)(size - at - 4);

	memcpy(bytes + at, &length, 4);
}

struct program {
	const void *bytes;
	size_t n;
};
#define PROGRAM(...) \
	((struct program){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})
#define NOTHING ((struct program){NULL, 0})
/* What compilers begin with: the CFA is rsp + 8, the return address 8 below it. */
#define USUAL PROGRAM(0x0c, 7, 8, 0x90, 1)

/* A CIE with factors 1 and -8; returns its offset. @data: what belongs to the augmentation's
 * letters. */
static inline size_t cie(const char *augmentation, struct program data, struct program initial)
{
	size_t at = size;

	put_u(0, 4);
	put_u(0, 4);
	put_u(1, 1);
	put(augmentation, strlen(augmentation) + 1);
	put_u(1, 1);
	put_u(0x78, 1);
	put_u(16, 1);
	if (*augmentation == 'z') {
		put_u(data.n, 1);
		put(data.bytes, data.n);
	}
	put(initial.bytes, initial.n);
	close_entry(at);
	return at;
}

static inline size_t cie_usual(void)
{
	return cie("zR", PROGRAM(0x1b), USUAL);
}

/* An FDE in the usual encoding (pcrel, sdata4). */
static inline void fde(size_t of, uint64_t lo, uint64_t length, struct program p)
{
	size_t at = size;

	put_u(0, 4);
	put_u(size - of, 4);
	put_u(lo - (VADDR + size), 4);
	put_u(length, 4);
	put_u(0, 1);
	put(p.bytes, p.n);
	close_entry(at);
}

static inline int parse(struct cfi_table *t, struct error *e, size_t max_rows)
{
	/* Of its own size on the heap, so that the sanitizer sees a byte too far. */
	uint8_t *copy = malloc(size ? size : 1);
	struct cfi_section s = {.name = "libodd.so",
				.bytes = copy,
				.size = size,
				.vaddr = VADDR,
				.code_lo = CODE_LO,
				.code_hi = CODE_HI,
				.max_rows = max_rows};
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	r = cfi_section_parse(&s, t, e);
	free(copy);
	size = 0;
	return r;
}

static inline void expect_rows(const struct abi_row *rows, size_t n)
{
	struct error e = {.text = ""};
	struct cfi_table t;

	if (parse(&t, &e, 1000) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(t.base, CODE_LO);
	for (size_t i = 0; i < n && i < t.n; i++) {
		const struct abi_row *a = &rows[i], *b = &t.rows[i];

		if (a->pc != b->pc || a->kind != b->kind || a->cfa_offset != b->cfa_offset ||
		    a->rbp_slot != b->rbp_slot)
			fail_msg("row %zu is %x: %d %d %d, not %x: %d %d %d", i, b->pc, b->kind,
				 b->cfa_offset, b->rbp_slot, a->pc, a->kind, a->cfa_offset,
				 a->rbp_slot);
	}
	assert_int_equal(t.n, n);
	cfi_table_free(&t);
}
#define ROWS(...)                                          \
	expect_rows((const struct abi_row[]){__VA_ARGS__}, \
		    sizeof((const struct abi_row[]){__VA_ARGS__}) / 8)
#define R(pc, kind, offset, slot)                \
	{                                        \
		pc, offset, slot, ABI_ROW_##kind \
	}
#define HOLE(pc)                       \
	{                              \
		pc, 0, 0, ABI_ROW_NONE \
	}

static inline void expect_error(int err, const char *words)
{
	struct error e = {.text = ""};
	struct cfi_table t;

	assert_int_equal(parse(&t, &e, 1000), err);
	if (!strstr(e.text, words) || !strstr(e.text, "libodd.so"))
		fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

/* One FDE over [0x100, 0x200) under the usual CIE. */
static inline void usual(struct program p)
{
	fde(cie_usual(), CODE_LO + 0x100, 0x100, p);
}
