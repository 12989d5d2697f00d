// SPDX-License-Identifier: BSD-2-Clause
/* Makes .eh_frame sections out of mostly valid entries, mutates their bytes and reads them.
 * An input is a byte of options and the section. */
#include "fuzz.h"

#include "base/error.h"
#include "base/rng.h"
#include "program/elf/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VADDR 0x10000ULL
#define CODE_LO 0x1000ULL
#define CODE_HI 0x9000ULL
#define MAX_ROWS 4096

struct bytes {
	uint8_t all[4096];
	size_t n;
};

static void put(struct bytes *b, uint64_t v, size_t n)
{
	if (b->n + n <= sizeof(b->all))
		memcpy(b->all + b->n, &v, n);
	b->n += n;
}

static void close_entry(struct bytes *b, size_t at)
{
	uint32_t length = (uint32_t)(b->n - at - 4);

	if (b->n <= sizeof(b->all))
		memcpy(b->all + at, &length, 4);
}

/* An instruction, mostly a valid one. */
static void instruction(struct bytes *b, struct rng *r, bool in_fde)
{
	static const uint8_t regs[] = {3, 6, 7, 12, 16, 17};
	static const uint8_t with_one[] = {0x07, 0x08, 0x0d, 0x0e, 0x13, 0x2e},
			     with_two[] = {0x05, 0x09, 0x0c, 0x11, 0x12, 0x14, 0x15, 0x2f};
	static const char plt[] = "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22";
	uint8_t reg = regs[rng_below(r, sizeof(regs))];

	switch (rng_below(r, 10)) {
	case 0:
	case 1:
		put(b, in_fde ? 0x40 | rng_below(r, 64) : 0, 1);
		break;
	case 2:
		put(b, 0x80 | reg, 1);
		put(b, rng_below(r, 128), 1);
		break;
	case 3:
		put(b, in_fde ? 0xc0U | reg : 0, 1);
		break;
	case 4:
		for (size_t i = 0; rng_below(r, 8) == 0 && i < sizeof(plt) - 1; i++)
			put(b, (uint8_t)plt[i], 1);
		break;
	case 5:
		put(b, rng_below(r, 8) ? 0x0a : 0x0b, 1);
		break;
	case 6:
		if (rng_below(r, 8) == 0)
			put(b, rng_next(r), 8);
		break;
	case 7:
		put(b, with_one[rng_below(r, sizeof(with_one))], 1);
		put(b, reg, 1);
		break;
	default:
		put(b, with_two[rng_below(r, sizeof(with_two))], 1);
		put(b, reg, 1);
		put(b, rng_below(r, 64), 1);
	}
}

static void make(struct bytes *b, struct rng *r)
{
	size_t cie = 0, entries = 1 + rng_below(r, 8);

	for (size_t i = 0; i < entries; i++) {
		size_t at = b->n;

		put(b, 0, 4);
		if (!i || rng_below(r, 6) == 0) {
			cie = at;
			put(b, 0, 4);
			put(b, rng_below(r, 8) ? 1 : rng_below(r, 5), 1);
			put(b, rng_below(r, 4) ? 0x527a : 0x53527a, rng_below(r, 4) ? 3 : 4);
			put(b, 0x107801, 3);
			put(b, 0x1b01, 2);
			put(b, 0x019008070c, 5);
		} else {
			put(b, b->n - cie, 4);
			put(b, CODE_LO + rng_below(r, CODE_HI - CODE_LO) - (VADDR + b->n), 4);
			put(b, rng_below(r, 4) ? rng_below(r, 0x200) : rng_next(r), 4);
			put(b, 0, 1);
		}
		for (uint64_t n = rng_below(r, 8); n; n--)
			instruction(b, r, at != cie);
		close_entry(b, at);
	}
	if (b->n > sizeof(b->all))
		b->n = sizeof(b->all);
}

static void mutate(struct bytes *b, struct rng *r)
{
	static const uint64_t values[] = {0,	  1,	      0x7f,	  0x80,	     0xff,
					  0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};

	for (uint64_t n = rng_below(r, 4); n; n--) {
		size_t width = 1ULL << rng_below(r, 4), at = rng_below(r, b->n);
		uint64_t v = rng_below(r, 2)
				     ? rng_next(r)
				     : values[rng_below(r, sizeof(values) / sizeof(values[0]))];

		if (at + width <= b->n)
			memcpy(b->all + at, &v, width);
	}
	if (rng_below(r, 16) == 0)
		b->n = rng_below(r, b->n + 1);
}

/* What the header promises of a table. */
static bool is_sound(const struct cfi_table *t)
{
	if (!t->n || t->n > MAX_ROWS || t->rows[0].pc || t->rows[t->n - 1].kind != ABI_ROW_NONE ||
	    t->base != CODE_LO)
		return false;
	for (size_t i = 0; i < t->n; i++) {
		const struct abi_row *row = &t->rows[i];

		if (row->kind > ABI_ROW_DRAP || row->pc > CODE_HI - CODE_LO ||
		    (i && row->pc <= row[-1].pc))
			return false;
	}
	return true;
}

const unsigned long fuzz_iterations = 50000;

bool fuzz_begin(void)
{
	return true;
}

void fuzz_end(void)
{
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	struct bytes b = {.n = 0};

	make(&b, r);
	mutate(&b, r);
	if (b.n + 1 > room)
		return 0;
	out[0] = (unsigned char)rng_below(r, 2);
	memcpy(out + 1, b.all, b.n);
	return b.n + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e = {.text = ""};
	struct cfi_extent *all;
	struct cfi_table t;
	size_t n;
	int err;

	if (!size)
		return 0;
	struct cfi_section s = {.name = "fuzz",
				.bytes = data + 1,
				.size = size - 1,
				.vaddr = VADDR,
				.code_lo = CODE_LO,
				.code_hi = CODE_HI,
				.max_rows = MAX_ROWS,
				.stop_at_zero = data[0] & 1};
	/* What instructions say does not matter to where functions are. */
	if (cfi_section_extents(&s, &all, &n, &e) == 0) {
		for (size_t i = 0; i < n; i++)
			fuzz_must(all[i].lo >= CODE_LO && all[i].lo < all[i].hi &&
				  all[i].hi <= CODE_HI && (!i || all[i].lo > all[i - 1].lo));
		free(all);
	} else {
		fuzz_must(cfi_section_parse(&s, &t, &e) < 0);
	}
	err = cfi_section_parse(&s, &t, &e);
	if (err < 0) {
		fuzz_must((err == -EBADMSG || err == -E2BIG) && strstr(e.text, "fuzz: "));
		return 0;
	}
	fuzz_must(is_sound(&t));
	cfi_table_free(&t);
	fuzz_read();
	return 0;
}
