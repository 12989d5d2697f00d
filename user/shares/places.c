// SPDX-License-Identifier: BSD-2-Clause
#include "shares/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "code/kernel_parts.h"
#include "code/map.h"
#include "dwarf/lines.h"
#include "elf/object.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct places {
	/* Of the running kernel; read when first asked for. */
	struct kernel_parts parts;
	struct code_kernel *kernel;
	bool kernel_tried;
	/* What was taken up: a part of the kernel, or a file. */
	const struct kernel_part *part;
	struct elf_object *object;
	struct line_table *lines;
	bool lines_tried;
	struct elf_symbol symbol; /* that was found last; size 0: none */
	char *text;		  /* what was answered last */
	struct error why;
};

int places_open(struct places **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void let_go(struct places *p)
{
	line_table_close(p->lines);
	elf_object_close(p->object);
	p->lines = NULL;
	p->object = NULL;
	p->lines_tried = false;
	p->part = NULL;
	p->symbol = (struct elf_symbol){0};
}

void places_close(struct places *p)
{
	if (!p)
		return;
	let_go(p);
	code_kernel_close(p->kernel);
	kernel_parts_free(&p->parts);
	free(p->text);
	free(p);
}

static bool take_kernel(struct places *p, const struct counts_image *image, const char **ret_why)
{
	if (!p->kernel_tried) {
		p->kernel_tried = true;
		(void)kernel_parts_read(&p->parts);
		(void)code_kernel_open(&p->kernel, NULL);
	}
	for (size_t i = 0; i < p->parts.n; i++)
		if (strcmp(p->parts.all[i].name, image->path) == 0 && strcmp(p->parts.all[i].build_id, image->build_id) == 0)
			p->part = &p->parts.all[i];
	if (!p->kernel || !p->parts.n)
		*ret_why = "the kernel shows the addresses of its functions to root only";
	else if (!p->part)
		*ret_why = "it is not the kernel that runs now, or the module is not loaded";
	return p->kernel && p->part;
}

static bool is_unchanged(int fd, const struct counts_image *image)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == image->inode &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec == image->changed_ns;
}

bool places_take(struct places *p, const struct counts_image *image, const char **ret_why)
{
	const char *build_id;

	let_go(p);
	*ret_why = "there are no names in it";
	if (image->kind == COUNTS_KERNEL)
		return take_kernel(p, image, ret_why);
	if (image->kind != COUNTS_FILE)
		return false;
	if (image->path[0] != '/') {
		*ret_why = "its processes had ended before its path could be read";
		return false;
	}
	if (elf_object_open_named(NULL, image->path, &p->object, &p->why) < 0) {
		*ret_why = p->why.text;
		return false;
	}
	build_id = elf_object_build_id(p->object);
	if (*image->build_id ? !build_id || strcmp(build_id, image->build_id) != 0 : !is_unchanged(elf_object_fd(p->object), image)) {
		*ret_why = "the file of that path is another build now, or that of another container";
		let_go(p);
		return false;
	}
	return true;
}

static bool symbol_at(struct places *p, uint64_t offset, uint64_t *ret_addr)
{
	if (!p->object || elf_object_offset_to_vaddr(p->object, offset, ret_addr) < 0)
		return false;
	if (p->symbol.size && *ret_addr >= p->symbol.addr && *ret_addr - p->symbol.addr < p->symbol.size)
		return true;
	if (elf_object_function_at(p->object, *ret_addr, &p->symbol) == 0)
		return true;
	p->symbol = (struct elf_symbol){0};
	return false;
}

const char *places_function(struct places *p, uint64_t offset)
{
	uint64_t addr;

	if (p->part)
		return code_kernel_at(p->kernel, p->part->start + offset);
	if (!symbol_at(p, offset, &addr))
		return NULL;
	free(p->text);
	p->text = elf_demangle(p->symbol.function);
	return p->text;
}

const struct elf_object *places_object(const struct places *p)
{
	return p->object;
}

struct line_table *places_lines(struct places *p)
{
	if (!p->lines_tried && p->object) {
		p->lines_tried = true;
		if (line_table_open(p->object, &p->lines, NULL) < 0)
			p->lines = NULL;
	}
	return p->lines;
}

const char *places_line(struct places *p, uint64_t offset)
{
	struct line_location at;
	uint64_t addr;

	if (!p->object || elf_object_offset_to_vaddr(p->object, offset, &addr) < 0)
		return NULL;
	if (!places_lines(p) || line_table_at(p->lines, addr, &at) < 0)
		return NULL;
	free(p->text);
	if (asprintf(&p->text, "%s:%u", at.file, at.line) < 0)
		p->text = NULL;
	return p->text;
}
