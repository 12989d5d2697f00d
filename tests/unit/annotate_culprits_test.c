// SPDX-License-Identifier: BSD-2-Clause
/* What instructions can wait for, and what they take at least by LLVM's model, of functions that
 * stand here as assembly. */
#include "annotate/culprits.h"
#include "annotate/model.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "program/elf/object.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Each begins a line of the cache, so that what may wait for code is known. */
#define FUNCTION(name, body) \
	".balign 64\n.type " name ", @function\n" name ": " body ".size " name ", . - " name "\n"

/* Never called. */
__asm__(".text\n"
	/* 1: the pointer itself; 2: what needs it */
	FUNCTION("chases", "nop; 1: mov (%rdi), %rdi; test %rdi, %rdi; jne 1b; ret\n") FUNCTION(
		"divides", "nop; xor %edx, %edx; div %rcx; add %rax, %rsi; ret\n")
		FUNCTION("locks", "nop; lock addl $1, (%rdi); xchg %eax, (%rsi); mfence; ret\n")
			FUNCTION("stores", "nop; mov %rax, (%rdi); add $1, %rcx; ret\n")
				FUNCTION("faults", "nop; add $1, %rcx; mov %rax, (%rdi); ret\n")
	/* Written in one size, read in another. */
	FUNCTION("forwards", "nop; movb $1, -8(%rsp); mov -8(%rsp), %rax; ret\n")
	/* The same by addresses relative to the instruction; and another place. */
	FUNCTION("far", "nop; movb $1, locks(%rip); mov locks(%rip), %rax; movb $1, locks(%rip); "
			"mov locks+64(%rip), %rax; ret\n")
	/* All by the one unit that multiplies. */
	FUNCTION("multiplies", "nop; imul %rsi, %rax; imul %rsi, %rcx; imul %rsi, %rdx; imul %rsi, "
			       "%rdi; imul %rsi, %r8; imul %rsi, %r9; ret\n")
		FUNCTION("computes", "nop; imul %rax, %rax; imul %rax, %rax; imul %rax, %rax; imul "
				     "%rax, %rax; lea (%rax, %rax), %rcx; ret\n")
			FUNCTION("branches", "nop; test %edi, %edi; je 1f; add $1, %eax; 1: sub "
					     "$1, %eax; ret\n")
				FUNCTION("calls", "nop; call chases; mov %eax, %ecx; syscall; mov "
						  "%eax, %edx; ret\n")
	/* rdpru, which LLVM 14 does not read. */
	FUNCTION("unknown", "nop; imul %rsi, %rsi; .byte 0x0f, 0x01, 0xfd; ret\n"));

static struct elf_object *self;

static void read_flow(const char *function, struct flow *ret, struct code *ret_code)
{
	struct elf_symbol s;

	assert_int_equal(elf_object_find_function(self, function, &s), 0);
	assert_int_equal(flow_read(self, s.addr, s.size, ret), 0);
	assert_int_equal(code_open(self, s.addr, s.size, ret_code), 0);
}

#define BIT(c) (1U << CULPRIT_##c)
#define LOADED (BIT(DCACHE) | BIT(DTLB))

static void causes_are_those_that_are_left(void **state)
{
	static const struct {
		const char *function;
		size_t instruction;
		unsigned int possible;
	} cases[] = {
		{"chases", 1, LOADED | BIT(BRANCH)},
		{"chases", 2, LOADED | BIT(DEPENDENT)},
		{"divides", 1, BIT(SLOTS)},
		{"divides", 2, BIT(DIVIDER) | BIT(DEPENDENT)},
		{"divides", 3, BIT(DIVIDER) | BIT(DEPENDENT)},
		{"locks", 1, BIT(LOCK) | LOADED},
		{"locks", 2, BIT(LOCK) | LOADED},
		{"locks", 3, BIT(LOCK)},
		{"stores", 1, BIT(STORE) | BIT(DTLB)},
		{"stores", 2, BIT(SLOTS)},
		{"forwards", 2, LOADED | BIT(FORWARD)},
		{"computes", 1, BIT(SLOTS)},
		{"computes", 2, BIT(DEPENDENT)},
		{"far", 2, LOADED | BIT(FORWARD)},
		{"far", 4, LOADED},
		{"branches", 2, BIT(DEPENDENT)},
		{"branches", 3, BIT(BRANCH)},
		{"branches", 4, BIT(BRANCH)},
		{"calls", 2, BIT(BRANCH) | BIT(ICACHE)},
		{"calls", 3, BIT(KERNEL)},
		{"calls", 4, BIT(KERNEL)},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(culprits_free) struct culprits c = {0};
		_cleanup_(flow_free) struct flow f = {0};
		_cleanup_(code_close) struct code code = {0};

		read_flow(cases[i].function, &f, &code);
		culprits_find(&f, &code, NULL, false, SKID_NONE, &c);
		if (culprits_of(&c, cases[i].instruction, true) != cases[i].possible)
			fail_msg("%s, %zu: %#x, not %#x", cases[i].function, cases[i].instruction,
				 culprits_of(&c, cases[i].instruction, true), cases[i].possible);
	}
}

/* Samples at the one after it are those of the one that waited, but where a loop begins: two ways
 * lead there. */
static void skid_is_corrected(void **state)
{
	_cleanup_(culprits_free) struct culprits c = {0};
	_cleanup_(flow_free) struct flow f = {0};
	_cleanup_(code_close) struct code code = {0};

	(void)state;
	read_flow("chases", &f, &code);
	culprits_find(&f, &code, NULL, false, SKID_NEXT, &c);
	assert_int_equal(c.waited[1], 1);
	assert_int_equal(c.waited[2], 1);
	assert_int_equal(c.waited[3], 2);
	assert_int_equal(c.waited[4], 3); /* the only way there */
	assert_int_equal(c.of[1], LOADED | BIT(BRANCH));
	assert_int_equal(culprits_of(&c, 1, true),
			 LOADED | BIT(BRANCH) | BIT(ICACHE) |
				 BIT(DEPENDENT)); /* and that of both ways */
	assert_int_equal(c.of[2], LOADED | BIT(DEPENDENT));
	culprits_free(&c);
	/* What was called comes in between; a system call does not. */
	flow_free(&f);
	code_close(&code);
	read_flow("calls", &f, &code);
	culprits_find(&f, &code, NULL, false, SKID_NEXT, &c);
	assert_int_equal(c.waited[2], 2);
	assert_int_equal(c.waited[4], 3);
	assert_int_equal(c.of[3], BIT(KERNEL));
	culprits_free(&c);
	culprits_find(&f, &code, NULL, false, SKID_NONE, &c);
	assert_int_equal(c.waited[4], 4);
	culprits_free(&c);
	/* A fault is served, and the store executed again: what stands before it has nothing to
	 * wait for. */
	flow_free(&f);
	code_close(&code);
	read_flow("faults", &f, &code);
	culprits_find(&f, &code, NULL, true, SKID_NEXT, &c);
	assert_int_equal(c.waited[2], 2);
	assert_int_equal(c.waited[3], 2);
	assert_int_equal(culprits_of(&c, 2, true), BIT(STORE) | BIT(DTLB) | BIT(KERNEL));
	assert_int_equal(culprits_of(&c, 2, false), BIT(STORE) | BIT(DTLB));
	culprits_free(&c);
	culprits_find(&f, &code, NULL, false, SKID_NEXT, &c);
	assert_int_equal(c.waited[2], 1);
	assert_int_equal(culprits_of(&c, 2, true), BIT(STORE) | BIT(DTLB));
	culprits_free(&c);
	/* ... but where it may wait for a load, that is where the samples go, and the fault with
	 * them. */
	flow_free(&f);
	code_close(&code);
	read_flow("locks", &f, &code);
	culprits_find(&f, &code, NULL, true, SKID_NEXT, &c);
	assert_int_equal(c.waited[2], 1);
	assert_true(c.of[1] & BIT(KERNEL));
	/* Wherever they are, it is one of three answers. */
	assert_uint_in_range(skid_measure(), SKID_NONE, SKID_UNKNOWN);
}

static double of_block(const struct flow *f, const struct model *m, size_t b)
{
	double sum = 0;

	for (uint32_t i = f->blocks[b].first; i < f->blocks[b].first + f->blocks[b].n; i++)
		sum += m->cycles[i];
	return sum;
}

static void model_of(const char *function, struct flow *f, struct model *ret)
{
	static const double weights[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	_cleanup_(code_close) struct code code = {0};
	struct error e = {0};

	read_flow(function, f, &code);
	if (model_make(f, &code, weights, "znver3", ret, &e) < 0)
		fail_msg("%s: %s", function, e.text);
}

static void cycles_are_those_of_the_model(void **state)
{
	struct model m;
	struct flow f;
	bool known;

	(void)state;
	if (access("/usr/bin/llvm-mca", X_OK) < 0)
		skip();
	/* Four multiplications of three cycles, each of which needs the one before it. */
	model_of("computes", &f, &m);
	assert_true(fabs(of_block(&f, &m, 0) - 12) < 1 && m.unknown == 0 &&
		    strcmp(m.cpu, "znver3") == 0);
	model_free(&m);
	flow_free(&f);
	/* A load from the nearest cache takes four cycles or five. */
	model_of("chases", &f, &m);
	assert_true(of_block(&f, &m, 1) > 3.5 && of_block(&f, &m, 1) < 6);
	model_free(&m);
	flow_free(&f);
	/* rdpru, which llvm-mca learned between 14 and 21. */
	known = system("echo rdpru | llvm-mca -mcpu=znver3 >/dev/null 2>&1") == 0;
	model_of("unknown", &f, &m);
	assert_true(m.unknown == !known && (known || fabs(of_block(&f, &m, 0) - 3) < 1));
	model_free(&m);
	flow_free(&f);
}

static void units_that_are_taken_are_a_cause(void **state)
{
	_cleanup_(culprits_free) struct culprits c = {0};
	_cleanup_(code_close) struct code code = {0};
	struct model m;
	struct flow f;

	(void)state;
	if (access("/usr/bin/llvm-mca", X_OK) < 0)
		skip();
	model_of("multiplies", &f, &m);
	flow_free(&f);
	read_flow("multiplies", &f, &code);
	culprits_find(&f, &code, m.ports, false, SKID_NONE, &c);
	for (size_t i = 2; i < 7; i++)
		assert_true(c.of[i] & BIT(PORTS));
	assert_false(c.of[7] & BIT(PORTS));
	model_free(&m);
	flow_free(&f);
}

static int open_self(void **state)
{
	(void)state;
	return elf_object_open("/proc/self/exe", &self, NULL);
}

static int close_self(void **state)
{
	(void)state;
	elf_object_close(self);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(causes_are_those_that_are_left),
		cmocka_unit_test(skid_is_corrected),
		cmocka_unit_test(cycles_are_those_of_the_model),
		cmocka_unit_test(units_that_are_taken_are_a_cause),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
