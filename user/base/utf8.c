// SPDX-License-Identifier: BSD-2-Clause
#include "base/utf8.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <langinfo.h>
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
	/* The second byte's range excludes overlong forms, surrogates and what lies beyond the last
	 * code point. */
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
	char *copy = xcalloc(n + 1, 1);

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

bool utf8_steers(const char *s, size_t len)
{
	const unsigned char *c = (const unsigned char *)s;

	if (len == 1)
		return c[0] < 0x20 || c[0] == 0x7f;
	if (len == 2)
		return (c[0] == 0xc2 && c[1] < 0xa0) || (c[0] == 0xd8 && c[1] == 0x9c);
	if (len != 3 || c[0] != 0xe2)
		return false;
	return (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae))) ||
	       (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xaf);
}

void utf8_make_printable(char *s, bool utf8)
{
	size_t n = strlen(s);
	char *out = s;

	for (size_t i = 0, len; i < n; i += len) {
		len = utf8_char(s + i, n - i);
		if (len == 0 || utf8_steers(s + i, len) || (len > 1 && !utf8)) {
			*out++ = '?';
			len = len ? len : 1;
		} else {
			memmove(out, s + i, len);
			out += len;
		}
	}
	*out = '\0';
}

void utf8_put_json(FILE *out, const char *text)
{
	for (size_t len; *text; text += len) {
		const unsigned char *c = (const unsigned char *)text;

		len = utf8_char(text, strnlen(text, 4));
		len = len ? len : 1;
		if (c[0] < 0x7f || !utf8_steers(text, len))
			(void)fwrite(text, 1, len, out);
		else if (len == 3)
			(void)fprintf(out, "\\u%04x",
				      (c[0] & 0xfU) << 12 | (c[1] & 0x3fU) << 6 | (c[2] & 0x3fU));
		else
			(void)fprintf(out, "\\u%04x",
				      len == 2 ? (c[0] & 0x1fU) << 6 | (c[1] & 0x3fU) : c[0]);
	}
}

void utf8_put_csv(FILE *out, const char *s, bool utf8)
{
	_cleanup_free_ char *clean = xstrdup(s);

	utf8_make_printable(clean, utf8);
	(void)fputc('"', out);
	if (*clean && strchr("=+-@", *clean))
		(void)fputc('\'', out);
	for (const char *c = clean; *c; c++) {
		if (*c == '"')
			(void)fputc('"', out);
		(void)fputc(*c, out);
	}
	(void)fputc('"', out);
}

bool utf8_locale(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

size_t utf8_bytes(const char *s)
{
	size_t n = 1;

	while (((unsigned char)s[n] & 0xc0) == 0x80)
		n++;
	return n;
}

size_t utf8_columns(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static size_t new_line(FILE *out, size_t indent)
{
	(void)fprintf(out, "\n%*s", (int)indent, "");
	return indent;
}

void utf8_wrap(FILE *out, const char *s, size_t width, size_t column, size_t indent)
{
	for (const char *word = s; *word;) {
		const char *end = word;
		size_t columns = 0;

		for (; *end && *end != ' '; end += utf8_bytes(end))
			columns++;
		if (word > s) {
			if (column + 1 + columns > width) {
				column = new_line(out, indent);
			} else {
				(void)fputc(' ', out);
				column++;
			}
		}
		for (size_t n; word < end; word += n, column++) {
			n = utf8_bytes(word);
			if (column >= width)
				column = new_line(out, indent);
			(void)fwrite(word, 1, n, out);
		}
		word += *word == ' ';
	}
}
