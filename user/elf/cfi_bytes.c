// SPDX-License-Identifier: BSD-2-Clause
/* Numbers and encoded pointers. */
#include "elf/cfi_private.h"

#include <string.h>

enum { /* formats */
       PE_ABSPTR = 0x00,
       PE_ULEB128 = 0x01,
       PE_UDATA2 = 0x02,
       PE_UDATA4 = 0x03,
       PE_UDATA8 = 0x04,
       PE_SIGNED = 0x08, /* a signed pointer-sized value */
       PE_SLEB128 = 0x09,
       PE_SDATA2 = 0x0a,
       PE_SDATA4 = 0x0b,
       PE_SDATA8 = 0x0c,
};

enum { PE_PCREL = 0x10, PE_ALIGNED = 0x50, PE_RELATIVE = 0x70, PE_INDIRECT = 0x80 };

static void advance(struct cfi_cursor *c, size_t n)
{
	c->p += n;
	c->vaddr += n;
}

uint64_t cfi_u(struct cfi_cursor *c, size_t bytes)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < bytes) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, bytes);
	advance(c, bytes);
	return v;
}

/* The bits of a LEB128 number and how many there are; a tenth byte holds one bit that fits. */
static uint64_t leb(struct cfi_cursor *c, unsigned int *ret_bits, bool *ret_sign, bool is_signed)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)cfi_u(c, 1);
		if (shift < 63)
			v |= (uint64_t)(byte & 0x7f) << shift;
		else if (shift == 63 && ((byte & 0x7f) <= 1 || (is_signed && (byte & 0x7f) == 0x7f)))
			v |= (uint64_t)(byte & 1) << 63;
		else if (byte & 0x7f && !(is_signed && (byte & 0x7f) == 0x7f && v >> 63))
			c->bad = true;
		shift = shift < 70 ? shift + 7 : shift;
	} while (byte & 0x80 && !c->bad);
	*ret_bits = shift;
	*ret_sign = byte & 0x40;
	return c->bad ? 0 : v;
}

uint64_t cfi_uleb(struct cfi_cursor *c)
{
	unsigned int bits;
	bool sign;

	return leb(c, &bits, &sign, false);
}

int64_t cfi_sleb(struct cfi_cursor *c)
{
	unsigned int bits;
	bool sign;
	uint64_t v = leb(c, &bits, &sign, true);

	if (sign && bits < 64)
		v |= ~0ULL << bits;
	return c->bad ? 0 : (int64_t)v;
}

struct cfi_cursor cfi_part(struct cfi_cursor *c, uint64_t n)
{
	struct cfi_cursor part = *c;

	if (n > (uint64_t)(c->end - c->p)) {
		c->bad = part.bad = true;
		part.end = part.p;
		return part;
	}
	part.end = c->p + n;
	advance(c, n);
	return part;
}

static uint64_t value(struct cfi_cursor *c, uint8_t format)
{
	switch (format) {
	case PE_ABSPTR:
	case PE_SIGNED:
	case PE_UDATA8:
	case PE_SDATA8:
		return cfi_u(c, 8);
	case PE_ULEB128:
		return cfi_uleb(c);
	case PE_SLEB128:
		return (uint64_t)cfi_sleb(c);
	case PE_UDATA2:
		return cfi_u(c, 2);
	case PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)cfi_u(c, 2);
	case PE_UDATA4:
		return cfi_u(c, 4);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)cfi_u(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

/* Aligned pointers are whole ones at the next multiple of their size. */
static uint64_t aligned(struct cfi_cursor *c)
{
	(void)cfi_part(c, -c->vaddr & 7);
	return cfi_u(c, 8);
}

uint64_t cfi_pointer(struct cfi_cursor *c, uint8_t pe)
{
	uint64_t at = c->vaddr;

	if (pe == PE_ALIGNED)
		return aligned(c);
	switch (pe & (PE_RELATIVE | PE_INDIRECT)) {
	case 0:
		return value(c, pe & CFI_PE_FORMAT);
	case PE_PCREL:
		return at + value(c, pe & CFI_PE_FORMAT);
	default:
		c->bad = true;
		return 0;
	}
}

void cfi_skip_pointer(struct cfi_cursor *c, uint8_t pe)
{
	if (pe == CFI_PE_OMIT)
		return;
	if ((pe & PE_RELATIVE) == PE_ALIGNED)
		(void)aligned(c);
	else
		(void)value(c, pe & CFI_PE_FORMAT);
}
