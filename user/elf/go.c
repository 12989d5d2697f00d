// SPDX-License-Identifier: BSD-2-Clause
/* Go's programs have no call frame information that is loaded with them, but a table that their run
 * time finds functions with: a header, and for each function where it begins and where more is said
 * of it, by distance from the begin of the code. As of Go 1.18; older ones are left out. */
#include "elf/symbols_private.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FUNCTIONS (1U << 20)
#define MAGIC_1_18 0xfffffff0U
#define MAGIC_1_20 0xfffffff1U

struct header {
	uint32_t magic;
	uint8_t zero[2], quantum,
		pointer; /* sizes, in bytes, of the least instruction and of a pointer */
	uint64_t functions, files, text;
	uint64_t offsets[5]; /* of names, units, files, numbers, functions: from here */
};
_Static_assert(sizeof(struct header) == 72, "header");

struct entry {
	uint32_t begin, more;
};

bool go_find_table(const struct elf_object *o, uint64_t *ret)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	GElf_Shdr h;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (elf_object_next_section(o, NULL, names[i], &h)) {
			*ret = h.sh_addr;
			return true;
		}
	return false;
}

/* In a program that can be loaded anywhere the linker fills it in at the start. */
static uint64_t text_of(const struct elf_object *o, const struct header *h)
{
	GElf_Shdr text;

	return h->text || !elf_object_next_section(o, NULL, ".text", &text) ? h->text
									    : text.sh_addr;
}

static int add_all(const struct elf_object *o, uint64_t text, const struct entry *all, size_t n)
{
	struct symbol_index *x = o->symbols;
	struct cfi_extent *grown = reallocarray(x->extents, x->n_extents + n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	x->extents = grown;
	for (size_t i = 0; i < n; i++) {
		uint64_t lo = text + all[i].begin, size = all[i + 1].begin - all[i].begin;

		if (all[i + 1].begin > all[i].begin && size <= elf_object_code_left(o, lo))
			x->extents[x->n_extents++] = (struct cfi_extent){.lo = lo, .hi = lo + size};
	}
	return 0;
}

int go_add_extents(const struct elf_object *o, uint64_t at)
{
	_cleanup_free_ struct entry *all = NULL;
	struct header h;
	size_t size;

	if (elf_object_read(o, at, &h, sizeof(h)) != (int)sizeof(h) || h.pointer != 8 ||
	    (h.magic != MAGIC_1_18 && h.magic != MAGIC_1_20) || h.functions > MAX_FUNCTIONS)
		return 0;
	/* Behind the last one stands where the code ends. */
	size = (h.functions + 1) * sizeof(*all);
	all = calloc(h.functions + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	if (elf_object_read(o, at + h.offsets[4], all, size) < (int)(size - sizeof(all[0].more)))
		return 0;
	return add_all(o, text_of(o, &h), all, h.functions);
}
