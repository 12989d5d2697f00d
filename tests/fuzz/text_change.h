/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes a text a little: its bytes, its digits, and pieces that mean something to who reads it.
 */
#pragma once

#include "base/rng.h"

#include <stddef.h>
#include <string.h>

struct text_change {
	size_t room;	    /* of the text */
	const char *digits; /* what stands for numbers in it */
	const char *const *tokens;
	size_t n_tokens;
};

/* Returns the new length. */
static inline size_t change_text(struct rng *r, const struct text_change *c, char *text, size_t n)
{
	size_t at = n ? rng_below(r, n) : 0, length = rng_below(r, n - at + 1);
	const char *token;

	switch (rng_below(r, 5)) {
	case 0: /* a byte */
		if (n)
			text[at] = (char)rng_next(r);
		return n;
	case 1: /* a digit */
		if (n)
			text[at] = c->digits[rng_below(r, strlen(c->digits))];
		return n;
	case 2: /* cut out a little, sometimes much */
		if (rng_below(r, 8))
			length = length < 8 ? length : 8;
		memmove(text + at, text + at + length, n - at - length);
		return n - length;
	case 3: /* repeat a piece at the end */
		if (n + length > c->room)
			return n;
		memmove(text + n, text + at, length);
		return n + length;
	default: /* insert a token */
		token = c->tokens[rng_below(r, c->n_tokens)];
		length = strlen(token);
		if (n + length > c->room)
			return n;
		memmove(text + at + length, text + at, n - at);
		memcpy(text + at, token, length);
		return n + length;
	}
}

/* For fuzz_make: writes the seed of @n bytes with some changes to @out; returns the length, or 0 if
 * @room is too little. */
static inline size_t make_text(struct rng *r, const struct text_change *c, const char *seed,
			       size_t n, unsigned char *out, size_t room)
{
	if (room < c->room)
		return 0;
	memcpy(out, seed, n);
	for (uint64_t k = rng_below(r, 12); k > 0; k--)
		n = change_text(r, c, (char *)out, n);
	return n;
}
