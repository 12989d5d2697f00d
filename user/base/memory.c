// SPDX-License-Identifier: BSD-2-Clause
#include "base/memory.h"

#include "base/log.h"

#include <unistd.h>

void out_of_memory(void)
{
	static const char line[] = "cozbpf: out of memory\n";

	/* Streams are not flushed: one may hold half a record, or what the parent of a fork has
	 * written to it. */
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	_exit(EXIT_OURS);
}

char *xasprintf(const char *fmt, ...)
{
	va_list arguments;
	char *ret;
	int n;

	va_start(arguments, fmt);
	n = vasprintf(&ret, fmt, arguments);
	va_end(arguments);
	if (n < 0)
		out_of_memory();
	return ret;
}
