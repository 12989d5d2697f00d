/* SPDX-License-Identifier: BSD-2-Clause */
/* "Did you mean": the nearest of a few known words. */
#pragma once

#include <stddef.h>

/* Insertions, deletions, replacements and swaps of neighbours that turn @a into @b (optimal string
 * alignment), letters compared without case. Of longer words the first 128 bytes. */
size_t edit_distance(const char *a, const char *b);
/* The element of the NULL-terminated @words nearest to @word, or NULL if none is near enough to be
 * meant: at most a third of the longer word's length, or @word is a beginning of exactly one of
 * them. */
const char *suggest(const char *word, const char *const *words);
