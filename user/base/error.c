// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"

#include "base/utf8.h"

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
	/* File and symbol names come from the target: what is in one must not steer the terminal.
	 * The cut may have halved a character. */
	utf8_make_printable(e->text, true);
	return -errnum;
}
