// SPDX-License-Identifier: BSD-2-Clause
/* The executables and libraries that are known: found by their mappings or by name, opened when
 * something of them is asked for. */
#include "program/code/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/open_file.h"
#include "target/process.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* Libraries are opened through links of the process's, which nobody knows: @e, about @opened, is to
 * name the file. */
static void name_file(struct error *e, const char *opened, const char *path)
{
	size_t n = strlen(opened);
	struct error text = {0};

	if (!e || strncmp(e->text, opened, n) || !strcmp(opened, path))
		return;
	(void)fail(&text, EINVAL, "%s%s", path, e->text + n);
	*e = text;
}

/* Do stat and /proc/PID/maps speak of another device and inode there? The file is a disk's, or on a
 * mount of root's: it answers. */
static bool is_renumbered(const struct elf_object *elf)
{
	struct statfs fs;

	return fstatfs(elf_object_fd(elf), &fs) == 0 &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

/* Is what was opened the file of the entry? Before Linux 6.8 a mapping of a user's overlay has the
 * numbers of the file below it, which is everybody's: what is opened through it must not become
 * that file. */
bool code_elf_is_mapped(const struct elf_object *elf, const struct map_entry *entry)
{
	_cleanup_free_ char *name = NULL;
	struct statx state, as_mapped;
	dev_t mounted;

	if (elf_object_look_at(elf, &state) < 0)
		return false;
	if (map_entry_is_file(entry, &state, NULL))
		return true;
	as_mapped = state;
	if (elf_object_mounted_on(elf, &mounted)) {
		as_mapped.stx_dev_major = major(mounted);
		as_mapped.stx_dev_minor = minor(mounted);
		if (map_entry_is_file(entry, &as_mapped, NULL))
			return true;
	}
	if (elf_object_is_copy(elf) || !is_renumbered(elf) ||
	    (mounted && !overlays_have_lower_numbers()))
		return false;
	name = elf_object_real_path(elf);
	return name && map_entry_is_file(entry, &state, name);
}

bool code_object_is(const struct code_object *o, const struct elf_object *elf)
{
	struct statx x;

	if (o->life.device)
		return elf_object_look_at(elf, &x) == 0 && file_life_is_at(&o->life, &x);
	return code_elf_is_mapped(elf, &o->entry);
}

int code_object_open(struct code_object *o, struct elf_object **ret, struct error *e)
{
	_cleanup_elf_object_ struct elf_object *elf = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	if (!o->pid) {
		r = elf_object_open_named(NULL, o->entry.path, ret, e);
		if (r == 0)
			(void)code_object_opened(o, *ret, NULL);
		return r;
	}
	if (o->no_answer)
		return fail(e, ETIMEDOUT, "%s: its file system does not answer", o->entry.path);
	r = map_entry_open_path(o->pid, &o->entry, &path, e);
	if (r < 0)
		return r;
	r = elf_object_open(path, &elf, e);
	o->no_answer = r == -ETIMEDOUT;
	if (r < 0) {
		name_file(e, path, o->entry.path);
		return r;
	}
	if (!code_object_is(o, elf))
		return fail(e, EREMOTE,
			    "%s: process %d has mapped another file in its place, or it is on an "
			    "overlay of a user's, which Linux 6.8 and later can tell",
			    o->entry.path, (int)o->pid);
	r = code_object_opened(o, elf, e);
	if (r == 0)
		*ret = TAKE_PTR(elf);
	return r;
}

int code_object_opened(struct code_object *o, const struct elf_object *elf, struct error *e)
{
	struct file_life life;
	struct statx state;

	if (elf_object_look_at(elf, &state) < 0)
		return 0;
	life = file_life(&state);
	/* A copy stays when its file has gone, and must not stand for one that has a time. */
	if (o->life.device && (!file_life_is_of(&o->life, &state) ||
			       (elf_object_is_copy(elf) && o->life.ns && !life.ns)))
		return fail(e, EREMOTE, "%s: another file has its inode by now", o->entry.path);
	if (!o->life.ns)
		o->life = life;
	return 0;
}

void code_object_through(struct code_object *o, pid_t pid, const struct code_mapping *p)
{
	if (o->elf || !o->pid)
		return;
	/* A process can have it through a file system of its own. */
	o->no_answer = o->no_answer && o->pid == pid;
	o->pid = pid;
	o->entry.start = p->start;
	o->entry.end = p->end;
	o->entry.offset = p->offset;
	o->elf_tried = o->lines_tried = o->scope_tried = false;
	free(o->why);
	o->why = NULL;
}

const struct elf_object *code_object_elf(struct code_object *o, struct error *e)
{
	struct error why = {0};

	if (!o->elf_tried && code_object_open(o, &o->elf, &why) < 0)
		o->why = xstrdup(why.text);
	if (!o->elf_tried && o->elf) {
		elf_object_set_options(o->elf, o->line_options);
		elf_object_set_called(o->elf, o->entry.path);
	}
	o->elf_tried = true;
	if (!o->elf)
		(void)fail(e, ENOEXEC, "%s", o->why ? o->why : "it cannot be read");
	return o->elf;
}

struct line_table *code_object_lines(struct code_object *o, struct error *e)
{
	const struct elf_object *elf = code_object_elf(o, e);
	struct error why = {0};

	if (elf && !o->lines_tried && line_table_open(elf, o->line_options, &o->lines, &why) < 0) {
		name_file(&why, elf_object_path(elf), o->entry.path);
		free(o->why_no_lines);
		o->why_no_lines = xstrdup(why.text);
	}
	o->lines_tried = true;
	if (elf && !o->lines)
		(void)fail(e, ENODATA, "%s",
			   o->why_no_lines ? o->why_no_lines : "its lines have not been read");
	return o->lines;
}

void code_object_free(struct code_object *o)
{
	if (!o)
		return;
	line_table_close(o->lines);
	line_table_close(o->strict_lines);
	elf_object_close(o->elf);
	elf_object_close(o->strict);
	code_shown_free(o);
	free(o->ranges);
	free(o->cuts);
	free(o->inlined);
	free(o->units_read);
	free(o->why);
	free(o->rows);
	free(o->why_no_lines);
	free(o->entry.path);
	free(o);
}

struct code_object *code_object_add(struct code_map *m, const struct map_entry *entry, pid_t pid)
{
	struct code_object *o;

	if (m->n_objects == CODE_MAX_OBJECTS)
		return NULL;
	o = xcalloc(1, sizeof(*o));
	o->entry = *entry;
	o->entry.path = xstrdup(entry->path);
	o->pid = pid;
	o->named_here = !pid;
	o->is_main = !m->n_objects;
	o->mapped = entry->end;
	o->line_options = &m->lines;
	o->in_scope = code_scope_binary(m, o);
	xarray_add(m->objects, m->n_objects, o);
	return o;
}

void code_object_name(struct code_map *m, struct code_object *o, const struct map_entry *p)
{
	if (o->named_here || !map_entry_leads_here(p, &o->life))
		return;
	o->named_here = true;
	if (!strcmp(o->entry.path, p->path))
		return;
	free(o->entry.path);
	o->entry.path = xstrdup(p->path);
	m->n_changed++;
	if (o->elf)
		elf_object_set_called(o->elf, o->entry.path);
	if (o->in_scope == code_scope_binary(m, o))
		return;
	o->in_scope = !o->in_scope;
	o->rows_tried = false;
	free(o->rows);
	o->rows = NULL;
	o->n_rows = 0;
	free(o->cuts);
	o->cuts = NULL;
	o->n_cuts = 0;
	m->remade = true;
}

int code_object_make_again(struct code_map *m, struct code_object *o)
{
	int r;

	free(o->rows);
	o->rows = NULL;
	o->n_rows = 0;
	o->rows_tried = false;
	m->remade = true;
	r = code_scope_read(m, o);
	return r == 0 && o->elf ? code_rows_read(m, o, o->elf) : r;
}

bool code_object_by_function(const struct code_map *m, struct code_object *o)
{
	return m->functions || o->jit || (m->automatic && !code_object_lines(o, NULL));
}

bool code_object_has_names(const struct code_map *m, struct code_object *o)
{
	const struct elf_object *elf = code_object_elf(o, NULL);

	/* Or can have some soon. */
	if (o->jit)
		return true;
	return code_object_by_function(m, o) ? elf && elf_object_has_functions(elf)
					     : code_object_lines(o, NULL) != NULL;
}

size_t code_map_count(const struct code_map *m)
{
	return m->n_objects;
}

size_t code_map_version(const struct code_map *m)
{
	return m->n_objects + m->n_changed;
}

bool code_map_is_called(const struct code_map *m, size_t i, const char *name)
{
	return code_object_called(m->objects[i], name);
}

bool code_map_is_main(const struct code_map *m, size_t i)
{
	return m->objects[i]->is_main;
}

bool code_map_interprets(const struct code_map *m, size_t i)
{
	return m->objects[i]->interprets;
}

bool code_map_in_scope(const struct code_map *m, size_t i)
{
	return m->objects[i]->in_scope && !m->objects[i]->jit;
}

const char *code_map_path(const struct code_map *m, size_t i)
{
	return m->objects[i]->entry.path;
}

const struct elf_object *code_map_elf(struct code_map *m, size_t i, struct error *e)
{
	return m->objects[i]->is_vdso ? NULL : code_object_elf(m->objects[i], e);
}

struct line_table *code_map_lines(struct code_map *m, size_t i, struct error *e)
{
	return m->objects[i]->is_vdso ? NULL : code_object_lines(m->objects[i], e);
}

const struct elf_object *code_map_strict(struct code_map *m, size_t i,
					 struct line_table **ret_lines, struct error *e)
{
	struct code_object *o = m->objects[i];
	const struct elf_object *elf = code_map_elf(m, i, e);

	*ret_lines = o->strict_lines;
	if (!elf || o->strict)
		return elf ? o->strict : NULL;
	if (elf_object_open_strictly(elf, &o->strict, e) < 0)
		return NULL;
	(void)line_table_open(o->strict, o->line_options, &o->strict_lines, NULL);
	*ret_lines = o->strict_lines;
	return o->strict;
}

void code_map_strict_done(struct code_map *m, size_t i, bool keep)
{
	struct code_object *o = m->objects[i];

	o->strict_kept |= keep;
	if (o->strict_kept)
		return;
	line_table_close(o->strict_lines);
	elf_object_close(o->strict);
	o->strict_lines = NULL;
	o->strict = NULL;
}

void code_map_let_go(struct code_map *m, size_t i)
{
	struct code_object *o = m->objects[i];

	if (o->in_scope || o->is_main || o->is_vdso || o->lines || !o->elf)
		return;
	elf_object_close(o->elf);
	o->elf = NULL;
	o->elf_tried = o->lines_tried = false;
}
