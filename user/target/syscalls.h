/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of system calls. */
#pragma once

/* The number of a system call by name, or by number for those that are newer than the headers of
 * this build. -ENOENT: there is none. */
int syscall_number(const char *name);
/* All names, the last followed by NULL. */
const char *const *syscall_names(void);
