// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int fail(struct error *e, int errnum, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -errnum;
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	/* File and symbol names come from the target: a terminal escape in one must not reach the terminal. */
	for (char *c = e->text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return -errnum;
}
