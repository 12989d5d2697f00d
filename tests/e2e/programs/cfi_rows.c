// SPDX-License-Identifier: BSD-2-Clause
/* cfi_rows FILE: prints the rows that our reader makes of its call frame information, and how long it took. */
#include "program/elf/cfi.h"
#include "program/elf/object.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct error e = {.text = ""};
	struct cfi_table t;
	uint64_t from;

	if (argc != 2)
		return 2;
	if (elf_object_open(argv[1], &o, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	from = clock_monotonic_ns();
	if (cfi_table_read(o, 1U << 24, &t, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	(void)printf("# %zu rows in %.1f ms\n", t.n, (double)(clock_monotonic_ns() - from) / 1e6);
	for (size_t i = 0; i < t.n; i++)
		(void)printf("%llx %d %d %d\n", (unsigned long long)(t.base + t.rows[i].pc), t.rows[i].kind, t.rows[i].cfa_offset,
			     t.rows[i].rbp_slot);
	cfi_table_free(&t);
	return 0;
}
