// SPDX-License-Identifier: BSD-2-Clause
#include "program/code/map.h"
#include "program/code/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "target/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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
		return expects_libraries(m) ? 0
					    : fail(e, ENODATA,
						   "nothing is in scope: --binary leaves out %s "
						   "and names no library; "
						   "add --binary MAIN",
						   o->entry.path);
	if (code_object_by_function(m, o)) {
		if (elf_object_has_functions(o->elf) || expects_libraries(m))
			return 0;
		if (elf_object_symbol_problem(o->elf))
			return fail(e, ENODATA, "%s", elf_object_symbol_problem(o->elf));
		return fail(e, ENODATA,
			    "%s: %s; build it with -g or without -s, and do not strip it",
			    o->entry.path,
			    automatic ? "neither line information nor function symbols"
				      : "no function symbols");
	}
	if (!code_object_lines(o, &why))
		return expects_libraries(m) ? 0 : fail(e, ENODATA, "%s", why.text);
	r = code_scope_read(m, o);
	if (r < 0)
		return fail(e, -r, "%s: out of memory for its line information", o->entry.path);
	if (!m->sources.n_includes || o->n_ranges || expects_libraries(m))
		return 0;
	(void)line_table_each(o->lines, first_file, &example);
	return fail(
		e, ENODATA,
		"%s: no code from a source file that --source matches; its files are named like %s",
		o->entry.path, example ? example : "nothing");
}

/* What the main executable is as the kernel has it: asked for its name or its state again, a file
 * system of its own can keep us waiting (FUSE). A deleted one is called as it was opened. */
static void describe(const struct elf_object *elf, char **path, struct map_entry *ret)
{
	struct statx st;

	*path = elf_object_real_path(elf);
	if (elf_object_look_at(elf, &st) < 0)
		return;
	ret->device = makedev(st.stx_dev_major, st.stx_dev_minor);
	ret->inode = st.stx_ino;
	if (*path && st.stx_nlink)
		ret->path = *path;
}

int code_map_open(const char *main_path, const struct code_scope *scope, struct code_map **ret,
		  struct error *e)
{
	struct code_map *m = xcalloc(1, sizeof(*m));
	struct map_entry entry = {.path = (char *)(uintptr_t)main_path};
	_cleanup_elf_object_ struct elf_object *elf = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	m->functions = scope->functions;
	m->automatic = scope->automatic;
	xarray_add(m->spaces, m->n_spaces, (struct code_space){0});
	m->inclusive = scope->inclusive;
	if (scope->lines)
		m->lines = *scope->lines;
	r = scope->named ? elf_object_open_named(NULL, main_path, &elf, e)
			 : elf_object_open(main_path, &elf, e);
	if (r == 0) {
		describe(elf, &path, &entry);
		globs_copy(&m->sources, scope->sources, scope->n_sources);
		globs_copy(&m->binaries, scope->binaries, scope->n_binaries);
		(void)code_object_add(m, &entry, 0);
		m->objects[0]->elf_tried = true;
		m->objects[0]->elf = TAKE_PTR(elf);
		(void)code_object_opened(m->objects[0], m->objects[0]->elf, NULL);
		/* Opened through a process's link, it is called as that process has it. */
		m->objects[0]->named_here = strncmp(main_path, "/proc/", strlen("/proc/")) != 0;
		elf_object_set_options(m->objects[0]->elf, &m->lines);
		elf_object_set_called(m->objects[0]->elf, entry.path);
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
		code_object_free(m->objects[i]);
	free(m->objects);
	for (size_t i = 0; i < m->n_spaces; i++)
		free(m->spaces[i].mappings);
	free(m->spaces);
	code_jits_free(m);
	globs_free(&m->sources);
	globs_free(&m->binaries);
	free(m);
}

bool code_map_by_function(struct code_map *m)
{
	return code_object_by_function(m, m->objects[0]);
}

const struct elf_object *code_map_main(const struct code_map *m)
{
	return m->objects[0]->elf;
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

const char *code_map_warning(const struct code_map *m)
{
	const char *warning = NULL;

	for (size_t i = 0; !warning && i < m->n_objects; i++)
		if (m->objects[i]->lines)
			warning = line_table_warning(m->objects[i]->lines);
	return warning;
}

size_t code_map_without_names(struct code_map *m, const char **ret_path, bool *ret_by_function)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_objects; i++) {
		struct code_object *o = m->objects[i];

		if (!o->in_scope || code_object_has_names(m, o))
			continue;
		if (n++)
			continue;
		*ret_path = o->entry.path;
		*ret_by_function = code_object_by_function(m, o);
	}
	return n;
}
