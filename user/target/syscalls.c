// SPDX-License-Identifier: BSD-2-Clause
#include "target/syscalls.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Room for what comes: x86-64 has some 470. */
#define MAX_NUMBER 1023

static const char *const names[] = {
#define SYSCALL(name, number) #name,
#include "syscall_table.inc"
#undef SYSCALL
	NULL,
};

static const int numbers[] = {
#define SYSCALL(name, number) number,
#include "syscall_table.inc"
#undef SYSCALL
};

int syscall_number(const char *name)
{
	for (size_t i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return numbers[i];
	if (*name && strlen(name) <= 4 && strspn(name, "0123456789") == strlen(name) &&
	    atoi(name) <= MAX_NUMBER)
		return atoi(name);
	return -ENOENT;
}

const char *const *syscall_names(void)
{
	return names;
}
