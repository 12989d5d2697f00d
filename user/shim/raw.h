/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls without libc: they leave errno alone, and are no cancellation points. */
#pragma once

#include <sys/syscall.h>

/* The kernel's own result: a negative errno where it failed. */
static inline long raw_call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
}
