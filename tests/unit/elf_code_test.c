// SPDX-License-Identifier: BSD-2-Clause
/* Instructions for probes, on functions written here byte by byte. */
#include "program/elf/code.h"
#include "program/code/loops.h"
#include "program/elf/object.h"

#include "base/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "elf_forged.h"

#define FUNCTION(name, body) \
	".type " name ", @function\n" name ": " body ".size " name ", . - " name "\n"

/* Never called. */
__asm__(".text\n"
	/* Offsets: mov 0, add 2, push 5, pop 6, ret 7. */
	FUNCTION("block", "mov %edi, %eax; add $1, %eax; push %rax; pop %rax; ret\n")
	/* xor 0, add 2, cmp 5, jne 8, ret 10 */
	FUNCTION("loop_back", "xor %eax, %eax; 1: add $1, %eax; cmp $9, %eax; jne 1b; ret\n")
	/* The push can be reached without what stands before it. */
	FUNCTION("entered_inside",
		 "mov %edi, %eax; add $1, %eax; inside: push %rax; pop %rax; ret\n")
		FUNCTION("who_enters", "nop; jmp inside\n")
	/* A switch may go anywhere. */
	FUNCTION("by_table", "mov %edi, %eax; push %rax; pop %rax; jmp *%rax\n")
	/* cmp 0, ja 3, lea 5, movslq 12, add 16, jmp 19, mov 21, push 23, pop 24, ret 25 */
	FUNCTION("by_known_table", "cmp $0, %edi; ja 1f; lea 2f(%rip), %rdx; movslq (%rdx, %rdi, "
				   "4), %rax; "
				   "add %rdx, %rax; jmp *%rax; 1: mov %edi, %eax; push %rax; pop "
				   "%rax; ret\n") ".pushsection .rodata\n2: .long 1b - 2b, "
						  "-1\n.popsection\n"
	/* The table is longer than the comparison says: it goes to the push, too. */
	FUNCTION("by_longer_table", "cmp $0, %edi; ja 1f; lea 2f(%rip), %rdx; movslq (%rdx, %rdi, "
				    "4), %rax; "
				    "add %rdx, %rax; jmp *%rax; 1: mov %edi, %eax; 3: push %rax; "
				    "pop %rax; ret\n") ".pushsection .rodata\n2: .long 1b - 2b, 3b "
						       "- 2b, -1\n.popsection\n"
	/* push 0, mov 1, mov 3, ret 5; the second mov can be reached without the push. */
	FUNCTION("entered_behind", "push %rax; mov %edi, %eax; behind: mov %eax, %ecx; ret\n")
		FUNCTION("who_enters_behind", "nop; jmp behind\n")
	/* Through a slot of the linker's: to another function. */
	FUNCTION("leaves", "mov %edi, %eax; push %rax; pop %rax; jmp *leaves_slot(%rip)\n")
	/* mov 0, call 2 */
	FUNCTION("calls", "mov %edi, %eax; call block; push %rax; pop %rax; ret\n")
		FUNCTION("enters_kernel", "mov %edi, %eax; syscall; push %rax; pop %rax; ret\n")
	/* mov 0, nop of five bytes 2, ret 7 */
	FUNCTION("has_nop5", "mov %edi, %eax; .byte 0x0f, 0x1f, 0x44, 0, 0; ret\n")
	/* nops 0 and 5, mov 10, push 12, ret 13 */
	FUNCTION("nops_first", ".byte 0x0f, 0x1f, 0x44, 0, 0; .byte 0x0f, 0x1f, 0x44, 0, 0; mov "
			       "%edi, %eax; push %rax; ret\n")
	/* nop 0, xor 5: each turn passes what is behind the nop, but not the nop. */
	FUNCTION("nop_before_loop",
		 ".byte 0x0f, 0x1f, 0x44, 0, 0; 1: xor %eax, %eax; cmp $9, %eax; jne 1b; ret\n")
		FUNCTION("nop_before_lock",
			 ".byte 0x0f, 0x1f, 0x44, 0, 0; lock addl $1, (%rdi); ret\n")
			FUNCTION("nop_at_end", "ret; .byte 0x0f, 0x1f, 0x44, 0, 0\n")
	/* lock 0, pop 5 */
	FUNCTION("atomic", "lock addl $1, (%rdi, %rsi); pop %rax; ret\n") FUNCTION(
		"not_code", "mov %edi, %eax; push %rax; pop %rax; ret; .byte 0x06\n")
		FUNCTION("hot", "mov %edi, %eax; add $1, %eax; push %rax; pop %rax; ret\n")
			FUNCTION("hot.cold",
				 "mov %edi, %eax; jmp *%rax\n") ".pushsection .data\nleaves_slot: "
								".8byte 0\n.popsection\n");

static struct elf_object *self;

static uint64_t address(const char *function)
{
	struct elf_symbol s;

	assert_int_equal(elf_object_find_function(self, function, &s), 0);
	return s.addr;
}

static void looks_behind_nops(void **state)
{
	static const struct {
		const char *function;
		uint64_t from, site;
	} cases[] = {
		{"has_nop5", 2, 7},	   {"nops_first", 0, 10},     {"nops_first", 5, 10},
		{"nop_before_loop", 0, 0}, {"nop_before_lock", 0, 0}, {"nop_at_end", 1, 1},
		{"block", 0, 0},	   {"nops_first", 1, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum code_cost cost = CODE_COSTS;
		uint64_t start = address(cases[i].function),
			 at = code_behind_nop(self, start + cases[i].from, &cost);

		if (at != start + cases[i].site ||
		    (cost == CODE_COSTS) != (cases[i].site == cases[i].from))
			fail_msg("%s+%llu: %lld, cost %d", cases[i].function,
				 (unsigned long long)cases[i].from, (long long)(at - start), cost);
	}
}

static void chooses_cheap_sites(void **state)
{
	static const struct {
		const char *function;
		uint64_t from, site;
		enum code_cost cost;
	} cases[] = {
		{"block", 0, 5, CODE_EMULATED},
		{"block", 2, 5, CODE_EMULATED},
		{"block", 5, 5, CODE_EMULATED},
		{"block", 6, 5, CODE_EMULATED},
		{"block", 1, 1, CODE_STEPPED},	   /* in the middle of an instruction */
		{"loop_back", 0, 0, CODE_STEPPED}, /* its body is passed more often */
		{"loop_back", 2, 8, CODE_EMULATED},
		{"entered_inside", 0, 0, CODE_STEPPED},
		{"by_table", 0, 0, CODE_STEPPED},
		{"by_known_table", 21, 23, CODE_EMULATED},
		{"by_longer_table", 21, 21, CODE_STEPPED},
		{"entered_behind", 1, 0, CODE_EMULATED},
		{"entered_behind", 3, 3, CODE_STEPPED},
		{"leaves", 0, 2, CODE_EMULATED},
		{"calls", 0, 2, CODE_EMULATED},
		{"enters_kernel", 0, 0, CODE_STEPPED},
		{"has_nop5", 0, 0, CODE_STEPPED}, /* the nop is cheap, but forked children crash on
						     it */
		{"not_code", 0, 0, CODE_STEPPED},
		{"atomic", 0, 5, CODE_STEPPED},
		{"hot", 0, 0, CODE_STEPPED}, /* its cold part jumps by a table */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t start = address(cases[i].function), site;
		enum code_cost cost;

		site = code_cheap_site(self, start + cases[i].from, &cost) - start;
		if (site != cases[i].site || cost != cases[i].cost)
			fail_msg("%s+%d: site %d, cost %d", cases[i].function, (int)cases[i].from,
				 (int)site, (int)cost);
	}
}

/* What the kernel's own tables say. */
static void knows_what_is_emulated(void **state)
{
	static const struct {
		const char *bytes;
		unsigned char size;
		enum code_cost cost;
	} cases[] = {
		{"\x50", 1, CODE_EMULATED},		    /* push %rax */
		{"\x41\x57", 2, CODE_EMULATED},		    /* push %r15 */
		{"\x48\x50", 2, CODE_STEPPED},		    /* push %rax with a needless prefix */
		{"\x66\x50", 2, CODE_STEPPED},		    /* push %ax */
		{"\x90", 1, CODE_EMULATED},		    /* nop */
		{"\x41\x90", 2, CODE_STEPPED},		    /* xchg %eax, %r8d */
		{"\x66\x90", 2, CODE_EMULATED},		    /* nop of two bytes */
		{"\xe8\x00\x00\x00\x00", 5, CODE_EMULATED}, /* call */
		{"\x66\xe8\x00\x00\x00\x00", 6, CODE_STEPPED},	/* with a prefix */
		{"\xe9\x00\x00\x00\x00", 5, CODE_EMULATED},	/* jmp */
		{"\xeb\x00", 2, CODE_EMULATED},			/* jmp short */
		{"\x75\x00", 2, CODE_EMULATED},			/* jne short */
		{"\x0f\x85\x00\x00\x00\x00", 6, CODE_EMULATED}, /* jne */
		{"\xe2\x00", 2, CODE_STEPPED},			/* loop */
		{"\xff\xe0", 2, CODE_STEPPED},			/* jmp *%rax */
		{"\xff\x30", 2, CODE_STEPPED},			/* push (%rax) */
		{"\xc3", 1, CODE_STEPPED},			/* ret */
		{"\xf3\x0f\x1e\xfa", 4, CODE_STEPPED},		/* endbr64 */
		{"\x0f\x1f\x44\x00\x00", 5, CODE_NOP5},
		{"\xf0\x48\x83\x00\x01", 5, CODE_REFUSED}, /* lock addq $1, (%rax) */
		{"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10,
		 CODE_REFUSED},			   /* cs nopw, as compilers pad with */
		{"\x3e\xff\xe0", 3, CODE_REFUSED}, /* notrack jmp *%rax */
		{"\xcc", 1, CODE_REFUSED},	   /* int3 */
		{"\x64\x48\x8b\x04\x25\x00\x00\x00\x00", 9, CODE_STEPPED}, /* mov %fs:0, %rax */
		{"\x0f\x1f\x40\x00", 4, CODE_STEPPED},			   /* a nop of four bytes */
		{"\xc5\xf8\x77", 3, CODE_STEPPED},			   /* vzeroupper */
		{"\xc5\xf9\x50\xc1", 4, CODE_STEPPED}, /* vmovmskpd: opcode 0x50, but no push */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned char bytes[16];
		struct code c = {.bytes = bytes, .size = cases[i].size, .start = 0x1000};
		struct code_instruction x;

		memcpy(bytes, cases[i].bytes, cases[i].size);
		assert_true(code_next(&c, &x));
		if (x.length != cases[i].size || x.cost != cases[i].cost)
			fail_msg("case %zu: %u bytes, cost %d", i, x.length, (int)x.cost);
		assert_true(code_at_end(&c));
		assert_false(code_next(&c, &x));
	}
}

static void finds_boundaries(void **state)
{
	struct elf_symbol s;
	uint64_t before = 99, behind = 99;

	(void)state;
	assert_int_equal(elf_object_find_function(self, "block", &s), 0);
	assert_int_equal(code_check_offset(self, &s, 0, &before, &behind), 0);
	assert_int_equal(code_check_offset(self, &s, 5, &before, &behind), 0);
	assert_int_equal(before, 99);
	assert_int_equal(code_check_offset(self, &s, 3, &before, &behind), -EINVAL);
	assert_int_equal(before, 2);
	assert_int_equal(behind, 5);
	assert_int_equal(elf_object_find_function(self, "who_enters", &s), 0);
	assert_int_equal(code_check_offset(self, &s, 2, &before, &behind), -EINVAL);
	assert_int_equal(before, 1);
	assert_int_equal(behind, 0);
	/* What is no code cannot be told. */
	assert_int_equal(elf_object_find_function(self, "not_code", &s), 0);
	assert_int_equal(code_check_offset(self, &s, 5, &before, &behind), 0);
}

/* Parts of a function that lie over each other: each is short enough to be decoded, all of them are
 * not. */
static void decodes_so_much(void **state)
{
	enum { SIZE = 4 << 20, PARTS = 20000, NOP = 10 };
	static const unsigned char start[] = {0x89, 0xf8, 0x50, 0x58, 0xc3},
				   nop[NOP] = {0x66, 0x2e, 0x0f, 0x1f, 0x84};
	_cleanup_free_ unsigned char *code = calloc(1, SIZE);
	_cleanup_elf_object_ struct elf_object *o = NULL;
	_cleanup_close_ int fd = -1;
	struct forged_symbols symbols = forge_symbols(PARTS + 1);
	enum code_cost cost;
	char text[64];

	(void)state;
	assert_non_null(code);
	for (size_t i = NOP; i + NOP <= SIZE; i += NOP)
		memcpy(code + i, nop, NOP);
	memcpy(code, start, sizeof(start));
	forge_symbol(&symbols, "work", 0, sizeof(start));
	for (int parts = 1; parts <= PARTS; parts *= PARTS) {
		while (symbols.n < 2 + (size_t)parts) {
			(void)snprintf(text, sizeof(text), "work.cold.%zu", symbols.n);
			forge_symbol(&symbols, text, symbols.n * NOP,
				     (SIZE / NOP - symbols.n) * NOP);
		}
		fd = forge_elf(
			(struct forged_section[]){
				{".text", code, {.sh_type = SHT_PROGBITS, .sh_size = SIZE}},
				FORGED_SYMBOLS(symbols)},
			3, 0, text);
		assert_int_equal(elf_object_open(text, &o, NULL), 0);
		(void)alarm(60);
		assert_int_equal(code_cheap_site(o, FORGED_CODE, &cost),
				 FORGED_CODE + (parts == 1 ? 2 : 0));
		(void)alarm(0);
		elf_object_close(o);
		(void)close(fd);
	}
	o = NULL;
	fd = -1;
	forge_symbols_free(&symbols);
}

static int first_line, body_line;
void looped(int n, volatile int *sum);
__attribute__((noinline)) void looped(int n, volatile int *sum)
{
	first_line = __LINE__ + 4;
#ifdef __clang__ /* unrolled, it would be two loops */
#pragma clang loop unroll(disable)
#endif
	for (int i = 0; i < n; i++) {
		body_line = __LINE__ + 1;
		*sum += i;
	}
}

/* A block that was taken out of the loop jumps back into it: no loop of its own. */
__asm__(FUNCTION("aside", "1: sub $1, %edi; test $1, %dil; jne 3f; 2: test %edi, %edi; jne 1b; "
			  "ret; 3: nop; jmp 2b\n"));

struct loops {
	size_t n;
	uint32_t line;
};

static int see_loop(const struct code_loop *l, void *arg)
{
	struct loops *x = arg;

	x->n++;
	x->line = l->line.file ? l->line.line : 0;
	return 0;
}

static void finds_loops(void **state)
{
	struct line_table *t = NULL;
	struct loops x = {0};
	volatile int sum = 0;
	struct elf_symbol s;

	(void)state;
	looped(3, &sum);
	assert_int_equal(sum, 3);
	assert_int_equal(elf_object_find_function(self, "looped", &s), 0);
	assert_int_equal(line_table_open(self, NULL, &t, NULL), 0);
	assert_int_equal(code_each_loop(self, t, &s, see_loop, &x), 0);
	assert_int_equal(x.n, 1);
	/* Not the for statement: that is passed before the loop as well. */
	assert_uint_in_range(x.line, body_line - 1, body_line);
	assert_int_not_equal(x.line, first_line);
	x = (struct loops){0};
	assert_int_equal(elf_object_find_function(self, "aside", &s), 0);
	assert_int_equal(code_each_loop(self, t, &s, see_loop, &x), 0);
	assert_int_equal(x.n, 1);
	line_table_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses_cheap_sites), cmocka_unit_test(looks_behind_nops),
		cmocka_unit_test(decodes_so_much),     cmocka_unit_test(knows_what_is_emulated),
		cmocka_unit_test(finds_boundaries),    cmocka_unit_test(finds_loops),
	};
	int r;

	if (elf_object_open("/proc/self/exe", &self, NULL) < 0)
		return 1;
	r = cmocka_run_group_tests_name("elf code", tests, NULL, NULL);
	elf_object_close(self);
	return r;
}
