/* SPDX-License-Identifier: BSD-2-Clause */
/* Names come from file systems, symbol tables and other people's processes: any bytes. What is
 * written as JSON must be well-formed UTF-8; what may reach a terminal must not steer it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Bytes of the well-formed character at @s (of @n > 0 bytes), or 0 if there is none: overlong
 * forms, surrogates, values above U+10FFFF and cut sequences are not well-formed. */
size_t utf8_char(const char *s, size_t n);
/* A copy (the caller's) with each byte that belongs to no character replaced by '?', cut at @max
 * bytes. */
char *utf8_clean(const char *s, size_t max);
/* Does the well-formed character of @len bytes steer a terminal, or the direction or lines of what
 * it shows? Those are the C0 and C1 controls with DEL, the marks U+061C, U+200E and U+200F, the
 * line and paragraph separators U+2028 and U+2029, and the embeddings, overrides and isolates
 * U+202A to U+202E and U+2066 to U+206F. */
bool utf8_steers(const char *s, size_t len);
/* Replaces in place, each by '?', the characters that steer, bytes that belong to no character and,
 * unless @utf8, all that is not ASCII. */
void utf8_make_printable(char *s, bool utf8);
/* Writes @text, which is well-formed JSON, so that nothing in it steers a terminal: JSON lets any
 * character of a string be written as an escape, and a reader gets the same string. Outside of
 * strings there is only ASCII, and json-c escapes the controls below U+0020. */
void utf8_put_json(FILE *out, const char *text);
/* Writes a quoted field of CSV. Characters that steer become '?', and all that is not ASCII unless
 * @utf8. What a spreadsheet would take for a formula gets an apostrophe in front, which shows it as
 * text. */
void utf8_put_csv(FILE *out, const char *s, bool utf8);
/* Of a printable string: the bytes of its first character (it is not empty), and how many columns
 * it takes, at one for each character. */
size_t utf8_bytes(const char *s);
size_t utf8_columns(const char *s);
/* Writes the words of a printable string, no wider than @width: from @column on, which is where the
 * line is, and in further lines from @indent on, which is less. A word that no line has room for is
 * broken. The last line is not ended. */
void utf8_wrap(FILE *out, const char *s, size_t width, size_t column, size_t indent);
/* Does the locale (of setlocale) take UTF-8? Elsewhere a byte of a harmless character may be a
 * control. */
bool utf8_locale(void);
