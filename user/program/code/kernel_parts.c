// SPDX-License-Identifier: BSD-2-Clause
#include "program/code/kernel_parts.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/sort.h"
#include "program/elf/debug_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The build id in a file of ELF notes, as /sys/kernel/notes; "" if there is none. */
static char *build_id_of(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char notes[4096];
	ssize_t n = fd < 0 ? 0 : read(fd, notes, sizeof(notes));
	size_t size;
	const unsigned char *id = debug_note_id(notes, n > 0 ? (size_t)n : 0, 4, &size);

	return id ? or_out_of_memory(debug_build_id(id, size)) : xstrdup("");
}

static void add(struct kernel_parts *k, uint64_t start, uint64_t end, const char *name,
		const char *notes)
{
	xarray_add(k->all, k->n,
		   (struct kernel_part){start, end, xstrdup(name), build_id_of(notes)});
}

static void read_kernel(struct kernel_parts *k)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	unsigned long long addr, start = 0, end = 0;
	char type, name[512];

	while (f && getline(&line, &capacity, f) > 0) {
		if (sscanf(line, "%llx %c %511s", &addr, &type, name) != 3 || !addr)
			continue;
		if (strcmp(name, "_text") == 0 || (strcmp(name, "_stext") == 0 && !start))
			start = addr;
		else if (strcmp(name, "_etext") == 0)
			end = addr;
		/* There are more than a hundred thousand. */
		if (start && end)
			break;
	}
	if (start && end)
		add(k, start, end, "", "/sys/kernel/notes");
}

static void read_modules(struct kernel_parts *k)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/modules", "re");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;

	while (f && getline(&line, &capacity, f) > 0) {
		unsigned long long size, start;
		char name[64], notes[256];

		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &size, &start) != 3 || !start)
			continue;
		(void)snprintf(notes, sizeof(notes), "/sys/module/%s/notes/.note.gnu.build-id",
			       name);
		add(k, start, start + size, name, notes);
	}
}

void kernel_parts_free(struct kernel_parts *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->all[i].name);
		free(k->all[i].build_id);
	}
	free(k->all);
	*k = (struct kernel_parts){0};
}

void kernel_parts_read(struct kernel_parts *k)
{
	read_kernel(k);
	kernel_parts_refresh(k);
}

void kernel_parts_refresh(struct kernel_parts *k)
{
	struct kernel_parts now = {0};

	/* The kernel itself stays where it is. */
	for (size_t i = 0; i < k->n; i++)
		if (!*k->all[i].name)
			add(&now, k->all[i].start, k->all[i].end, "", "/sys/kernel/notes");
	read_modules(&now);
	sort_array(now.all, now.n, compare_u64);
	kernel_parts_free(k);
	*k = now;
}

const struct kernel_part *kernel_parts_at(const struct kernel_parts *k, uint64_t addr)
{
	size_t n = search_front(k->n, i, k->all[i].start <= addr);

	return n && addr < k->all[n - 1].end ? &k->all[n - 1] : NULL;
}
