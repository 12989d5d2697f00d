// SPDX-License-Identifier: BSD-2-Clause
#include "session/code_map.h"
#include "session/code_map_private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "target/process.h"

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
	if (!o->elf_tried && o->elf)
		elf_object_set_options(o->elf, o->line_options);
	o->elf_tried = true;
	if (!o->elf)
		(void)fail(e, ENOEXEC, "%s", o->why ? o->why : "out of memory");
	return o->elf;
}

struct line_table *code_object_lines(struct code_object *o, struct error *e)
{
	const struct elf_object *elf = code_object_elf(o, e);
	struct error why = {0};

	if (elf && !o->lines_tried && line_table_open_with(elf, o->line_options, &o->lines, &why) < 0) {
		name_file(&why, elf_object_path(elf), o->entry.path);
		o->why_no_lines = strdup(why.text);
	}
	o->lines_tried = true;
	if (elf && !o->lines)
		(void)fail(e, ENODATA, "%s", o->why_no_lines ? o->why_no_lines : "out of memory");
	return o->lines;
}

static void object_free(struct code_object *o)
{
	if (!o)
		return;
	line_table_close(o->lines);
	elf_object_close(o->elf);
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
	o->line_options = &m->lines;
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
	m->spaces = calloc(1, sizeof(*m->spaces));
	m->n_spaces = m->spaces ? 1 : 0;
	m->inclusive = scope->inclusive;
	if (scope->lines)
		m->lines = *scope->lines;
	if (stat(main_path, &st) == 0) {
		entry.dev_major = major(st.st_dev);
		entry.dev_minor = minor(st.st_dev);
		entry.inode = st.st_ino;
	}
	if (globs_copy(&m->sources, scope->sources, scope->n_sources) < 0 ||
	    globs_copy(&m->binaries, scope->binaries, scope->n_binaries) < 0 || !m->spaces || !add_object(m, &entry, 0)) {
		r = fail(e, ENOMEM, "out of memory");
	} else {
		m->objects[0]->elf_tried = true;
		r = elf_object_open(main_path, &m->objects[0]->elf, e);
		if (r == 0)
			elf_object_set_options(m->objects[0]->elf, &m->lines);
		if (r == 0 && scope->automatic)
			m->functions = m->automatic = !code_object_lines(m->objects[0], NULL);
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
	for (size_t i = 0; i < m->n_spaces; i++)
		free(m->spaces[i].mappings);
	free(m->spaces);
	globs_free(&m->sources);
	globs_free(&m->binaries);
	free(m);
}

static bool same_file(const struct code_object *o, const struct map_entry *p)
{
	if (o->entry.inode == p->inode && o->entry.dev_major == p->dev_major && o->entry.dev_minor == p->dev_minor)
		return true;
	/* Some file systems (btrfs, overlays) give stat another device than the mapping, or another inode. */
	return !strcmp(o->entry.path, p->path) && (o->entry.inode == p->inode || (o->is_main && !o->mapped));
}

size_t code_map_find_object(struct code_map *m, const struct map_entry *p, pid_t pid)
{
	/* A library's mappings follow each other: the last object is the likely one. */
	for (size_t i = m->n_objects; i > 0; i--) {
		struct code_object *o = m->objects[i - 1];

		if (!same_file(o, p))
			continue;
		if (!o->mapped && p->end) { /* from now on it is this file; another one of that name, in a container say, is not */
			o->entry.inode = p->inode;
			o->entry.dev_major = p->dev_major;
			o->entry.dev_minor = p->dev_minor;
			o->mapped = true;
		}
		return i - 1;
	}
	return add_object(m, p, pid) ? m->n_objects - 1 : SIZE_MAX;
}

/* What an earlier refresh found out about the same mapping. */
static const struct code_mapping *known(const struct code_space *s, const struct code_mapping *p)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct code_mapping *k = &s->mappings[mid];

		if (k->start == p->start)
			return k->end == p->end && k->offset == p->offset && k->object == p->object ? k : NULL;
		if (k->start < p->start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* Libraries out of scope are looked at once and closed again: a program may have more of them than we may have files open. */
static const struct elf_object *open_passing(const struct code_object *o, const struct code_mapping *p, struct elf_object **ret)
{
	struct map_entry entry = o->entry;
	_cleanup_free_ char *path = NULL;

	entry.start = p->start;
	entry.end = p->end;
	entry.offset = p->offset;
	if (o->pid && map_entry_open_path(o->pid, &entry, &path, NULL) < 0)
		return NULL;
	return elf_object_open(path ? path : entry.path, ret, NULL) == 0 ? *ret : NULL;
}

static int place(struct code_map *m, const struct code_space *s, struct code_mapping *p)
{
	struct code_object *o = m->objects[p->object];
	_cleanup_elf_object_ struct elf_object *passing = NULL;
	const struct code_mapping *k = known(s, p);
	const struct elf_object *elf;
	int r;

	if (k) {
		*p = *k;
		return 0;
	}
	elf = o->in_scope || o->elf ? code_object_elf(o, NULL) : open_passing(o, p, &passing);
	if (!elf)
		return 0;
	p->placed = elf_object_mapping_bias(elf, p->start, p->offset, &p->bias) == 0;
	r = o->in_scope ? code_scope_read(m, o) : 0;
	return r < 0 ? r : code_rows_read(m, o, elf);
}

static struct code_object *vdso(struct code_map *m, size_t *ret_index)
{
	struct map_entry entry = {.path = (char *)(uintptr_t)"[vdso]"};
	struct code_object *o;
	size_t size;

	for (size_t i = 0; i < m->n_objects; i++)
		if (m->objects[i]->is_vdso) {
			*ret_index = i;
			return m->objects[i];
		}
	o = add_object(m, &entry, 0);
	if (!o)
		return NULL;
	o->is_vdso = o->elf_tried = true;
	o->in_scope = false; /* nobody writes it */
	if (code_vdso_open(&o->elf, &size) == 0)
		o->entry.end = size;
	*ret_index = m->n_objects - 1;
	return o;
}

/* The kernel's own code: not a file, so it is not in the list. */
static int place_vdso(struct code_map *m, const struct code_space *s, pid_t pid, struct code_mapping *ret, bool *ret_placed)
{
	uint64_t start = process_vdso(pid);
	struct code_object *o;
	int r;

	*ret_placed = false;
	if (!start)
		return 0;
	o = vdso(m, &ret->object);
	if (!o || !o->elf || start > UINT64_MAX - o->entry.end)
		return 0;
	ret->start = start;
	ret->end = start + o->entry.end;
	r = place(m, s, ret);
	*ret_placed = r == 0 && ret->placed;
	return r;
}

static int by_start(const void *pa, const void *pb)
{
	const struct code_mapping *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

static bool same(const struct code_space *s, const struct code_mapping *all, size_t n)
{
	if (n != s->n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!known(s, &all[i]))
			return false;
	return true;
}

static int read_mappings(struct code_map *m, struct code_space *s, const struct map_list *list, pid_t pid, bool *ret_changed)
{
	struct code_mapping *all = calloc(list->n + 2, sizeof(*all));
	bool has_vdso = false;
	size_t n = 0;
	int r = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const struct map_entry *p = &list->entries[i];
		size_t object = code_map_find_object(m, p, pid);

		if (object == SIZE_MAX || p->end <= p->start)
			continue;
		all[n] = (struct code_mapping){.start = p->start, .end = p->end, .offset = p->offset, .object = object};
		r = place(m, s, &all[n++]);
	}
	if (r == 0)
		r = place_vdso(m, s, pid, &all[n], &has_vdso);
	if (r < 0) {
		free(all);
		return r;
	}
	n += has_vdso;
	qsort(all, n, sizeof(*all), by_start);
	*ret_changed = !s->mappings || !same(s, all, n);
	free(s->mappings);
	s->mappings = all;
	s->n = n;
	return 0;
}

/* Takes what naming has found out of scope out of the tables. */
int code_map_cut(struct code_map *m, bool *ret_changed)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_objects; i++)
		r = code_rows_cut(m->objects[i], ret_changed);
	return r;
}

int code_map_refresh(struct code_map *m, pid_t pid, bool *ret_changed, struct error *e)
{
	return code_map_refresh_space(m, 0, pid, ret_changed, e);
}

int code_map_refresh_space(struct code_map *m, size_t space, pid_t pid, bool *ret_changed, struct error *e)
{
	struct map_list list = {0};
	int r = map_list_read(pid, &list, e);

	if (r < 0)
		return r;
	r = read_mappings(m, &m->spaces[space], &list, pid, ret_changed);
	map_list_free(&list);
	if (r == 0)
		r = code_map_cut(m, ret_changed);
	return r < 0 ? fail(e, -r, "out of memory for the code map") : 0;
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

/* Is the file the one that the link libx.so.6, or libx.so, stands for: libx.so.6.0.30? A process has mapped files, not links. */
static bool is_version_of(const char *file, const char *name)
{
	size_t n = strlen(name);

	return strstr(name, ".so") && !strncmp(file, name, n) && file[n] == '.' && file[n + 1] >= '0' &&
	       strspn(file + n, ".0123456789") == strlen(file + n);
}

bool code_object_called(const struct code_object *o, const char *name)
{
	const char *base = strrchr(o->entry.path, '/');

	if (!strcmp(o->entry.path, name) || !base)
		return !strcmp(o->entry.path, name);
	return !strcmp(base + 1, name) || is_version_of(base + 1, name);
}

int code_map_object(struct code_map *m, const char *name, const struct elf_object **ret, struct line_table **ret_lines,
		    struct error *e)
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
		return fail(e, ENOENT, "%s: no such executable or library in the program; give its file name or path", name);
	elf = code_object_elf(o, e);
	if (!elf)
		return -ENOENT;
	*ret = elf;
	if (ret_lines)
		*ret_lines = code_object_lines(o, NULL);
	return 0;
}

size_t code_map_learned(const struct code_map *m)
{
	return m->n_learned;
}

bool code_map_is_stale(const struct code_map *m)
{
	for (size_t i = 0; i < m->n_objects; i++)
		if (m->objects[i]->n_cuts)
			return true;
	return false;
}

static bool has_names(const struct code_map *m, struct code_object *o)
{
	const struct elf_object *elf = code_object_elf(o, NULL);

	return m->functions ? elf && elf_object_has_symbols(elf) : code_object_lines(o, NULL) != NULL;
}

const char *code_map_warning(const struct code_map *m)
{
	const char *warning = NULL;

	for (size_t i = 0; !warning && i < m->n_objects; i++)
		if (m->objects[i]->lines)
			warning = line_table_warning(m->objects[i]->lines);
	return warning;
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
