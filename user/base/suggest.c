// SPDX-License-Identifier: BSD-2-Clause
#include "base/suggest.h"

#include <ctype.h>
#include <string.h>

#define MOST 128 /* of a word: the work is the product of the lengths */

static char lower(char c)
{
	return (char)tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t edit_distance(const char *a, const char *b)
{
	/* Rows i-2, i-1 and i of the table; index 0 is the empty beginning. */
	size_t rows[3][MOST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	size_t na = strnlen(a, MOST), nb = strnlen(b, MOST);

	for (size_t j = 0; j <= nb; j++)
		last[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *spare = before;

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t differs = lower(a[i - 1]) != lower(b[j - 1]);

			row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + differs);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[nb];
}

const char *suggest(const char *word, const char *const *words)
{
	const char *best = NULL, *begun = NULL;
	size_t best_distance = (size_t)-1, n_begun = 0, n = strlen(word);

	for (size_t i = 0; words[i]; i++) {
		size_t longer = strlen(words[i]) > n ? strlen(words[i]) : n;
		size_t d = edit_distance(word, words[i]);

		if (n >= 2 && strncasecmp(word, words[i], n) == 0) {
			begun = words[i];
			n_begun++;
		}
		/* With two of three letters wrong, anything would match anything. */
		if (d < best_distance && d * 3 <= longer) {
			best_distance = d;
			best = words[i];
		}
	}
	return n_begun == 1 ? begun : best;
}
