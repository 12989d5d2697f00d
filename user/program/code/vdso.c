// SPDX-License-Identifier: BSD-2-Clause
/* The code that the kernel maps into every process: it has no file. */
#include "program/code/private.h"

#include "base/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* Every 64-bit process has the same one. */
static int own_range(uint64_t *ret_start, uint64_t *ret_end)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	_cleanup_free_ char *line = NULL;
	unsigned long long start, end;
	size_t capacity = 0;

	while (f && getline(&line, &capacity, f) > 0) {
		if (!strstr(line, "[vdso]") || sscanf(line, "%llx-%llx", &start, &end) != 2 ||
		    start != getauxval(AT_SYSINFO_EHDR))
			continue;
		*ret_start = start;
		*ret_end = end;
		return 0;
	}
	return -ENOENT;
}

int code_vdso_open(struct elf_object **ret, size_t *ret_size)
{
	uint64_t start, end;
	int r = own_range(&start, &end);

	if (r < 0)
		return r;
	*ret_size = end - start;
	return elf_object_open_image("[vdso]", (const void *)(uintptr_t)start, end - start, ret,
				     NULL);
}
