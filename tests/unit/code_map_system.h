/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that says of itself that it is from a header of the system. */
#line 100 "/usr/include/cozbpf_test.h"
int code_map_test_system(volatile int *p);
int code_map_test_callback(volatile int *p);
static void code_map_test_step(volatile int *p);

static inline __attribute__((always_inline)) void code_map_test_inlined(volatile int *p)
{
	*p = *p * 5 + 2;
	*p = *p * 7 + 3;
}

__attribute__((noinline)) int code_map_test_system(volatile int *p)
{
	*p = *p * 3 + 1;
	*p = *p * 9 + 2;
	return *p;
}

/* As a library's algorithm that the program's own code was inlined into. */
__attribute__((noinline)) int code_map_test_callback(volatile int *p)
{
	*p = *p * 11 + 1;
	code_map_test_step(p);
	*p = *p * 13 + 2;
	return *p;
}
