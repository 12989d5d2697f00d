// SPDX-License-Identifier: BSD-2-Clause
#include "session/code_map_private.h"

#include <string.h>

size_t code_map_count(const struct code_map *m)
{
	return m->n_objects;
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

void code_map_let_go(struct code_map *m, size_t i)
{
	struct code_object *o = m->objects[i];

	if (o->in_scope || o->is_main || o->is_vdso || o->lines || !o->elf)
		return;
	elf_object_close(o->elf);
	o->elf = NULL;
	o->elf_tried = o->lines_tried = false;
}
