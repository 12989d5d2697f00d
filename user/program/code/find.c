// SPDX-License-Identifier: BSD-2-Clause
/* Which object a mapping belongs to, and which one a name stands for. Several files can have the
 * device and inode that a mapping has; what stat says of the mapped file tells them apart. Who may
 * not follow the kernel's links to mapped files has the numbers alone. */
#include "program/code/private.h"

#include "base/cleanup.h"
#include "base/proc.h"
#include "target/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Its inode has been given to another file. */
static bool is_over(const struct code_object *o)
{
	return o->mapped && !o->entry.inode;
}

static bool has_numbers(const struct code_object *o, const struct map_entry *p)
{
	return o->entry.inode == p->inode && o->entry.device == p->device;
}

/* What is open keeps its inode. */
static bool is_held(const struct code_object *o)
{
	return o->elf && !elf_object_is_copy(o->elf);
}

/* Is it the object's file? The mount of a file that is not held can go, and its device number be
 * given to another mount. A file without a time of birth is therefore not taken for one that has
 * one; a copy is not either, the other way round.
 */
static bool is_its_file(const struct code_object *o, const struct statx *x)
{
	bool had_time = o->life.ns, has_time = file_life(x).ns;

	if (!is_held(o) && has_time != had_time && (!had_time || o->elf))
		return false;
	return file_life_is_of(&o->life, x);
}

/* Can another file have the object's numbers at the same time? Files of two subvolumes of btrfs
 * can, or of two layers of an overlay; stat has others then. */
static bool shares_numbers(const struct code_object *o)
{
	return o->life.device &&
	       (o->life.device != o->entry.device || o->life.inode != o->entry.inode);
}

bool code_object_is_at(const struct code_object *o, const struct map_entry *p, pid_t pid)
{
	struct statx now;
	int r;

	if (!has_numbers(o, p))
		return false;
	if (!shares_numbers(o))
		return true;
	r = map_entry_look_at(pid, p, &now);
	return r == -EPERM || (r == 0 && file_life_is_at(&o->life, &now));
}

/* What stat says of the file that @pid has mapped. */
struct look {
	int err; /* as of map_entry_look_at */
	struct statx state;
};

static struct look look_at(pid_t pid, const struct map_entry *p)
{
	struct look l;

	l.err = p->end ? map_entry_look_at(pid, p, &l.state) : -ENOENT;
	return l;
}

/* The number of a new object; SIZE_MAX: too many. */
static size_t add_found(struct code_map *m, const struct map_entry *p, pid_t pid,
			const struct look *l)
{
	struct code_object *o = code_object_add(m, p, pid);

	if (!o) {
		m->n_surplus += m->n_objects == CODE_MAX_OBJECTS;
		return SIZE_MAX;
	}
	/* Also of what cannot be opened. */
	if (l->err == 0)
		o->life = file_life(&l->state);
	return m->n_objects - 1;
}

/* Does the process execute the file, by what stat says of both? */
static bool executes(pid_t pid, const struct code_object *o)
{
	char link[PROC_PATH];
	struct statx x;

	proc_path(link, pid, "exe");
	return pid && file_look_at(link, &x) == 0 && map_entry_is_file(&o->entry, &x, NULL);
}

/* Is it the object of a file that was named by the user, or is executed and was not mapped yet, or
 * is it asked for by such a name? Mappings can have other numbers. The name alone does not do: any
 * user can have a file of any name in a namespace. */
static bool same_by_name(const struct code_object *o, const struct map_entry *p, pid_t pid,
			 const struct look *l)
{
	if ((o->mapped && p->end) || strcmp(o->entry.path, p->path) != 0)
		return false;
	if (!p->end)
		return !o->life.device && o->entry.inode == p->inode;
	if (l->err != -EPERM)
		return l->err == 0 && is_its_file(o, &l->state);
	return o->elf ? code_elf_is_mapped(o->elf, p) && (!o->is_main || executes(pid, o))
		      : o->entry.inode == p->inode;
}

/* What is not mapped has stat's numbers. */
static bool has_numbers_of(const struct code_object *o, const struct map_entry *p)
{
	if (p->end || !o->life.device)
		return has_numbers(o, p);
	return o->life.inode == p->inode && o->life.device == p->device && !is_over(o);
}

/* From now on the object is the file of the mapping; another one of its name, in a container say,
 * is not. */
static void map_as(struct code_object *o, const struct map_entry *p)
{
	if (o->mapped || !p->end)
		return;
	o->entry.inode = p->inode;
	o->entry.device = p->device;
	o->mapped = true;
}

size_t code_map_find_object(struct code_map *m, const struct map_entry *p, pid_t pid)
{
	size_t found = m->n_objects;
	struct look l;

	/* A library's mappings follow each other: the last object is the likely one. */
	while (found > 0 && !has_numbers_of(m->objects[found - 1], p))
		found--;
	if (!found)
		l = look_at(pid, p);
	for (size_t i = m->n_objects; !found && i > 0; i--)
		found = same_by_name(m->objects[i - 1], p, pid, &l) ? i : 0;
	if (found) {
		map_as(m->objects[found - 1], p);
		return found - 1;
	}
	return add_found(m, p, pid, &l);
}

size_t code_map_tell_apart(struct code_map *m, size_t at, const struct map_entry *p, pid_t pid)
{
	struct code_object *o = m->objects[at];
	struct look l;

	if (!p->end || (is_held(o) && o->life.device && !shares_numbers(o)))
		return at;
	l = look_at(pid, p);
	if (l.err == -EPERM || (l.err == -ENODATA && !shares_numbers(o)))
		return at;
	/* It is mapped no longer: nobody can say which of the files it was. */
	if (l.err < 0)
		return SIZE_MAX;
	if (is_its_file(o, &l.state))
		return at;
	if (file_life_is_at(&o->life, &l.state)) {
		if (is_held(o))
			return at;
		o->entry.inode = 0; /* no mapping of a file has it */
	}
	for (size_t i = m->n_objects; i > 0; i--) {
		struct code_object *x = m->objects[i - 1];

		/* What is not mapped yet has no mapping's numbers. */
		if ((has_numbers(x, p) || !x->mapped) && is_its_file(x, &l.state)) {
			map_as(x, p);
			return i - 1;
		}
	}
	return add_found(m, p, pid, &l);
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
	if (stat(real, &st) == 0 &&
	    has_numbers_of(o, &(struct map_entry){.inode = st.st_ino, .device = st.st_dev}))
		return true;
	return !strncmp(o->entry.path, real, (size_t)(base - real)) &&
	       !strncmp(o->entry.path + (base - real), "/.libs/", 7) &&
	       is_libtools(o->entry.path + (base - real), base + 1);
}

bool code_object_called(const struct code_object *o, const char *name)
{
	const char *base = strrchr(o->entry.path, '/');

	if (is_over(o) || o->jit)
		return false;
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
	struct code_object *o = NULL;
	const struct elf_object *elf;
	struct stat st;

	for (size_t i = 0; !o && i < m->n_objects; i++)
		if (code_object_called(m->objects[i], name))
			o = m->objects[i];
	if (!o && stat(name, &st) == 0 && S_ISREG(st.st_mode)) {
		_cleanup_free_ char *path = realpath(name, NULL);
		const struct map_entry entry = {
			.path = path, .inode = st.st_ino, .device = st.st_dev};
		size_t i = path ? code_map_find_object(m, &entry, 0) : SIZE_MAX;

		o = i == SIZE_MAX ? NULL : m->objects[i];
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
