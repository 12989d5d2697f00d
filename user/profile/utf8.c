// SPDX-License-Identifier: BSD-2-Clause
#include "profile/utf8.h"

#include <stdlib.h>
#include <string.h>

size_t utf8_char(const char *s, size_t n)
{
	const unsigned char *b = (const unsigned char *)s;
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (b[0] < 0x80)
		return 1;
	if (b[0] >= 0xc2 && b[0] <= 0xdf)
		len = 2;
	else if (b[0] >= 0xe0 && b[0] <= 0xef)
		len = 3;
	else if (b[0] >= 0xf0 && b[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (n < len)
		return 0;
	/* The second byte's range excludes overlong forms, surrogates and what lies beyond the last code point. */
	if (b[0] == 0xe0)
		low = 0xa0;
	else if (b[0] == 0xed)
		high = 0x9f;
	else if (b[0] == 0xf0)
		low = 0x90;
	else if (b[0] == 0xf4)
		high = 0x8f;
	if (b[1] < low || b[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

char *utf8_clean(const char *s, size_t max)
{
	size_t n = strnlen(s, max), i = 0;
	char *copy = malloc(n + 1);

	if (!copy)
		return NULL;
	while (i < n) {
		size_t len = utf8_char(s + i, n - i);

		if (len) {
			memcpy(copy + i, s + i, len);
			i += len;
		} else {
			copy[i++] = '?';
		}
	}
	copy[n] = '\0';
	return copy;
}
