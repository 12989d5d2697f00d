// SPDX-License-Identifier: BSD-2-Clause
#include "base/shell.h"

#include <string.h>

void shell_put(FILE *f, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=%@:,./";

	if (*word && word[strspn(word, plain)] == '\0') {
		(void)fprintf(f, " %s", word);
		return;
	}
	(void)fputs(" '", f);
	for (; *word; word++)
		(void)fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, f);
	(void)fputc('\'', f);
}
