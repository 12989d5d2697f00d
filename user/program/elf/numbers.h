/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in a debug section or call frame information, as DWARF writes them. Reading past the end
 * yields 0 and sets @bad, so that a sequence of reads is checked once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const unsigned char *at, *end;
	uint64_t shift; /* what to add to @at for its address in the object; of cfi_reader alone */
	bool bad;	/* something was cut off, or no number: what was read since is 0 */
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

/* A LEB128 number; of more than 64 bits: bad. A tenth byte holds one bit that fits. */
static inline uint64_t leb(struct reader *r, bool is_signed)
{
	uint64_t v = 0;
	unsigned int shift = 0, byte, bits;

	do {
		byte = (unsigned int)fixed(r, 1);
		bits = byte & 0x7f;
		if (shift < 63)
			v |= (uint64_t)bits << shift;
		else if (shift == 63 && (bits <= 1 || (is_signed && bits == 0x7f)))
			v |= (uint64_t)bits << 63;
		else if (bits && !(is_signed && bits == 0x7f && v >> 63))
			r->bad = true;
		shift = shift < 70 ? shift + 7 : shift;
	} while (byte & 0x80 && !r->bad);
	if (is_signed && byte & 0x40 && shift < 64)
		v |= ~0ULL << shift;
	return r->bad ? 0 : v;
}

/* Takes the next @n bytes away from @r as a reader of their own. */
static inline struct reader take_part(struct reader *r, uint64_t n)
{
	struct reader part = *r;

	if (n > (uint64_t)(r->end - r->at)) {
		r->bad = part.bad = true;
		part.end = part.at;
		return part;
	}
	part.end = r->at += n;
	return part;
}
