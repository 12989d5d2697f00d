// SPDX-License-Identifier: BSD-2-Clause
#include "collect/shares/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "program/code/kernel_parts.h"
#include "program/code/map.h"
#include "program/dwarf/lines.h"
#include "program/elf/object.h"

#include <grp.h>
#include <pwd.h>
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

struct places *places_open(void)
{
	return xcalloc(1, sizeof(struct places));
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
		kernel_parts_read(&p->parts);
		(void)code_kernel_open(&p->kernel, NULL);
	}
	for (size_t i = 0; i < p->parts.n; i++)
		if (strcmp(p->parts.all[i].name, image->path) == 0 &&
		    strcmp(p->parts.all[i].build_id, image->build_id) == 0)
			p->part = &p->parts.all[i];
	if (!p->kernel || !p->parts.n)
		*ret_why = "the kernel shows the addresses of its functions to root only";
	else if (!p->part)
		*ret_why = "it is not the kernel that runs now, or the module is not loaded";
	return p->kernel && p->part;
}

/* The rights of the file's owner: root, who shows what anyone's programs did, reads no more of what
 * their owner names than this owner can. */
static struct file_rights rights_of(uint32_t owner)
{
	struct file_rights r = {.uid = owner, .gid = COUNTS_NOBODY};
	const struct passwd *user = getpwuid(owner);
	int n = FILE_RIGHTS_GROUPS;

	if (user) {
		r.gid = user->pw_gid;
		(void)getgrouplist(user->pw_name, user->pw_gid, r.groups, &n);
		r.n_groups = n < FILE_RIGHTS_GROUPS ? (uint32_t)n : FILE_RIGHTS_GROUPS;
	}
	return r;
}

static int open_image(const struct counts_image *image, struct elf_object **ret, struct error *e)
{
	struct file_rights rights;

	if (image->owner == COUNTS_NO_OWNER || image->owner == 0)
		return elf_object_open_named(NULL, image->path, ret, e);
	rights = rights_of(image->owner);
	return elf_object_open_as(&rights, image->path, ret, e);
}

/* NULL: it is, of the same owner and build. */
static const char *why_not_that(const struct elf_object *o, const struct counts_image *image)
{
	static const char another[] =
		"the file of that path is another build now, or that of another container";
	const char *build_id = elf_object_build_id(o);
	struct statx st;

	if (elf_object_look_at(o, &st) < 0)
		return "its file cannot be looked at";
	if (image->owner != COUNTS_NO_OWNER && image->owner != COUNTS_NOBODY &&
	    st.stx_uid != image->owner)
		return "the file of that path belongs to another user";
	if (*image->build_id)
		return build_id && strcmp(build_id, image->build_id) == 0 ? NULL : another;
	return st.stx_ino == image->inode && (uint64_t)st.stx_mtime.tv_sec * 1000000000 +
							     (uint64_t)st.stx_mtime.tv_nsec ==
						     image->changed_ns
		       ? NULL
		       : another;
}

bool places_take(struct places *p, const struct counts_image *image, const char **ret_why)
{
	let_go(p);
	*ret_why = "there are no names in it";
	if (image->kind == COUNTS_KERNEL)
		return take_kernel(p, image, ret_why);
	if (image->kind != COUNTS_FILE)
		return false;
	if (image->path[0] != '/') {
		*ret_why = "its path is not known: its processes had ended before, or its file "
			   "system is one of FUSE";
		return false;
	}
	if (open_image(image, &p->object, &p->why) < 0) {
		*ret_why = p->why.text;
		return false;
	}
	*ret_why = why_not_that(p->object, image);
	if (*ret_why)
		let_go(p);
	return !*ret_why;
}

static bool symbol_at(struct places *p, uint64_t offset, uint64_t *ret_addr)
{
	if (!p->object || elf_object_offset_to_vaddr(p->object, offset, ret_addr) < 0)
		return false;
	if (p->symbol.size && *ret_addr >= p->symbol.addr &&
	    *ret_addr - p->symbol.addr < p->symbol.size)
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
		if (line_table_open(p->object, NULL, &p->lines, NULL) < 0)
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
	p->text = xasprintf("%s:%u", at.file, at.line);
	return p->text;
}
