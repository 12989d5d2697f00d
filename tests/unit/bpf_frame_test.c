// SPDX-License-Identifier: BSD-2-Clause
/* One step up a stack (bpf/frame.h), compiled natively, on stacks made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "bpf_native.h"

#define STACK 0x7ffc0000ULL
#define CALLER 0x401234ULL

static u64 stack[64]; /* at STACK */

static long frame_read(void *to, u32 size, u64 from)
{
	if (from < STACK || from > STACK + sizeof(stack) - size)
		return -14;
	memcpy(to, (char *)stack + (from - STACK), size);
	return 0;
}

#include "bpf/frame.h"

static struct frame leaf(u64 ip, u64 sp, u64 bp)
{
	memset(stack, 0, sizeof(stack));
	return (struct frame){.ip = ip, .sp = STACK + sp, .bp = bp, .exact = 1};
}

static struct abi_row row(int kind, int offset, int slot)
{
	return (struct abi_row){.kind = (unsigned char)kind,
				.cfa_offset = (short)offset,
				.rbp_slot = (signed char)slot};
}

static void expect(const struct frame *f, u64 ip, u64 sp, u64 bp, u64 exact)
{
	assert_int_equal(f->ip, ip);
	assert_int_equal(f->sp, STACK + sp);
	assert_int_equal(f->bp, bp);
	assert_int_equal(f->exact, exact);
	assert_int_equal(frame_call_site(f), exact ? ip : ip - 1);
}

static void by_stack_pointer(void **state)
{
	struct frame f = leaf(0x500000, 16, 77);

	(void)state;
	/* sub rsp, 24 after push rbp: saved rbp and return address above that. */
	stack[5] = 99;
	stack[6] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_RSP, 40, -2)), FRAME_CALLER);
	expect(&f, CALLER, 56, 99, 0);
	/* rbp untouched; the bit of the scope is not part of the kind. */
	f = leaf(0x500000, 16, 77);
	stack[2] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_RSP | ABI_ROW_IN_SCOPE, 8, 0)), FRAME_CALLER);
	expect(&f, CALLER, 24, 77, 0);
}

static void by_base_pointer(void **state)
{
	struct frame f = leaf(0x500000, 0, STACK + 64);

	(void)state;
	stack[8] = 123;
	stack[9] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_RBP, 16, -2)), FRAME_CALLER);
	expect(&f, CALLER, 80, 123, 0);
	/* A base pointer below the stack pointer would lead in a circle. */
	f = leaf(0x500000, 128, STACK + 64);
	assert_int_equal(frame_step(&f, row(ABI_ROW_RBP, 16, -2)), FRAME_LOST);
	f = leaf(0x500000, 80, STACK + 64);
	assert_int_equal(frame_step(&f, row(ABI_ROW_RBP, 16, -2)), FRAME_LOST);
}

static void by_stub(void **state)
{
	struct frame f = leaf(0x40101a, 8, 5);

	(void)state;
	/* At byte 10 of a stub of 16 nothing is pushed yet; from byte 11 on a number is. */
	stack[1] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_PLT, 11, 0)), FRAME_CALLER);
	expect(&f, CALLER, 16, 5, 0);
	f = leaf(0x40101b, 0, 5);
	stack[1] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_PLT, 11, 0)), FRAME_CALLER);
	expect(&f, CALLER, 16, 5, 0);
}

static void by_aligned_stack(void **state)
{
	struct frame f = leaf(0x500000, 0, STACK + 64);

	(void)state;
	/* Below rbp the CFA, at it the caller's, above it a copy of the return address; the true
	 * one is below the CFA. */
	stack[7] = STACK + 160;
	stack[8] = 123;
	stack[9] = 7777;
	stack[19] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_DRAP, -8, 0)), FRAME_CALLER);
	expect(&f, CALLER, 160, 123, 0);
	/* A CFA that is not above. */
	f = leaf(0x500000, 200, STACK + 64);
	stack[7] = STACK + 160;
	assert_int_equal(frame_step(&f, row(ABI_ROW_DRAP, -8, 0)), FRAME_LOST);
	f = leaf(0x500000, 0, 0x10);
	assert_int_equal(frame_step(&f, row(ABI_ROW_DRAP, -8, 0)), FRAME_UNREADABLE);
}

static void by_signal_frame(void **state)
{
	struct frame f = leaf(0x7f0000, 64, 1);

	(void)state;
	/* uc_flags, uc_link, uc_stack (24 bytes), r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp,
	 * rip */
	stack[8 + 5 + 10] = 42;
	stack[8 + 5 + 15] = STACK + 400;
	stack[8 + 5 + 16] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_SIGNAL, 0, 0)), FRAME_CALLER);
	expect(&f, CALLER, 400, 42, 1);
	/* The handler ran on a stack of its own, above. */
	f = leaf(0x7f0000, 64, 1);
	stack[8 + 5 + 15] = STACK + 8;
	stack[8 + 5 + 16] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_SIGNAL, 0, 0)), FRAME_CALLER);
	expect(&f, CALLER, 8, 0, 1);
	f = leaf(0x7f0000, 400, 1);
	assert_int_equal(frame_step(&f, row(ABI_ROW_SIGNAL, 0, 0)), FRAME_UNREADABLE);
}

static void by_frame_pointer(void **state)
{
	struct frame f = leaf(0x600000, 16, STACK + 32);

	(void)state;
	stack[4] = 7; /* the caller uses rbp for something else: that is its business */
	stack[5] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_NONE, 0, 0)), FRAME_CALLER);
	expect(&f, CALLER, 48, 7, 0);
	/* ... and if it has no row either, this is the end. */
	assert_int_equal(frame_step(&f, row(ABI_ROW_NONE, 0, 0)), FRAME_LOST);
	f = leaf(0x600000, 16, 0);
	assert_int_equal(frame_step(&f, row(ABI_ROW_NONE, 0, 0)), FRAME_LOST);
	f = leaf(0x600000, 16, STACK + 8);
	assert_int_equal(frame_step(&f, row(ABI_ROW_NONE, 0, 0)), FRAME_LOST);
	f = leaf(0x600000, 16, STACK + 36);
	assert_int_equal(frame_step(&f, row(ABI_ROW_NONE, 0, 0)), FRAME_LOST);
	f = leaf(0x600000, 16, STACK + sizeof(stack));
	assert_int_equal(frame_step(&f, row(ABI_ROW_NONE, 0, 0)), FRAME_UNREADABLE);
	/* An unknown kind is none. */
	f = leaf(0x600000, 16, 0);
	assert_int_equal(frame_step(&f, row(77, 8, 0)), FRAME_LOST);
}

static void ends(void **state)
{
	struct frame f = leaf(0x500000, 16, 77);

	(void)state;
	assert_int_equal(frame_step(&f, row(ABI_ROW_END, 0, 0)), FRAME_END);
	assert_int_equal(frame_step(&f, row(ABI_ROW_RSP, 8, 0)), FRAME_END); /* returns to 0 */
	f = leaf(0x500000, 16, STACK + 32);
	assert_int_equal(frame_step(&f, row(ABI_ROW_NONE, 0, 0)), FRAME_END);
}

static void unreadable(void **state)
{
	struct frame f = leaf(0x500000, sizeof(stack), 77);

	(void)state;
	assert_int_equal(frame_step(&f, row(ABI_ROW_RSP, 8, 0)), FRAME_UNREADABLE);
	f = leaf(0x500000, 0, 77);
	stack[0] = CALLER;
	assert_int_equal(frame_step(&f, row(ABI_ROW_RSP, 8, -128)), FRAME_UNREADABLE);
	/* Never down: an offset below the stack pointer is no frame. */
	f = leaf(0x500000, 128, 77);
	assert_int_equal(frame_step(&f, row(ABI_ROW_RSP, -8, 0)), FRAME_LOST);
	assert_int_equal(frame_step(&f, row(ABI_ROW_RSP, 0, 0)), FRAME_LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_stack_pointer),
		cmocka_unit_test(by_base_pointer),
		cmocka_unit_test(by_stub),
		cmocka_unit_test(by_aligned_stack),
		cmocka_unit_test(by_signal_frame),
		cmocka_unit_test(by_frame_pointer),
		cmocka_unit_test(ends),
		cmocka_unit_test(unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
