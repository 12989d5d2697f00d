/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in a debug section, as DWARF writes them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const unsigned char *at, *end;
	bool bad; /* something was cut off: what was read since is 0 */
};

/* @n bytes, little-endian; at most 8. */
static inline uint64_t fixed(struct reader *r, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->at) < n) {
		r->bad = true;
		r->at = r->end;
		return 0;
	}
	memcpy(&v, r->at, n);
	r->at += n;
	return v;
}

static inline uint64_t leb(struct reader *r, bool is_signed)
{
	uint64_t v = 0;
	unsigned int shift = 0, byte = 0x80;

	while (byte & 0x80) {
		if (r->at == r->end) {
			r->bad = true;
			return 0;
		}
		byte = *r->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	}
	if (is_signed && byte & 0x40 && shift < 64)
		v |= ~0ULL << shift;
	return v;
}
