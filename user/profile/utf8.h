/* SPDX-License-Identifier: BSD-2-Clause */
/* Names come from file systems and symbol tables: any bytes. What is printed or written as JSON must be well-formed UTF-8.
 */
#pragma once

#include <stddef.h>

/* Bytes of the well-formed character at @s (of @n > 0 bytes), or 0 if there is none: overlong forms, surrogates, values
 * above U+10FFFF and cut sequences are not well-formed. */
size_t utf8_char(const char *s, size_t n);
/* A copy (the caller's) with each byte that belongs to no character replaced by '?', cut at @max bytes. NULL: no memory. */
char *utf8_clean(const char *s, size_t max);
