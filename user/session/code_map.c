// SPDX-License-Identifier: BSD-2-Clause
#include "session/code_map.h"
#include "session/code_map_private.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Libraries are opened through links of the process's, which nobody knows: @e, about @opened, is to name the file. */
static void name_file(struct error *e, const char *opened, const char *path)
{
	size_t n = strlen(opened);
	struct error text = {0};

	if (strncmp(e->text, opened, n) || !strcmp(opened, path))
		return;
	(void)fail(&text, EINVAL, "%s%s", path, e->text + n);
	*e = text;
}

const struct elf_object *code_object_elf(struct code_object *o, struct error *e)
{
	_cleanup_free_ char *path = NULL;
	struct error why = {0};

	if (!o->elf_tried && (!o->pid || map_entry_open_path(o->pid, &o->entry, &path, &why) == 0))
		(void)elf_object_open(path ? path : o->entry.path, &o->elf, &why);
	if (!o->elf_tried && !o->elf) {
		if (path)
			name_file(&why, path, o->entry.path);
		o->why = strdup(why.text);
	}
	o->elf_tried = true;
	if (!o->elf)
		(void)fail(e, ENOEXEC, "%s", o->why ? o->why : "out of memory");
	return o->elf;
}

struct line_table *code_object_lines(struct code_object *o, struct error *e)
{
	const struct elf_object *elf = code_object_elf(o, e);

	if (o->lines_tried) {
		if (elf && !o->lines)
			(void)fail(e, ENODATA, "%s: no line information; build with -g, or use --granularity function", o->entry.path);
		return o->lines;
	}
	o->lines_tried = true;
	if (elf && line_table_open(elf, &o->lines, e) < 0 && e)
		name_file(e, elf_object_path(elf), o->entry.path);
	return o->lines;
}

static void object_free(struct code_object *o)
{
	if (!o)
		return;
	line_table_close(o->lines);
	elf_object_close(o->elf);
	free(o->ranges);
	free(o->inlined);
	free(o->why);
	free(o->entry.path);
	free(o);
}

static struct code_object *add_object(struct code_map *m, const struct map_entry *entry, pid_t pid)
{
	struct code_object **grown, *o;

	if (m->n_objects == CODE_MAX_OBJECTS)
		return NULL;
	grown = reallocarray(m->objects, m->n_objects + 1, sizeof(struct code_object *));
	if (!grown)
		return NULL;
	m->objects = grown;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->entry = *entry;
	o->entry.path = strdup(entry->path);
	o->pid = pid;
	o->is_main = !m->n_objects;
	if (!o->entry.path) {
		free(o);
		return NULL;
	}
	o->in_scope = code_scope_binary(m, o);
	m->objects[m->n_objects++] = o;
	return o;
}

/* Can libraries be in scope that are not known before the program runs? */
static bool expects_libraries(const struct code_map *m)
{
	for (size_t i = 0; i < m->binaries.n; i++)
		if (*m->binaries.all[i] != '!' && strcmp(m->binaries.all[i], "MAIN"))
			return true;
	return false;
}

static int first_file(const char *file, uint32_t line, void *arg)
{
	(void)line;
	*(const char **)arg = file;
	return 1;
}

static int check_scope(struct code_map *m, bool automatic, struct error *e)
{
	struct code_object *o = m->objects[0];
	const char *example = NULL;
	struct error why = {0};
	int r;

	if (!o->in_scope)
		return expects_libraries(m) ? 0 : fail(e, ENODATA, "nothing is in scope: --binary leaves out %s and names no library; "
						       "add --binary MAIN", o->entry.path);
	if (m->functions) {
		if (elf_object_has_symbols(o->elf) || expects_libraries(m))
			return 0;
		if (elf_object_symbol_problem(o->elf))
			return fail(e, ENODATA, "%s", elf_object_symbol_problem(o->elf));
		return fail(e, ENODATA, "%s: %s; build it with -g or without -s, and do not strip it", o->entry.path,
			    automatic ? "neither line information nor function symbols" : "no function symbols");
	}
	if (!code_object_lines(o, &why))
		return expects_libraries(m) ? 0 : fail(e, ENODATA, "%s", why.text);
	r = code_scope_read(m, o);
	if (r < 0)
		return fail(e, -r, "%s: out of memory for its line information", o->entry.path);
	if (!m->sources.n_includes || o->n_ranges || expects_libraries(m))
		return 0;
	(void)line_table_each(o->lines, first_file, &example);
	return fail(e, ENODATA, "%s: no code from a source file that --source matches; its files are named like %s", o->entry.path,
		    example ? example : "nothing");
}

int code_map_open(const char *main_path, const struct code_scope *scope, struct code_map **ret, struct error *e)
{
	struct code_map *m = calloc(1, sizeof(*m));
	_cleanup_free_ char *path = realpath(main_path, NULL);
	struct map_entry entry = {.path = path ? path : (char *)(uintptr_t)main_path};
	struct stat st;
	int r = -ENOMEM;

	if (!m)
		return fail(e, ENOMEM, "out of memory");
	m->functions = scope->functions;
	if (stat(main_path, &st) == 0) {
		entry.dev_major = major(st.st_dev);
		entry.dev_minor = minor(st.st_dev);
		entry.inode = st.st_ino;
	}
	if (globs_copy(&m->sources, scope->sources, scope->n_sources) < 0 ||
	    globs_copy(&m->binaries, scope->binaries, scope->n_binaries) < 0 || !add_object(m, &entry, 0)) {
		r = fail(e, ENOMEM, "out of memory");
	} else {
		m->objects[0]->elf_tried = true;
		r = elf_object_open(main_path, &m->objects[0]->elf, e);
		if (r == 0 && scope->automatic)
			m->functions = !code_object_lines(m->objects[0], NULL);
		if (r == 0)
			r = scope->lenient ? 0 : check_scope(m, scope->automatic, e);
	}
	if (r < 0) {
		code_map_close(m);
		return r;
	}
	*ret = m;
	return 0;
}

void code_map_close(struct code_map *m)
{
	if (!m)
		return;
	code_names_free(m);
	for (size_t i = 0; i < m->n_objects; i++)
		object_free(m->objects[i]);
	free(m->objects);
	free(m->mappings);
	free(m->ranges);
	globs_free(&m->sources);
	globs_free(&m->binaries);
	free(m);
}

static bool same_file(const struct code_object *o, const struct map_entry *p)
{
	if (o->entry.inode == p->inode && o->entry.dev_major == p->dev_major && o->entry.dev_minor == p->dev_minor)
		return true;
	/* Some file systems (btrfs, overlays) give stat another device than the mapping. */
	return !strcmp(o->entry.path, p->path) && (o->entry.inode == p->inode || o->is_main);
}

static size_t find_object(struct code_map *m, const struct map_entry *p, pid_t pid)
{
	/* A library's mappings follow each other: the last object is the likely one. */
	for (size_t i = m->n_objects; i > 0; i--)
		if (same_file(m->objects[i - 1], p))
			return i - 1;
	return add_object(m, p, pid) ? m->n_objects - 1 : SIZE_MAX;
}

static int place(struct code_map *m, struct code_mapping *p)
{
	struct code_object *o = m->objects[p->object];
	const struct elf_object *elf;

	if (!o->in_scope)
		return 0;
	elf = code_object_elf(o, NULL);
	p->placed = elf && elf_object_mapping_bias(elf, p->start, p->offset, &p->bias) == 0;
	return elf ? code_scope_read(m, o) : 0;
}

static int read_mappings(struct code_map *m, const struct map_list *list, pid_t pid)
{
	struct code_mapping *all = calloc(list->n + 1, sizeof(*all));
	size_t n = 0;
	int r = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const struct map_entry *p = &list->entries[i];
		size_t object = find_object(m, p, pid);

		if (object == SIZE_MAX || p->end <= p->start)
			continue;
		all[n] = (struct code_mapping){.start = p->start, .end = p->end, .offset = p->offset, .object = object};
		r = place(m, &all[n++]);
	}
	if (r < 0) {
		free(all);
		return r;
	}
	free(m->mappings);
	m->mappings = all;
	m->n_mappings = n;
	return 0;
}

int code_map_refresh(struct code_map *m, pid_t pid, bool *ret_changed, struct error *e)
{
	struct map_list list = {0};
	struct addr_range *ranges;
	size_t n;
	int r = map_list_read(pid, &list, e);

	if (r < 0)
		return r;
	r = read_mappings(m, &list, pid);
	map_list_free(&list);
	if (r == 0)
		r = code_scope_ranges(m, &ranges, &n);
	if (r < 0)
		return fail(e, -r, "out of memory for the code map");
	m->outdated = false;
	*ret_changed = n != m->n_ranges || (n && memcmp(ranges, m->ranges, n * sizeof(*ranges)));
	free(m->ranges);
	m->ranges = ranges;
	m->n_ranges = n;
	return 0;
}

bool code_map_outdated(const struct code_map *m)
{
	return m->outdated;
}

size_t code_map_ranges(const struct code_map *m, const struct addr_range **ret)
{
	*ret = m->ranges;
	return m->n_ranges;
}

bool code_map_by_function(const struct code_map *m)
{
	return m->functions;
}

const struct elf_object *code_map_main(const struct code_map *m)
{
	return m->objects[0]->elf;
}

struct line_table *code_map_main_lines(struct code_map *m)
{
	return code_object_lines(m->objects[0], NULL);
}

static bool object_called(const struct code_object *o, const char *name)
{
	const char *base = strrchr(o->entry.path, '/');

	return !strcmp(o->entry.path, name) || (base && !strcmp(base + 1, name));
}

int code_map_object(struct code_map *m, const char *name, const struct elf_object **ret, struct line_table **ret_lines,
		    struct error *e)
{
	struct map_entry entry = {0};
	struct code_object *o = NULL;
	const struct elf_object *elf;
	struct stat st;

	for (size_t i = 0; !o && i < m->n_objects; i++)
		if (object_called(m->objects[i], name))
			o = m->objects[i];
	if (!o && stat(name, &st) == 0 && S_ISREG(st.st_mode)) {
		_cleanup_free_ char *path = realpath(name, NULL);

		entry.path = path;
		entry.dev_major = major(st.st_dev);
		entry.dev_minor = minor(st.st_dev);
		entry.inode = st.st_ino;
		if (path) {
			size_t i = find_object(m, &entry, 0);

			o = i == SIZE_MAX ? NULL : m->objects[i];
		}
	}
	if (!o)
		return fail(e, ENOENT, "%s: no such executable or library in the program; give its file name or path", name);
	elf = code_object_elf(o, e);
	if (!elf)
		return -ENOENT;
	*ret = elf;
	if (ret_lines)
		*ret_lines = code_object_lines(o, NULL);
	return 0;
}

static bool has_names(const struct code_map *m, struct code_object *o)
{
	const struct elf_object *elf = code_object_elf(o, NULL);

	return m->functions ? elf && elf_object_has_symbols(elf) : code_object_lines(o, NULL) != NULL;
}

size_t code_map_without_names(const struct code_map *m, const char **ret_path)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_objects; i++) {
		struct code_object *o = m->objects[i];

		if (!o->in_scope || has_names(m, o))
			continue;
		if (!n++)
			*ret_path = o->entry.path;
	}
	return n;
}
