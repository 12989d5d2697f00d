// SPDX-License-Identifier: BSD-2-Clause
/* Several processes in one map: each has mapped the objects elsewhere, and each has a main
 * executable. */
#include "program/code/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "program/elf/libraries.h"
#include "base/proc.h"
#include "target/launch.h"
#include "target/process.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void code_map_set_kernel(struct code_map *m, const struct code_kernel *k)
{
	m->kernel = k;
}

int code_map_add_space(struct code_map *m, size_t *ret)
{
	for (size_t i = 1; i < m->n_spaces; i++)
		if (!m->spaces[i].used) {
			m->spaces[i].used = true;
			*ret = i;
			return 0;
		}
	if (m->n_spaces == ABI_MAX_SPACES)
		return -E2BIG;
	*ret = m->n_spaces;
	xarray_add(m->spaces, m->n_spaces, (struct code_space){.used = true});
	return 0;
}

void code_map_drop_space(struct code_map *m, size_t space)
{
	free(m->spaces[space].mappings);
	code_jit_drop(&m->spaces[space]);
	m->spaces[space] = (struct code_space){0};
}

static bool maps_file(const struct code_map *m, const struct code_mapping *k,
		      const struct map_entry *p, pid_t pid)
{
	const struct code_object *o = m->objects[k->object];

	return k->start == p->start && k->end == p->end && k->offset == p->offset &&
	       (code_object_is_at(o, p, pid) ||
		(!o->mapped && strcmp(o->entry.path, p->path) == 0));
}

bool code_map_same_space(struct code_map *m, size_t space, pid_t pid)
{
	const struct code_space *s = &m->spaces[space];
	struct map_list list = {0};
	size_t at = 0, n_vdso = 0;
	bool same = !s->is_late && map_list_read(pid, &list, NULL) == 0;

	same = same && list.n_copies == s->n_copies;
	for (size_t i = 0; same && i < s->n; i++) {
		if (s->mappings[i].is_copy || m->objects[s->mappings[i].object]->jit)
			continue;
		if (m->objects[s->mappings[i].object]->is_vdso) {
			n_vdso++;
			continue;
		}
		same = at < list.n && maps_file(m, &s->mappings[i], &list.entries[at++], pid);
	}
	same = same && s->n && at == list.n && n_vdso <= 1 && code_jit_same(m, s, pid, &list);
	map_list_free(&list);
	return same;
}

/* The executable of @pid as its mapping has it; as stat has it where it is not mapped. */
static int find_executable(pid_t pid, const char *link, char *path, struct statx *ret_state,
			   struct map_entry *ret, struct map_list *list)
{
	ssize_t n = readlink(link, path, PATH_MAX - 1);
	const struct statx *st = ret_state;

	if (n < 0 || file_look_at(link, ret_state) < 0)
		return -errno;
	path[n] = '\0';
	*ret = (struct map_entry){.path = path,
				  .inode = st->stx_ino,
				  .device = makedev(st->stx_dev_major, st->stx_dev_minor)};
	if (map_list_read(pid, list, NULL) < 0)
		return 0;
	for (size_t i = 0; i < list->n; i++)
		if (strncmp(list->entries[i].path, path, strlen(list->entries[i].path)) == 0 &&
		    list->entries[i].inode == st->stx_ino) {
			*ret = list->entries[i];
			return 0;
		}
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->entries[i].path, path) == 0) {
			*ret = list->entries[i];
			return 0;
		}
	return 0;
}

/* Opens the executable of @pid behind @link, which has led to the file @before. */
static int open_executable(struct code_object *o, pid_t pid, const char *link,
			   const struct statx *before, struct error *e)
{
	_cleanup_elf_object_ struct elf_object *elf = NULL;
	struct statx opened;
	int r = elf_object_open_process(pid, link, process_file_path(o->entry.path, link), &elf, e);

	if (r < 0)
		return r;
	if (elf_object_look_at(elf, &opened) < 0 || !file_is_same(&opened, before))
		return fail(e, ESRCH, "process %d executes another program by now", (int)pid);
	if (!code_object_is(o, elf))
		return fail(e, EREMOTE, "%s: process %d executes another file of that name",
			    o->entry.path, (int)pid);
	r = code_object_opened(o, elf, e);
	if (r < 0)
		return r;
	elf_object_set_called(elf, o->entry.path);
	o->elf = TAKE_PTR(elf);
	return 0;
}

/* The program that a dynamic linker has been told to start, as it is called among the words of the
 * command: its mapping. NULL: the executable @path is no such linker. */
static const struct map_entry *started_by_linker(pid_t pid, const char *path,
						 const struct map_list *list)
{
	_cleanup_free_ char *words = process_text(pid, "cmdline");
	const char *program;
	char *argv[64] = {NULL};
	char *word = words;

	for (size_t i = 0; word && *word && i + 1 < sizeof(argv) / sizeof(*argv);
	     word += strlen(word) + 1)
		argv[i++] = word;
	program = argv[0] ? target_of_linker(path, argv) : NULL;
	for (size_t i = 0; program && i < list->n; i++)
		if (!strcmp(basename(list->entries[i].path), basename(program)))
			return &list->entries[i];
	return NULL;
}

int code_map_add_main(struct code_map *m, pid_t pid, struct error *e)
{
	_cleanup_free_ char *path = xcalloc(PATH_MAX, 1);
	_cleanup_(map_list_free) struct map_list list = {0};
	struct map_entry entry = {0};
	const struct map_entry *linked;
	struct code_object *o;
	char link[PROC_PATH];
	struct statx state, now;
	size_t i, known;
	int r;

	proc_path(link, pid, "exe");
	r = find_executable(pid, link, path, &state, &entry, &list);
	if (r < 0)
		return fail(e, -r, "cannot read the executable of process %d: %s", (int)pid,
			    strerror(-r));
	linked = started_by_linker(pid, path, &list);
	if (linked)
		entry = *linked;
	/* Opened by the link for as long as the process lives, which is now; the descriptor is
	 * kept. */
	known = m->n_objects;
	i = code_map_find_object(m, &entry, pid);
	if (i != SIZE_MAX)
		i = code_map_tell_apart(m, i, &entry, pid);
	if (i == SIZE_MAX && m->n_objects < CODE_MAX_OBJECTS)
		return fail(e, ESRCH, "process %d executes another program by now", (int)pid);
	if (i == SIZE_MAX)
		return fail(e, ENOMEM, "too many executables and libraries");
	o = m->objects[i];
	if (o->is_main)
		return 0;
	if (linked) {
		(void)code_object_elf(o, NULL);
	} else if (!o->elf) {
		struct error why = {0};

		free(o->why);
		o->why = NULL;
		o->elf_tried = true;
		r = open_executable(o, pid, link, &state, &why);
		if (r < 0)
			o->why = xstrdup(why.text);
	}
	/* A library stays a library for all processes that have it mapped, although this one
	 * executes it. An open that failed says nothing of a file that others have mapped, or where
	 * the process has ended or executes another one by now. */
	if (o->elf ? library_is_one(o->elf)
		   : i < known || r == -EREMOTE || file_look_at(link, &now) < 0 ||
			     !file_is_same(&now, &state)) {
		code_map_let_go(m, i);
		if (!o->elf) {
			o->elf_tried = false;
			free(o->why);
			o->why = NULL;
		}
		return 0;
	}
	o->is_main = true;
	m->n_changed++;
	if (!o->in_scope) {
		o->in_scope = code_scope_binary(m, o);
		/* It was taken for a library: of a process that executed it between two readings,
		 * of its executable and of its mappings. */
		if (o->in_scope && o->rows_tried && code_object_make_again(m, o) < 0)
			return fail(e, ENOMEM, "out of memory for the code of %s", path);
	}
	return 0;
}

int code_map_check(struct code_map *m, struct error *e)
{
	struct code_object *o = m->objects[0];
	struct error why = {0};

	for (size_t i = 0; i < m->n_objects; i++) {
		struct code_object *x = m->objects[i];

		if (x->in_scope && code_object_has_names(m, x))
			return 0;
	}
	if (!o->in_scope)
		return fail(e, ENODATA,
			    "nothing is in scope: no executable or library of the processes "
			    "matches --binary");
	if (!code_object_by_function(m, o) && !code_object_lines(o, &why))
		return fail(e, ENODATA, "%s", why.text);
	return fail(e, ENODATA,
		    "%s: neither line information nor function symbols; build it with -g or "
		    "without -s, and do not strip it",
		    o->entry.path);
}
