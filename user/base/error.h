/* SPDX-License-Identifier: BSD-2-Clause */
/* How library code reports a failure: a negative errno, and one line for the person at the
 * terminal. Library code never prints; commands print the line once, prefixed with the program's
 * name. */
#pragma once

#include <stddef.h>

/* One line that names the culprit and the remedy, without a trailing newline. Empty when nothing
 * failed. */
struct error {
	char text[512];
};

/* Sets the line (if @e is not NULL) and returns -@errnum, so that a caller can write `return
 * fail(e, ENOENT, ...)`.
 * @errnum is positive. The text is cut at the size of the buffer. It is well-formed UTF-8 without
 * what steers a terminal (base/utf8.h): all else in it is replaced by '?'. */
int fail(struct error *e, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
