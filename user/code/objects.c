// SPDX-License-Identifier: BSD-2-Clause
/* The executables and libraries that are known: found by their mappings or by name, opened when
 * something of them is asked for. */
#include "code/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/open_file.h"
#include "base/proc.h"
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
static bool is_file_of(const struct elf_object *elf, const struct map_entry *entry)
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
	return is_file_of(elf, &o->entry);
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

static bool is_on_overlay(const struct elf_object *elf)
{
	struct statfs fs;
	dev_t mounted;

	/* The file systems whose mounts are known answer at once. */
	return elf_object_is_copy(elf) ||
	       (elf_object_mounted_on(elf, &mounted) && fstatfs(elf_object_fd(elf), &fs) == 0 &&
		fs.f_type == OVERLAYFS_SUPER_MAGIC);
}

int code_object_opened(struct code_object *o, const struct elf_object *elf, struct error *e)
{
	bool overlay = is_on_overlay(elf);
	struct file_life life;
	struct statx state;

	/* With the numbers of the file below there can be several files that have them. */
	if ((overlay && overlays_have_lower_numbers()) || elf_object_look_at(elf, &state) < 0)
		return 0;
	life = file_life(&state, overlay);
	if (!file_life_is_same(&o->life, &life))
		return fail(e, EREMOTE, "%s: another file has its inode by now", o->entry.path);
	if (!o->life.device)
		o->life = life;
	return 0;
}

static bool has_life(const struct code_object *o, const struct statx *x)
{
	struct file_life life = file_life(x, o->life.is_copied_up);

	return file_life_is_same(&o->life, &life);
}

/* What is open keeps its inode. */
static bool is_held(const struct code_object *o)
{
	return o->elf && !elf_object_is_copy(o->elf);
}

/* Can another file have the same device and inode in mappings at the same time? Files of two
 * subvolumes of btrfs can, or of two layers of an overlay; stat has another device then. */
static bool shares_numbers(const struct code_object *o)
{
	return o->life.device && o->life.device != makedev(o->entry.dev_major, o->entry.dev_minor);
}

static dev_t device_of(const struct statx *x)
{
	return makedev(x->stx_dev_major, x->stx_dev_minor);
}

bool code_object_is_at(const struct code_object *o, const struct map_entry *p, pid_t pid)
{
	struct statx now;
	int r;

	if (!code_object_same_inode(o, p) || !shares_numbers(o))
		return code_object_same_inode(o, p);
	r = map_entry_look_at(pid, p, &now);
	return r == -EACCES || (r == 0 && o->life.device == device_of(&now));
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
		o->why = strdup(why.text);
	if (!o->elf_tried && o->elf) {
		elf_object_set_options(o->elf, o->line_options);
		elf_object_set_called(o->elf, o->entry.path);
	}
	o->elf_tried = true;
	if (!o->elf)
		(void)fail(e, ENOEXEC, "%s", o->why ? o->why : "out of memory");
	return o->elf;
}

struct line_table *code_object_lines(struct code_object *o, struct error *e)
{
	const struct elf_object *elf = code_object_elf(o, e);
	struct error why = {0};

	if (elf && !o->lines_tried &&
	    line_table_open_with(elf, o->line_options, &o->lines, &why) < 0) {
		name_file(&why, elf_object_path(elf), o->entry.path);
		free(o->why_no_lines);
		o->why_no_lines = strdup(why.text);
	}
	o->lines_tried = true;
	if (elf && !o->lines)
		(void)fail(e, ENODATA, "%s", o->why_no_lines ? o->why_no_lines : "out of memory");
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
	if (array_room(m->objects, m->n_objects) < 0)
		return NULL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->entry = *entry;
	o->entry.path = strdup(entry->path);
	o->pid = pid;
	o->named_here = !pid;
	o->is_main = !m->n_objects;
	o->mapped = entry->end;
	o->line_options = &m->lines;
	if (!o->entry.path) {
		free(o);
		return NULL;
	}
	o->in_scope = code_scope_binary(m, o);
	m->objects[m->n_objects++] = o;
	return o;
}

/* The number of a new object; SIZE_MAX: too many, or no memory. */
static size_t add_found(struct code_map *m, const struct map_entry *p, pid_t pid)
{
	m->n_surplus += m->n_objects == CODE_MAX_OBJECTS;
	return code_object_add(m, p, pid) ? m->n_objects - 1 : SIZE_MAX;
}

bool code_object_same_inode(const struct code_object *o, const struct map_entry *p)
{
	return o->entry.inode == p->inode && o->entry.dev_major == p->dev_major &&
	       o->entry.dev_minor == p->dev_minor;
}

/* Does the process execute the file, by what stat says of both? */
static bool executes(pid_t pid, const struct code_object *o)
{
	char link[PROC_PATH];
	struct statx x;

	proc_path(link, pid, "exe");
	return pid && file_look_at(link, &x) == 0 && x.stx_ino == o->entry.inode &&
	       x.stx_dev_major == o->entry.dev_major && x.stx_dev_minor == o->entry.dev_minor;
}

/* Some file systems (btrfs, overlays) give stat another device than the mapping, or another inode.
 * The name alone does not do: any user can have a file of any name in a namespace. */
static bool same_by_name(const struct code_object *o, const struct map_entry *p, pid_t pid)
{
	struct statx now;
	int r;

	if ((o->mapped && p->end) || strcmp(o->entry.path, p->path) != 0)
		return false;
	if (o->is_main && !o->mapped)
		return executes(pid, o) && (!o->elf || is_file_of(o->elf, p));
	/* One of the two was named by the user, not found in a process. */
	if (o->entry.inode != p->inode || (pid && o->pid))
		return false;
	if (!pid)
		return !o->life.device || o->life.device == makedev(p->dev_major, p->dev_minor);
	r = map_entry_look_at(pid, p, &now);
	return r == -EACCES || (r == 0 && has_life(o, &now));
}

void code_object_name(struct code_map *m, struct code_object *o, const struct map_entry *p)
{
	char *path;

	if (o->named_here || !map_entry_leads_here(p, o->life.device))
		return;
	path = strdup(p->path);
	if (!path)
		return;
	o->named_here = true;
	if (!strcmp(o->entry.path, path)) {
		free(path);
		return;
	}
	free(o->entry.path);
	o->entry.path = path;
	m->n_changed++;
	if (o->elf)
		elf_object_set_called(o->elf, path);
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

size_t code_map_find_object(struct code_map *m, const struct map_entry *p, pid_t pid)
{
	size_t found = m->n_objects;

	/* A library's mappings follow each other: the last object is the likely one. */
	while (found > 0 && !code_object_same_inode(m->objects[found - 1], p))
		found--;
	for (size_t i = m->n_objects; !found && i > 0; i--)
		found = same_by_name(m->objects[i - 1], p, pid) ? i : 0;
	if (found) {
		struct code_object *o = m->objects[found - 1];

		if (!o->mapped && p->end) { /* from now on it is this file; another one of that
					       name, in a container say, is not */
			o->entry.inode = p->inode;
			o->entry.dev_major = p->dev_major;
			o->entry.dev_minor = p->dev_minor;
			o->mapped = true;
		}
		return found - 1;
	}
	return add_found(m, p, pid);
}

size_t code_map_tell_apart(struct code_map *m, size_t at, const struct map_entry *p, pid_t pid)
{
	struct code_object *o = m->objects[at];
	struct statx now;
	int r;

	if (!o->life.device || (is_held(o) && !shares_numbers(o)))
		return at;
	r = map_entry_look_at(pid, p, &now);
	/* It has gone, with no time to say which of the files it was. */
	if (r < 0 && r != -EACCES && p->end && shares_numbers(o))
		return SIZE_MAX;
	if (r < 0 || has_life(o, &now))
		return at;
	if (o->life.device == device_of(&now)) {
		/* Who changes a file all the time must not fill the table. */
		if (is_held(o) || m->n_objects == CODE_MAX_OBJECTS ||
		    (o->life.is_copied_up && m->n_objects > CODE_MAX_OBJECTS / 2))
			return at;
		o->entry.inode = 0; /* no mapping of a file has it */
	}
	for (size_t i = m->n_objects; i > 0; i--)
		if (code_object_same_inode(m->objects[i - 1], p) &&
		    has_life(m->objects[i - 1], &now))
			return i - 1;
	return add_found(m, p, pid);
}

/* Is the file the one that the link libx.so.6, or libx.so, stands for: libx.so.6.0.30? A process
 * has mapped files, not links. */
static bool is_version_of(const char *file, const char *name)
{
	size_t n = strlen(name);

	return strstr(name, ".so") && !strncmp(file, name, n) && file[n] == '.' &&
	       file[n + 1] >= '0' && strspn(file + n, ".0123456789") == strlen(file + n);
}

/* Is @path what libtool has made of the program @name, which itself is a script: .libs/NAME, or
 * .libs/lt-NAME? The rest of the path is not looked at.
 */
static bool is_libtools(const char *path, const char *name)
{
	const char *folder = strstr(path, "/.libs/"),
		   *base = folder ? folder + strlen("/.libs/") : NULL;

	return base &&
	       (!strcmp(base, name) || (!strncmp(base, "lt-", 3) && !strcmp(base + 3, name)));
}

/* Is it the file at the path @name, as a shell would find it from our working directory? */
static bool is_at(const struct code_object *o, const char *name)
{
	_cleanup_free_ char *real = realpath(name, NULL);
	const char *base = real ? strrchr(real, '/') : NULL;
	struct stat st;

	if (!base || !strcmp(o->entry.path, real))
		return base;
	/* By the name alone it may be another one's, in a container say. */
	if (stat(real, &st) == 0 && st.st_ino == o->entry.inode &&
	    (st.st_dev == o->life.device ||
	     st.st_dev == makedev(o->entry.dev_major, o->entry.dev_minor)))
		return true;
	return !strncmp(o->entry.path, real, (size_t)(base - real)) &&
	       !strncmp(o->entry.path + (base - real), "/.libs/", 7) &&
	       is_libtools(o->entry.path + (base - real), base + 1);
}

bool code_object_called(const struct code_object *o, const char *name)
{
	const char *base = strrchr(o->entry.path, '/');

	if (o->mapped && !o->entry.inode)
		return false; /* its inode is another one's by now */
	if (!strcmp(o->entry.path, name))
		return true;
	if (strchr(name, '/'))
		return is_at(o, name);
	return base && (!strcmp(base + 1, name) || is_version_of(base + 1, name) ||
			is_libtools(o->entry.path, name));
}

int code_map_object(struct code_map *m, const char *name, const struct elf_object **ret,
		    struct line_table **ret_lines, struct error *e)
{
	struct map_entry entry = {0};
	struct code_object *o = NULL;
	const struct elf_object *elf;
	struct stat st;

	for (size_t i = 0; !o && i < m->n_objects; i++)
		if (code_object_called(m->objects[i], name))
			o = m->objects[i];
	if (!o && stat(name, &st) == 0 && S_ISREG(st.st_mode)) {
		_cleanup_free_ char *path = realpath(name, NULL);

		entry.path = path;
		entry.dev_major = major(st.st_dev);
		entry.dev_minor = minor(st.st_dev);
		entry.inode = st.st_ino;
		if (path) {
			size_t i = code_map_find_object(m, &entry, 0);

			o = i == SIZE_MAX ? NULL : m->objects[i];
		}
	}
	if (!o)
		return fail(e, ENOENT,
			    "%s: no such executable or library in the program; give its file name "
			    "or path",
			    name);
	elf = code_object_elf(o, e);
	if (!elf)
		return -ENOENT;
	*ret = elf;
	if (ret_lines)
		*ret_lines = code_object_lines(o, NULL);
	return 0;
}

bool code_object_by_function(const struct code_map *m, struct code_object *o)
{
	return m->functions || (m->automatic && !code_object_lines(o, NULL));
}

bool code_object_has_names(const struct code_map *m, struct code_object *o)
{
	const struct elf_object *elf = code_object_elf(o, NULL);

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

bool code_map_in_scope(const struct code_map *m, size_t i)
{
	return m->objects[i]->in_scope;
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
	(void)line_table_open_with(o->strict, o->line_options, &o->strict_lines, NULL);
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
