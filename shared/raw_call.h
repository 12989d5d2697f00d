/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls by an instruction of our own. In a profiled program libc's functions may be those
 * of another preloaded library, which fakes the time, say; libc's own are cancellation points, and
 * set errno. */
#pragma once

static inline long raw_call_of(long number, long a, long b, long c, long d, long e, long f)
{
	register long fourth __asm__("r10") = d;
	register long fifth __asm__("r8") = e;
	register long sixth __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	return result;
}
#define RAW_CALL_OF(number, a, b, c, d, e, f, ...) \
	raw_call_of(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* raw_call(NUMBER, [ARGUMENT]...), up to six, numbers or pointers: the result, or a negative errno.
 */
#define raw_call(...) RAW_CALL_OF(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
