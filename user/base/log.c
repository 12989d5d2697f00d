// SPDX-License-Identifier: BSD-2-Clause
#include "base/log.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static struct {
	void (*call)(void *arg);
	void *arg;
} before;

void log_before(void (*call)(void *arg), void *arg)
{
	before.call = call;
	before.arg = arg;
}

int log_error(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* What a user typed or a file says may hold anything; the promise is one line, and nothing
	 * that steers a terminal. */
	utf8_make_printable(text, utf8_locale() || !isatty(STDERR_FILENO));
	if (before.call)
		before.call(before.arg);
	(void)fprintf(stderr, "cozbpf: %s\n", text);
	return EXIT_OURS;
}
