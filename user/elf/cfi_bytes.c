// SPDX-License-Identifier: BSD-2-Clause
/* Numbers and encoded pointers. */
#include "elf/cfi_private.h"

#include <libdwarf/dwarf.h>
#include <string.h>

/* That the low four bits lack: a signed pointer-sized value; all that it can be relative to; it is
 * where the pointer is. */
enum { PE_SIGNED = 0x08, PE_RELATIVE = 0x70, PE_INDIRECT = 0x80 };

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

/* A LEB128 number; a tenth byte holds one bit that fits. */
static uint64_t leb(struct cfi_cursor *c, bool is_signed)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)cfi_u(c, 1);
		if (shift < 63)
			v |= (uint64_t)(byte & 0x7f) << shift;
		else if (shift == 63 &&
			 ((byte & 0x7f) <= 1 || (is_signed && (byte & 0x7f) == 0x7f)))
			v |= (uint64_t)(byte & 1) << 63;
		else if (byte & 0x7f && !(is_signed && (byte & 0x7f) == 0x7f && v >> 63))
			c->bad = true;
		shift = shift < 70 ? shift + 7 : shift;
	} while (byte & 0x80 && !c->bad);
	if (is_signed && byte & 0x40 && shift < 64)
		v |= ~0ULL << shift;
	return c->bad ? 0 : v;
}

uint64_t cfi_uleb(struct cfi_cursor *c)
{
	return leb(c, false);
}

int64_t cfi_sleb(struct cfi_cursor *c)
{
	return (int64_t)leb(c, true);
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
	case DW_EH_PE_absptr:
	case PE_SIGNED:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return cfi_u(c, 8);
	case DW_EH_PE_uleb128:
		return cfi_uleb(c);
	case DW_EH_PE_sleb128:
		return (uint64_t)cfi_sleb(c);
	case DW_EH_PE_udata2:
		return cfi_u(c, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)cfi_u(c, 2);
	case DW_EH_PE_udata4:
		return cfi_u(c, 4);
	case DW_EH_PE_sdata4:
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

	if (pe == DW_EH_PE_aligned)
		return aligned(c);
	switch (pe & (PE_RELATIVE | PE_INDIRECT)) {
	case 0:
		return value(c, pe & CFI_PE_FORMAT);
	case DW_EH_PE_pcrel:
		return at + value(c, pe & CFI_PE_FORMAT);
	default:
		c->bad = true;
		return 0;
	}
}

void cfi_skip_pointer(struct cfi_cursor *c, uint8_t pe)
{
	if (pe == DW_EH_PE_omit)
		return;
	if ((pe & PE_RELATIVE) == DW_EH_PE_aligned)
		(void)aligned(c);
	else
		(void)value(c, pe & CFI_PE_FORMAT);
}
