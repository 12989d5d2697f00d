// SPDX-License-Identifier: BSD-2-Clause
/* Where probes may stand, and where functions are left: on functions written here as assembly. */
#include "program/elf/code_place.h"
#include "program/elf/code_returns.h"
#include "program/elf/object.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SYMBOL(name, body) \
	".type " name ", @function\n" name ": " body ".size " name ", . - " name "\n"
#define FUNCTION(name, body) SYMBOL(name, ".cfi_startproc\n" body ".cfi_endproc\n")

/* Never called. */
__asm__(".text\n"
	/* mov 0, add 2, ret 5 */
	FUNCTION("sound", "mov %edi, %eax; add $1, %eax; ret\n")
	/* Without call frame information: called from a function, from one that nothing calls, from
	   data, and not at all. */
	FUNCTION("caller", "call bare_called; jmp bare_jumped\n")
		SYMBOL("bare_called", "mov %edi, %eax; ret\n") SYMBOL("bare_jumped", "nop; ret\n")
			SYMBOL("bare_alone", "mov %edi, %eax; call bare_indirectly; ret\n")
				SYMBOL("bare_indirectly", "nop; ret\n")
					SYMBOL("bare_itself", "1: nop; jmp bare_itself\n")
						SYMBOL("data", ".ascii \"PPPPPPPPPPPP\"\n")
							SYMBOL("data_calls",
							       ".byte 0x06; call data_called\n")
								SYMBOL("data_called", "nop; ret\n")
	/* Data that a function jumps over, with a name and without one: 2. */
	FUNCTION("jumps_over",
		 "jmp 1f; .type inner_data, @function\ninner_data: .ascii \"PPPP\"; 1: nop; ret\n")
	/* Bytes that are no instruction; an instruction in the middle of which a jump goes; behind
	   a lock prefix: lock 5, ret 9. */
	FUNCTION("holes", "nop; jmp 1f; .byte 0x06; 1: ret\n")
		FUNCTION("overlaps", "test %edi, %edi; je 1f + 1; 1: mov $5, %eax; ret\n")
			FUNCTION("skips_lock",
				 "cmp $1, %edi; je 1f; .byte 0xf0; 1: addl $1, (%rsi); ret\n")
	/* Where it jumps is in a register: ret 3 is reached by that alone. */
	FUNCTION("by_pointer", "jmp *%rax; nop; ret\n"));

/* Ways to leave. */
__asm__(".text\n" FUNCTION("leave_once", "test %edi, %edi; je 1f; nop; 1: ret\n")
	/* ret 4, rep ret 5, je 2 */
	FUNCTION("leave_thrice", "test %edi, %edi; je sound; ret; rep; ret\n")
		FUNCTION("leave_by_jump", "nop; jmp sound\n") FUNCTION("leave_by_pointer",
								       "jmp *8(%rax, %r12, 4)\n")
			FUNCTION("leave_by_slot", "jmp *place_slot(%rip)\n")
				FUNCTION("leave_never",
					 "1: pause; jmp 1b\n") FUNCTION("leave_nowhere", "nop\n")
					FUNCTION("leave_by_counter",
						 "loop sound; ret\n") FUNCTION("leave_in_middle",
									       "jmp sound + 2\n")
						FUNCTION("leave_calls_itself", "call 1f; 1: ret\n")
							FUNCTION("leave_recursive",
								 "call leave_recursive; ret\n")
	/* Its cold code is entered in two places, and comes back to one that nothing else leads to.
	 */
	FUNCTION("leave_split", "test %edi, %edi; je leave_split.cold; jg leave_split_cold_2; ret; "
				"leave_split_back: ret\n") ".pushsection .text.unlikely, "
							   "\"ax\"\n" FUNCTION("leave_split.cold",
									       "nop; ret; "
									       "leave_split_cold_"
									       "2: jmp "
									       "leave_split_back; "
									       "ret\n") ".popsecti"
											"on\n"
											".pushsect"
											"ion "
											".data\npl"
											"ace_slot:"
											" .8byte "
											"0\n."
											"popsectio"
											"n\n");

/* Leaves by very many branches for a megabyte of code that has no name. */
__asm__(".pushsection .text.many, \"ax\"\n" FUNCTION(
	"leave_often",
	".rept 32768\nje 2f\n.endr\nret\n") "2: .cfi_startproc\n.skip 1 << 20, "
					    "0x90\nret\n.cfi_endproc\n.popsection\n");

static struct elf_object *self;

static void find(const char *function, struct elf_symbol *ret)
{
	assert_int_equal(elf_object_find_function(self, function, ret), 0);
}

static void decides_on_places(void **state)
{
	static const struct {
		const char *function;
		uint64_t offset;
		const char *why; /* part of the reason; NULL: it may stand there */
	} cases[] = {
		{"sound", 0, NULL},
		{"sound", 2, NULL},
		{"sound", 1, "in the middle"},
		{"sound", 5, NULL},
		{"bare_called", 0, NULL},
		{"bare_called", 2, NULL},
		{"bare_called", 1, "in the middle"},
		{"bare_jumped", 1, NULL},
		{"bare_alone", 0, "nothing calls it"},
		{"bare_indirectly", 0, NULL},
		{"bare_itself", 0, "nothing calls it"},
		{"data", 0, "nothing calls it"},
		{"data", 1, "nothing calls it"},
		{"data_calls", 1, "nothing calls it"},
		{"data_called", 0, "nothing calls it"},
		{"jumps_over", 0, NULL},
		{"jumps_over", 2, "nothing in the function"},
		{"jumps_over", 3, "nothing in the function"},
		{"jumps_over", 6, NULL},
		{"holes", 0, "does not consist of instructions"},
		{"overlaps", 0, "overlap"},
		{"skips_lock", 5, NULL},
		{"by_pointer", 3, NULL},
	};
	_cleanup_(code_places_close) struct code_places places = {.o = self};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct error e = {.text = ""};
		struct elf_symbol s;
		int r;

		find(cases[i].function, &s);
		r = code_place_check(&places, s.addr + cases[i].offset, &e);
		if (r != (cases[i].why ? -EINVAL : 0) ||
		    (cases[i].why && !strstr(e.text, cases[i].why)))
			fail_msg("%s+%llu: %d, %s", cases[i].function,
				 (unsigned long long)cases[i].offset, r, e.text);
	}
}

/* Outside of the file, and in its data. */
static void refuses_what_is_no_code(void **state)
{
	_cleanup_(code_places_close) struct code_places places = {.o = self};

	(void)state;
	assert_int_equal(code_place_check(&places, 0, NULL), -EINVAL);
	assert_int_equal(code_place_check(&places, UINT64_MAX, NULL), -EINVAL);
	assert_int_equal(code_place_check(&places, UINT64_C(1) << 40, NULL), -EINVAL);
}

static void finds_exits(void **state)
{
	static const struct {
		const char *function;
		size_t n;
		enum code_when when; /* of the first */
		const char *why;
	} cases[] = {
		{"leave_once", 1, CODE_ALWAYS, NULL},
		{"leave_thrice", 2, CODE_BY_FLAGS, NULL}, /* the third is never reached */
		{"leave_by_jump", 1, CODE_ALWAYS, NULL},
		{"leave_by_pointer", 1, CODE_BY_TARGET, NULL},
		{"leave_by_slot", 1, CODE_ALWAYS, NULL},
		{"leave_recursive", 1, CODE_ALWAYS, NULL},
		{"leave_split", 3, CODE_ALWAYS, NULL},
		{"leave_never", 0, CODE_ALWAYS, "never returns"},
		{"leave_nowhere", 0, CODE_ALWAYS, "stands behind it"},
		{"leave_by_counter", 0, CODE_ALWAYS, "by a counter"},
		{"leave_in_middle", 0, CODE_ALWAYS, "in the middle of sound"},
		{"leave_calls_itself", 0, CODE_ALWAYS, "its own middle"},
		{"sound", 0, CODE_ALWAYS, "in the middle of it"},
		{"holes", 0, CODE_ALWAYS, "instructions alone"},
		{"overlaps", 0, CODE_ALWAYS, "overlap"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_free_ struct code_exit *exits = NULL;
		struct error e = {.text = ""};
		struct elf_symbol s;
		size_t n = 0;
		int r;

		find(cases[i].function, &s);
		r = code_exits(self, &s, &exits, &n, &e);
		if (r != (cases[i].why ? -EOPNOTSUPP : 0) || n != cases[i].n ||
		    (n && exits[0].when != cases[i].when) ||
		    (cases[i].why && !strstr(e.text, cases[i].why)))
			fail_msg("%s: %d, %zu exits, %s", cases[i].function, r, n, e.text);
	}
}

static void reads_targets(void **state)
{
	_cleanup_free_ struct code_exit *exits = NULL;
	struct elf_symbol s;
	size_t n;

	(void)state;
	find("leave_by_pointer", &s);
	assert_int_equal(code_exits(self, &s, &exits, &n, NULL), 0);
	assert_true(exits[0].target.memory && exits[0].target.base == 0 &&
		    exits[0].target.index == 12 && exits[0].target.scale == 4);
	assert_int_equal(exits[0].target.displacement, 8);
	free(exits);
	find("leave_thrice", &s);
	assert_int_equal(code_exits(self, &s, &exits, &n, NULL), 0);
	assert_int_equal(exits[0].vaddr, s.addr + 2);
	assert_int_equal(exits[0].condition, 4);
	assert_int_equal(exits[1].vaddr, s.addr + 4);
}

/* That code is not decoded for each of the branches. */
static void ends_soon(void **state)
{
	_cleanup_free_ struct code_exit *exits = NULL;
	struct error e = {.text = ""};
	struct elf_symbol s;
	size_t n;

	(void)state;
	find("leave_often", &s);
	(void)alarm(120);
	assert_int_equal(code_exits(self, &s, &exits, &n, &e), -EOPNOTSUPP);
	(void)alarm(0);
	assert_non_null(strstr(e.text, "too much code"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decides_on_places), cmocka_unit_test(refuses_what_is_no_code),
		cmocka_unit_test(finds_exits),	     cmocka_unit_test(reads_targets),
		cmocka_unit_test(ends_soon),
	};
	struct error e = {.text = ""};
	int r;

	if (elf_object_open("/proc/self/exe", &self, &e) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	elf_object_close(self);
	return r;
}
