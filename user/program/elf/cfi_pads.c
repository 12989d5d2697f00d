// SPDX-License-Identifier: BSD-2-Clause
/* Reads a function's table of handlers (.gcc_except_table): the places where exceptions are caught,
 * which no jump leads to. Its form is that of the C++ run time: an encoded start, an encoded table
 * of types, and records of four numbers. */
#include "program/elf/cfi_private.h"

#include "program/elf/object.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <libdwarf/dwarf.h>
#include <stdlib.h>

#define MOST_BYTES \
	(256U << 10) /* the largest known, of generated parsers, have some ten kilobytes */

static int read_records(struct reader c, uint64_t start, uint8_t encoding, uint64_t **ret,
			size_t *ret_n)
{
	while (c.at < c.end) {
		uint64_t pad;

		(void)cfi_pointer(&c, encoding & CFI_PE_FORMAT);
		(void)cfi_pointer(&c, encoding & CFI_PE_FORMAT);
		pad = cfi_pointer(&c, encoding & CFI_PE_FORMAT);
		(void)leb(&c, false);
		if (c.bad)
			return 0;
		if (pad && array_add(*ret, *ret_n, start + pad) < 0)
			return -ENOMEM;
	}
	return 0;
}

int cfi_pads(const struct elf_object *o, const struct cfi_extent *at, uint64_t **ret, size_t *ret_n)
{
	_cleanup_free_ unsigned char *bytes = at->handlers ? malloc(MOST_BYTES) : NULL;
	uint64_t start = at->lo;
	struct reader c;
	uint8_t encoding;
	int got;

	*ret = NULL;
	*ret_n = 0;
	if (!at->handlers)
		return 0;
	if (!bytes)
		return -ENOMEM;
	got = elf_object_read(o, at->handlers, bytes, MOST_BYTES);
	c = cfi_reader(bytes, got > 0 ? (size_t)got : 0, at->handlers);
	encoding = (uint8_t)fixed(&c, 1);
	if (encoding != DW_EH_PE_omit)
		start = cfi_pointer(&c, encoding);
	encoding = (uint8_t)fixed(&c, 1);
	if (encoding != DW_EH_PE_omit)
		(void)leb(&c, false);
	encoding = (uint8_t)fixed(&c, 1);
	return c.bad ? 0 : read_records(take_part(&c, leb(&c, false)), start, encoding, ret, ret_n);
}
