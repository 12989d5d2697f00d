// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's functions, as far as it names them. */
#include "program/code/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX " [kernel]"
#define MAX_SYMBOLS (1 << 20)

struct kernel_symbol {
	uint32_t pc; /* from the base */
	size_t name; /* in the names */
};

struct code_kernel {
	uint64_t base;
	struct kernel_symbol *all; /* by pc */
	size_t n;
	char *names;
	size_t names_size, names_room;
};

static void add(struct code_kernel *k, uint64_t addr, const char *name)
{
	size_t length = strlen(name) + 1;

	/* Modules lie within 4 GiB above the kernel. */
	if (addr < k->base || addr - k->base > UINT32_MAX || k->n == MAX_SYMBOLS)
		return;
	if (k->names_size + length > k->names_room) {
		k->names_room = 2 * k->names_room + length + (1 << 19);
		k->names = xreallocarray(k->names, k->names_room, 1);
	}
	memcpy(k->names + k->names_size, name, length);
	xarray_add(k->all, k->n, (struct kernel_symbol){(uint32_t)(addr - k->base), k->names_size});
	k->names_size += length;
}

static int by_pc(const void *pa, const void *pb)
{
	const struct kernel_symbol *a = pa, *b = pb;

	return a->pc < b->pc ? -1 : a->pc > b->pc;
}

/* The file's lines: address, type, name, and of a module its name. */
static void read_symbols(struct code_kernel *k, FILE *f, bool find_base)
{
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;

	while (getline(&line, &capacity, f) > 0) {
		unsigned long long addr;
		char type, name[512];

		if (sscanf(line, "%llx %c %511s", &addr, &type, name) != 3 || !addr)
			continue;
		if (find_base && (strcmp(name, "_text") == 0 || strcmp(name, "_stext") == 0) &&
		    (!k->base || addr < k->base))
			k->base = addr;
		if (!find_base && strchr("tTwW", type))
			add(k, addr, name);
	}
}

int code_kernel_open(struct code_kernel **ret, struct error *e)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	struct code_kernel *k;

	if (!f)
		return fail(e, ENOTSUP,
			    "--kernel: this kernel does not name its functions (/proc/kallsyms)");
	k = xcalloc(1, sizeof(*k));
	read_symbols(k, f, true);
	rewind(f);
	if (k->base)
		read_symbols(k, f, false);
	if (!k->n) {
		code_kernel_close(k);
		return fail(e, EPERM,
			    "--kernel: the kernel hides the addresses of its functions; "
			    "sysctl kernel.kptr_restrict=1 shows them to root");
	}
	qsort(k->all, k->n, sizeof(*k->all), by_pc);
	*ret = k;
	return 0;
}

void code_kernel_close(struct code_kernel *k)
{
	if (!k)
		return;
	free(k->all);
	free(k->names);
	free(k);
}

uint64_t code_kernel_base(const struct code_kernel *k)
{
	return k->base;
}

static const char *function_at(const struct code_kernel *k, uint64_t pc)
{
	size_t lo = search_front(k ? k->n : 0, i, k->all[i].pc <= pc);

	/* Of several names of one place the first is taken every time. */
	while (lo > 1 && k->all[lo - 2].pc == k->all[lo - 1].pc)
		lo--;
	return lo ? k->names + k->all[lo - 1].name : NULL;
}

const char *code_kernel_at(const struct code_kernel *k, uint64_t addr)
{
	return addr < k->base ? NULL : function_at(k, addr - k->base);
}

int code_kernel_name(struct code_map *m, uint32_t pc, const char **ret)
{
	const char *name = function_at(m->kernel, pc);
	_cleanup_free_ char *text = NULL;

	if (!name)
		return -ENOENT;
	text = xasprintf("%s" SUFFIX, name);
	*ret = code_name_intern(m, text)->text;
	return 0;
}

bool code_kernel_has(const struct code_map *m, const char *name)
{
	size_t n = strlen(name);

	return m->kernel && n > strlen(SUFFIX) && strcmp(name + n - strlen(SUFFIX), SUFFIX) == 0;
}

size_t code_kernel_ranges(const struct code_map *m, const char *name, struct addr_range *ret,
			  size_t max)
{
	const struct code_kernel *k = m->kernel;
	size_t length = strlen(name) - strlen(SUFFIX), n = 0;

	for (size_t i = 0; i < k->n && n < max; i++) {
		const char *own = k->names + k->all[i].name;
		size_t next = i + 1;

		if (strncmp(own, name, length) != 0 || own[length])
			continue;
		while (next < k->n && k->all[next].pc == k->all[i].pc)
			next++;
		if (next < k->n)
			ret[n++] =
				(struct addr_range){ABI_CODE(ABI_KERNEL_OBJECT, k->all[i].pc),
						    ABI_CODE(ABI_KERNEL_OBJECT, k->all[next].pc)};
	}
	return n;
}
