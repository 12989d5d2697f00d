/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process gives up before it reads what others have written. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Gives up all rights: user, groups, capabilities. False: that did not work, and the process must
 * end. */
bool sandbox_drop_rights(void);
/* Bounds memory (beyond what the process has now) and CPU time, and forbids all system calls but
 * those that reading and answering need. False: that did not work, and the process must end. */
bool sandbox_confine(uint64_t memory_bytes, unsigned int cpu_s);
/* Before execve() of a program that is not ours, which reads what others have made from its
 * standard input: rights as above, bounds, no network, no files but programs and libraries (where
 * the kernel has Landlock; else those that the user nobody can read), no other processes. False:
 * that did not work, and the process must end. */
struct sandbox_bounds {
	uint64_t output_bytes, memory_bytes;
	unsigned int cpu_s;
};
bool sandbox_confine_program(const struct sandbox_bounds *b);
/* From now on so much more CPU time. */
void sandbox_allow_time(unsigned int cpu_s);
