// SPDX-License-Identifier: BSD-2-Clause
/* Encoded pointers. */
#include "program/elf/cfi_private.h"

#include <libdwarf/dwarf.h>

/* That the low four bits lack: a signed pointer-sized value; all that it can be relative to; it is
 * where the pointer is. */
enum { PE_SIGNED = 0x08, PE_RELATIVE = 0x70, PE_INDIRECT = 0x80 };

static uint64_t value(struct reader *c, uint8_t format)
{
	switch (format) {
	case DW_EH_PE_absptr:
	case PE_SIGNED:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return fixed(c, 8);
	case DW_EH_PE_uleb128:
		return leb(c, false);
	case DW_EH_PE_sleb128:
		return leb(c, true);
	case DW_EH_PE_udata2:
		return fixed(c, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)fixed(c, 2);
	case DW_EH_PE_udata4:
		return fixed(c, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)fixed(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

static uint64_t address_of(const struct reader *c)
{
	return (uint64_t)(uintptr_t)c->at + c->shift;
}

/* Aligned pointers are whole ones at the next multiple of their size. */
static uint64_t aligned(struct reader *c)
{
	(void)take_part(c, -address_of(c) & 7);
	return fixed(c, 8);
}

uint64_t cfi_pointer(struct reader *c, uint8_t pe)
{
	uint64_t at = address_of(c);

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

void cfi_skip_pointer(struct reader *c, uint8_t pe)
{
	if (pe == DW_EH_PE_omit)
		return;
	if ((pe & PE_RELATIVE) == DW_EH_PE_aligned)
		(void)aligned(c);
	else
		(void)value(c, pe & CFI_PE_FORMAT);
}
