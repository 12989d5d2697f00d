// SPDX-License-Identifier: BSD-2-Clause
/* Handmade .eh_frame sections: each instruction, each encoding, and each way of being malformed.
 * Expected rows are worked out by hand from the DWARF standard (6.4) and the System V ABI. */
#include "program/elf/cfi.h"

#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "elf_cfi_entries.h"

static void prologue_and_epilogue(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; ...; leave; ret */
	usual(PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x50, 0xc6, 0x0c, 7, 8));
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), R(0x101, RSP, 16, -2), R(0x104, RBP, 16, -2),
	     R(0x154, RSP, 8, 0), HOLE(0x200));
}

static void empty_program_inherits(void **state)
{
	(void)state;
	usual(NOTHING);
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x200));
	fde(cie("zR", PROGRAM(0x1b), PROGRAM(0x0c, 6, 16, 0x90, 1, 0x86, 2)), CODE_LO, 0x10,
	    PROGRAM(0, 0, 0));
	ROWS(R(0, RBP, 16, -2), HOLE(0x10));
}

static void advances(void **state)
{
	(void)state;
	usual(PROGRAM(0x42, 0x0e, 16, 0x02, 4, 0x0e, 24, 0x03, 8, 0, 0x0e, 32, 0x04, 16, 0, 0, 0,
		      0x0e, 40));
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), R(0x102, RSP, 16, 0), R(0x106, RSP, 24, 0),
	     R(0x10e, RSP, 32, 0), R(0x11e, RSP, 40, 0), HOLE(0x200));
	usual(PROGRAM(0x1d, 16, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16));
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), R(0x110, RSP, 16, 0), HOLE(0x200));
	/* Past the end of the function: nothing of it counts. */
	usual(PROGRAM(0x04, 0, 1, 0, 0, 0x0e, 16));
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x200));
}

static void set_loc(void **state)
{
	uint8_t code[] = {0x01, 0, 0, 0, 0, 0x0e, 16};
	size_t of = cie_usual();
	/* Of the FDE: length, CIE, start, length, augmentation; then the opcode. */
	uint32_t to = (uint32_t)(CODE_LO + 0x140 - (VADDR + size + 18));

	(void)state;
	memcpy(code + 1, &to, 4);
	fde(of, CODE_LO + 0x100, 0x100, (struct program){code, sizeof(code)});
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), R(0x140, RSP, 16, 0), HOLE(0x200));
	of = cie_usual();
	to = (uint32_t)(CODE_LO + 0x0ff - (VADDR + size + 18));
	memcpy(code + 1, &to, 4);
	fde(of, CODE_LO + 0x100, 0x100, (struct program){code, sizeof(code)});
	expect_error(-EBADMSG, "instructions");
}

static void register_rules(void **state)
{
	(void)state;
	/* offset_extended, offset_extended_sf, GNU_negative_offset_extended of rbp */
	usual(PROGRAM(0x05, 6, 3, 0x41, 0x11, 6, 4, 0x41, 0x2f, 6, 2, 0x41, 0x11, 6, 0x7f));
	ROWS(HOLE(0), R(0x100, RSP, 8, -3), R(0x101, RSP, 8, -4), R(0x102, RSP, 8, 2),
	     R(0x103, RSP, 8, 1), HOLE(0x200));
	/* restore, restore_extended, same_value, undefined of rbp */
	usual(PROGRAM(0x86, 2, 0x41, 0xc6, 0x41, 0x86, 3, 0x41, 0x06, 6, 0x41, 0x86, 4, 0x41, 0x08,
		      6, 0x41, 0x86, 5, 0x41, 0x07, 6));
	ROWS(HOLE(0), R(0x100, RSP, 8, -2), R(0x101, RSP, 8, 0), R(0x102, RSP, 8, -3),
	     R(0x103, RSP, 8, 0), R(0x104, RSP, 8, -4), R(0x105, RSP, 8, 0), R(0x106, RSP, 8, -5),
	     R(0x107, RSP, 8, 0), HOLE(0x200));
	/* rbp elsewhere than on the stack: register, val_offset, val_offset_sf, expression,
	 * val_expression */
	usual(PROGRAM(0x09, 6, 3, 0x41, 0x08, 6, 0x41, 0x14, 6, 1, 0x41, 0x08, 6, 0x41, 0x15, 6, 1,
		      0x41, 0x08, 6, 0x41, 0x10, 6, 1, 0x96, 0x41, 0x08, 6, 0x41, 0x16, 6, 1, 0x96,
		      0x41, 0x08, 6));
	ROWS(HOLE(0), R(0x101, RSP, 8, 0), HOLE(0x102), R(0x103, RSP, 8, 0), HOLE(0x104),
	     R(0x105, RSP, 8, 0), HOLE(0x106), R(0x107, RSP, 8, 0), HOLE(0x108),
	     R(0x109, RSP, 8, 0), HOLE(0x200));
	/* The same of registers that no row speaks of. */
	usual(PROGRAM(0x09, 3, 6, 0x14, 12, 1, 0x15, 13, 1, 0x10, 14, 1, 0x96, 0x16, 15, 1, 0x96,
		      0x83, 4, 0x07, 3, 0x2e, 16));
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x200));
}

static void cfa_rules(void **state)
{
	(void)state;
	usual(PROGRAM(0x0c, 6, 16, 0x41, 0x12, 7, 0x7d, 0x41, 0x13, 0x7c, 0x41, 0x0d, 6, 0x41, 0x0e,
		      0x80, 2));
	ROWS(HOLE(0), R(0x100, RBP, 16, 0), R(0x101, RSP, 24, 0), R(0x102, RSP, 32, 0),
	     R(0x103, RBP, 32, 0), R(0x104, RBP, 256, 0), HOLE(0x200));
	/* By another register; by an expression; by a register after one, at the offset of before
	 * it. */
	usual(PROGRAM(0x0c, 10, 0, 0x41, 0x0c, 7, 8, 0x41, 0x0f, 3, 0x76, 0x78, 0x06, 0x41, 0x0c, 7,
		      16, 0x41, 0x0f, 0, 0x41, 0x0d, 7));
	ROWS(HOLE(0), R(0x101, RSP, 8, 0), HOLE(0x102), R(0x103, RSP, 16, 0), HOLE(0x104),
	     R(0x105, RSP, 16, 0), HOLE(0x200));
}

static void aligned_stacks(void **state)
{
	(void)state;
	/* lea 8(%rsp),%r10; push %rbp; mov %rsp,%rbp; push %r10: as GCC writes it */
	usual(PROGRAM(0x45, 0x0c, 10, 0, 0x46, 0x10, 6, 2, 0x76, 0, 0x44, 0x0f, 3, 0x76, 0x78, 0x06,
		      0x60, 0x0c, 10, 0, 0x44, 0x0c, 7, 8));
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x105), R(0x10f, DRAP, -8, 0), HOLE(0x12f));
	/* Another register; something behind the dereference. */
	usual(PROGRAM(0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x73, 0x78, 0x06, 0x41, 0x0f, 4, 0x76, 0x78,
		      0x06, 0x06));
	ROWS(HOLE(0));
}

static void plt_expressions(void **state)
{
	(void)state;
	usual(PROGRAM(0x0e, 16, 0x46, 0x0e, 24, 0x4a, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b,
		      0x2a, 0x33, 0x24, 0x22));
	ROWS(HOLE(0), R(0x100, RSP, 16, 0), R(0x106, RSP, 24, 0), R(0x110, PLT, 11, 0),
	     HOLE(0x200));
	usual(PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x33, 0x24, 0x22));
	ROWS(HOLE(0), R(0x100, PLT, 9, 0), HOLE(0x200));
	/* Nearly one. */
	usual(PROGRAM(0x0f, 11, 0x77, 16, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22, 0x41,
		      0x0c, 7, 8));
	ROWS(HOLE(0), R(0x101, RSP, 8, 0), HOLE(0x200));
	usual(PROGRAM(0x0f, 10, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x41, 0x0c, 7,
		      8));
	ROWS(HOLE(0), R(0x101, RSP, 8, 0), HOLE(0x200));
}

static void remembered_states(void **state)
{
	(void)state;
	usual(PROGRAM(0x0e, 16, 0x86, 2, 0x41, 0x0a, 0x0e, 8, 0xc6, 0x41, 0x0a, 0x0e, 40, 0x41,
		      0x0b, 0x41, 0x0b));
	ROWS(HOLE(0), R(0x100, RSP, 16, -2), R(0x101, RSP, 8, 0), R(0x102, RSP, 40, 0),
	     R(0x103, RSP, 8, 0), R(0x104, RSP, 16, -2), HOLE(0x200));
	usual(PROGRAM(0x0b));
	expect_error(-EBADMSG, "instructions");
	for (size_t i = 0, of = cie_usual(); i < 2; i++) {
		uint8_t deep[5000];

		memset(deep, 0x0a, sizeof(deep));
		fde(of, CODE_LO, 0x10, (struct program){deep, sizeof(deep)});
	}
	expect_error(-EBADMSG, "instructions");
}

static void ends_and_signals(void **state)
{
	(void)state;
	usual(PROGRAM(0x07, 16, 0x44, 0x06, 16));
	ROWS(HOLE(0), R(0x100, END, 0, 0), R(0x104, RSP, 8, 0), HOLE(0x200));
	/* A return address elsewhere: in a register, or not right below the CFA. */
	usual(PROGRAM(0x09, 16, 1, 0x44, 0x90, 2, 0x44, 0x90, 1));
	ROWS(HOLE(0), R(0x108, RSP, 8, 0), HOLE(0x200));
	fde(cie("zRS", PROGRAM(0x1b), USUAL), CODE_LO + 0x100, 0x10,
	    PROGRAM(0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 2, 0x77, 0x78));
	ROWS(HOLE(0), R(0x100, SIGNAL, 0, 0), HOLE(0x110));
}

static void what_does_not_fit_is_a_hole(void **state)
{
	(void)state;
	usual(PROGRAM(0x0e, 0xff, 0xff, 1, 0x41, 0x0e, 0x80, 0x80, 2, 0x41, 0x0e, 8));
	ROWS(HOLE(0), R(0x100, RSP, 32767, 0), HOLE(0x101), R(0x102, RSP, 8, 0), HOLE(0x200));
	usual(PROGRAM(0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x41, 0x0e,
		      8));
	ROWS(HOLE(0), R(0x101, RSP, 8, 0), HOLE(0x200));
	usual(PROGRAM(0x86, 0x80, 1, 0x41, 0x86, 0x81, 1, 0x41, 0x86, 0, 0x41, 0x86, 2));
	ROWS(HOLE(0), R(0x100, RSP, 8, -128), HOLE(0x101), R(0x103, RSP, 8, -2), HOLE(0x200));
	usual(PROGRAM(0x11, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x41, 0x08,
		      6));
	ROWS(HOLE(0), R(0x101, RSP, 8, 0), HOLE(0x200));
}

static void entries_in_any_order(void **state)
{
	size_t of = cie_usual();

	(void)state;
	fde(of, CODE_LO + 0x300, 0x10, PROGRAM(0x0e, 24));
	fde(of, CODE_LO + 0x100, 0x10, NOTHING);
	fde(of, CODE_LO + 0x110, 0x10, PROGRAM(0x0e, 16)); /* follows without a gap */
	fde(of, 0, 0x10, NOTHING);			   /* thrown away by the linker */
	fde(of, CODE_LO + 0x200, 0, NOTHING);
	fde(of, CODE_HI - 0x10, 0x1000, NOTHING); /* reaches out of the code */
	put_u(0, 4);
	fde(of, CODE_LO + 0x400, 0x10, NOTHING); /* behind a mark of the end */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), R(0x110, RSP, 16, 0), HOLE(0x120), R(0x300, RSP, 24, 0),
	     HOLE(0x310), R(0x400, RSP, 8, 0), HOLE(0x410), R(0xfff0, RSP, 8, 0), HOLE(0x10000));
}

static void overlaps_are_cut(void **state)
{
	size_t of = cie_usual();

	(void)state;
	fde(of, CODE_LO + 0x100, 0x100, PROGRAM(0x02, 0xf0, 0x0e, 16));
	fde(of, CODE_LO + 0x180, 0x10, PROGRAM(0x0e, 24));
	fde(of, CODE_LO + 0x180, 0x40, PROGRAM(0x0e, 32));
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), R(0x180, RSP, 24, 0), HOLE(0x190));
}

/* An FDE whose pointers are @pe, with the start and length written by the caller's bytes. */
static void encoded(uint8_t pe, size_t padding, struct program start, struct program length)
{
	size_t of = cie("zR", PROGRAM(pe), USUAL), at = size;

	put_u(0, 4);
	put_u(size - of, 4);
	for (size_t i = 0; i < padding; i++)
		put_u(0xee, 1);
	put(start.bytes, start.n);
	put(length.bytes, length.n);
	put_u(0, 1);
	close_entry(at);
}

static void pointer_encodings(void **state)
{
	size_t padding;
	uint64_t to;
	uint8_t p[8];

	(void)state;
	encoded(0x00, 0, PROGRAM(0, 1, 1, 0, 0, 0, 0, 0),
		PROGRAM(16, 0, 0, 0, 0, 0, 0, 0)); /* absptr */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x08, 0, PROGRAM(0, 1, 1, 0, 0, 0, 0, 0),
		PROGRAM(16, 0, 0, 0, 0, 0, 0, 0)); /* signed */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x01, 0, PROGRAM(0x80, 0x82, 4), PROGRAM(16)); /* uleb128 */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x09, 0, PROGRAM(0x80, 0x82, 4), PROGRAM(16)); /* sleb128 */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x03, 0, PROGRAM(0, 1, 1, 0), PROGRAM(16, 0, 0, 0)); /* udata4 */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x04, 0, PROGRAM(0, 1, 1, 0, 0, 0, 0, 0),
		PROGRAM(16, 0, 0, 0, 0, 0, 0, 0)); /* udata8 */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	/* Relative to where the pointer itself is: behind the CIE, and length and CIE pointer of
	 * the FDE. */
	(void)cie("zR", PROGRAM(0x1c), USUAL);
	to = CODE_LO + 0x100 - (VADDR + size + 8);
	padding = -(VADDR + size + 8) & 7;
	size = 0;
	memcpy(p, &to, 8);
	encoded(0x1c, 0, (struct program){p, 8}, PROGRAM(16, 0, 0, 0, 0, 0, 0, 0)); /* sdata8 */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x10, 0, (struct program){p, 8}, PROGRAM(16, 0, 0, 0, 0, 0, 0, 0)); /* absptr */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x12, 0, (struct program){p, 2}, PROGRAM(16, 0)); /* udata2 reaches the code ... */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x1a, 0, (struct program){p, 2},
		PROGRAM(16, 0)); /* ... and so does sdata2, since it is far below 0x7fff */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	encoded(0x50, padding, PROGRAM(0, 1, 1, 0, 0, 0, 0, 0),
		PROGRAM(16, 0, 0, 0, 0, 0, 0, 0)); /* at the next multiple of 8 */
	ROWS(HOLE(0), R(0x100, RSP, 8, 0), HOLE(0x110));
	/* Relative to something that is not defined, or an unknown format. */
	encoded(0x2b, 0, PROGRAM(0, 1, 1, 0), PROGRAM(16, 0, 0, 0));
	expect_error(-EBADMSG, "entry");
	encoded(0x3b, 0, PROGRAM(0, 1, 1, 0), PROGRAM(16, 0, 0, 0));
	expect_error(-EBADMSG, "entry");
	encoded(0x9b, 0, PROGRAM(0, 1, 1, 0), PROGRAM(16, 0, 0, 0));
	expect_error(-EBADMSG, "entry");
	encoded(0x05, 0, PROGRAM(0, 1, 1, 0), PROGRAM(16, 0, 0, 0));
	expect_error(-EBADMSG, "entry");
}

static void augmentations(void **state)
{
	size_t of, at;

	(void)state;
	/* Personality and LSDA are passed over, in any encoding. */
	fde(cie("zPLR", PROGRAM(0x9b, 1, 2, 3, 4, 0x1b, 0x1b), USUAL), CODE_LO, 0x10, NOTHING);
	ROWS(R(0, RSP, 8, 0), HOLE(0x10));
	fde(cie("zPLR", PROGRAM(0xff, 0xff, 0x1b), USUAL), CODE_LO, 0x10, NOTHING);
	ROWS(R(0, RSP, 8, 0), HOLE(0x10));
	fde(cie("zPR", PROGRAM(0x01, 0x81, 2, 0x1b), USUAL), CODE_LO, 0x10, NOTHING);
	ROWS(R(0, RSP, 8, 0), HOLE(0x10));
	/* None: absolute pointers, and no augmentation in FDEs. */
	of = cie("", NOTHING, USUAL);
	at = size;
	put_u(0, 4);
	put_u(size - of, 4);
	put_u(CODE_LO, 8);
	put_u(0x10, 8);
	put_u(0x41, 1);
	put_u(0x100e, 2);
	close_entry(at);
	ROWS(R(0, RSP, 8, 0), R(1, RSP, 16, 0), HOLE(0x10));
	fde(cie("zQ", PROGRAM(1), USUAL), CODE_LO, 0x10, NOTHING);
	expect_error(-EBADMSG, "common entry");
	fde(cie("xyz", NOTHING, USUAL), CODE_LO, 0x10, NOTHING);
	expect_error(-EBADMSG, "common entry");
	fde(cie("zPLR", PROGRAM(0x9b, 1, 2), USUAL), CODE_LO, 0x10, NOTHING);
	expect_error(-EBADMSG, "common entry");
}

static void versions(void **state)
{
	static const struct {
		uint8_t version, bytes[8], n;
		bool good;
	} all[] = {
		{1, {1, 0x78, 16}, 3, true},	    {3, {1, 0x78, 16}, 3, true},
		{3, {1, 0x78, 0x90, 0}, 4, true},   {4, {8, 0, 1, 0x78, 16}, 5, true},
		{4, {4, 0, 1, 0x78, 16}, 5, false}, {4, {8, 4, 1, 0x78, 16}, 5, false},
		{2, {1, 0x78, 16}, 3, false},	    {1, {1, 0x78, 30}, 3, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		put_u(0, 8);
		put_u(all[i].version, 1);
		put("zR", 3);
		put(all[i].bytes, all[i].n);
		put_u(0x1b01, 2);
		put(USUAL.bytes, USUAL.n);
		close_entry(0);
		fde(0, CODE_LO, 0x10, NOTHING);
		if (all[i].good)
			ROWS(R(0, RSP, 8, 0), HOLE(0x10));
		else
			expect_error(-EBADMSG, "common entry");
	}
}

static void factors(void **state)
{
	size_t at = 0;

	(void)state;
	put_u(0, 8);
	put_u(1, 1);
	put("zR", 3);
	put_u(4, 1);	/* code */
	put_u(0x7c, 1); /* data: -4 */
	put_u(16, 1);
	put_u(0x1b01, 2);
	put(PROGRAM(0x0c, 7, 8, 0x90, 2).bytes, 5);
	close_entry(at);
	fde(0, CODE_LO, 0x100, PROGRAM(0x42, 0x86, 6));
	ROWS(R(0, RSP, 8, 0), R(8, RSP, 8, -3), HOLE(0x100));
}

static void malformed_instructions(void **state)
{
	const struct program all[] = {
		{(const uint8_t[]){0x3f, 1, 1}, 3},    /* unknown */
		{(const uint8_t[]){0x0c, 7}, 2},       /* cut off: def_cfa */
		{(const uint8_t[]){0x0e, 0x80}, 2},    /* ... in a number */
		{(const uint8_t[]){0x04, 1, 0}, 3},    /* ... advance */
		{(const uint8_t[]){0x0f, 5, 0x77}, 3}, /* ... an expression */
		{(const uint8_t[]){0x10, 3, 0xff, 0xff, 0xff, 0xff, 0x7f}, 7},
		{(const uint8_t[]){0x86}, 1},
		{(const uint8_t[]){0x01, 0}, 2},
		{(const uint8_t[]){0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				   0x7f},
		 11}, /* 70 bits */
		{(const uint8_t[]){0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		 9},					  /* past 2^64 */
		{(const uint8_t[]){0x0f, 0, 0x0e, 8}, 4}, /* an offset without a register */
		{(const uint8_t[]){0x0f, 0, 0x13, 8}, 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		usual(all[i]);
		expect_error(-EBADMSG, "instructions");
	}
	fde(cie("zR", PROGRAM(0x1b), NOTHING), CODE_LO, 0x10,
	    PROGRAM(0x0d, 7)); /* a register without an offset */
	expect_error(-EBADMSG, "instructions");
	/* What a CIE must not do: move, or go back to itself. */
	fde(cie("zR", PROGRAM(0x1b), PROGRAM(0x41)), CODE_LO, 0x10, NOTHING);
	expect_error(-EBADMSG, "common entry");
	fde(cie("zR", PROGRAM(0x1b), PROGRAM(0xc6)), CODE_LO, 0x10, NOTHING);
	expect_error(-EBADMSG, "common entry");
}

static void malformed_entries(void **state)
{
	(void)state;
	fde(cie_usual() + 1, CODE_LO, 0x10, NOTHING); /* not where a CIE begins */
	expect_error(-EBADMSG, "without a common entry");
	put_u(8, 4);
	put_u(0x7fffffff, 4); /* before the section */
	put_u(0, 4);
	expect_error(-EBADMSG, "without a common entry");
	put_u(2, 4);
	put_u(0, 2);
	expect_error(-EBADMSG, "too short");
	put_u(100, 4);
	put_u(0, 4);
	expect_error(-EBADMSG, "past the end");
	put_u(0xffffffff, 4);
	put_u(UINT64_MAX, 8);
	expect_error(-EBADMSG, "past the end");
	put_u(0xffffffff, 4);
	put_u(0, 2);
	expect_error(-EBADMSG, "past the end");
	/* Every prefix of a sound section is refused or read, and nothing past it is touched. */
	for (size_t n = 0;; n++) {
		struct error e = {.text = ""};
		struct cfi_table t;

		usual(PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x50, 0xc6, 0x0c, 7,
			      8));
		if (n > size)
			break;
		size = n;
		if (parse(&t, &e, 1000) == 0)
			cfi_table_free(&t);
		else
			assert_non_null(strstr(e.text, "malformed"));
	}
	size = 0;
}

static void long_entries(void **state)
{
	size_t n;

	(void)state;
	/* The same entry with the long form of its length. */
	put_u(0xffffffff, 4);
	put_u(4 + 1 + 3 + 3 + 2 + 5, 8);
	put_u(0, 4);
	put_u(1, 1);
	put("zR", 3);
	put_u(0x107801, 3);
	put_u(0x1b01, 2);
	put(USUAL.bytes, USUAL.n);
	n = size;
	fde(0, CODE_LO, 0x10, NOTHING);
	assert_true(n == 30);
	ROWS(R(0, RSP, 8, 0), HOLE(0x10));
}

static void bounds(void **state)
{
	struct error e = {.text = ""};
	struct cfi_table t;
	size_t of = cie_usual();
	struct cfi_section big = {.name = "big",
				  .bytes = bytes,
				  .size = 0,
				  .code_lo = 0,
				  .code_hi = 1ULL << 32,
				  .max_rows = 10};

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		fde(of, CODE_LO + 0x20 * i, 0x10, NOTHING);
	assert_int_equal(parse(&t, &e, 100), -E2BIG);
	assert_non_null(strstr(e.text, "more than 100 rows"));
	expect_rows((const struct abi_row[]){HOLE(0)}, 1); /* an empty section */
	assert_int_equal(cfi_section_parse(&big, &t, &e), -E2BIG);
	assert_non_null(strstr(e.text, "4 GiB"));
	big.code_lo = big.code_hi;
	assert_int_equal(cfi_section_parse(&big, &t, &e), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(prologue_and_epilogue),
					   cmocka_unit_test(empty_program_inherits),
					   cmocka_unit_test(advances),
					   cmocka_unit_test(set_loc),
					   cmocka_unit_test(register_rules),
					   cmocka_unit_test(cfa_rules),
					   cmocka_unit_test(aligned_stacks),
					   cmocka_unit_test(plt_expressions),
					   cmocka_unit_test(remembered_states),
					   cmocka_unit_test(ends_and_signals),
					   cmocka_unit_test(what_does_not_fit_is_a_hole),
					   cmocka_unit_test(entries_in_any_order),
					   cmocka_unit_test(overlaps_are_cut),
					   cmocka_unit_test(pointer_encodings),
					   cmocka_unit_test(augmentations),
					   cmocka_unit_test(versions),
					   cmocka_unit_test(factors),
					   cmocka_unit_test(malformed_instructions),
					   cmocka_unit_test(malformed_entries),
					   cmocka_unit_test(long_entries),
					   cmocka_unit_test(bounds)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
