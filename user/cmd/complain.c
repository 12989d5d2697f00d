// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/commands.h"

#include <stdarg.h>
#include <stdio.h>

int complain(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* What a user typed or a file says may hold anything; the promise is one line, and no terminal escapes. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	(void)fprintf(stderr, "cozbpf: %s\n", text);
	return EXIT_OURS;
}
