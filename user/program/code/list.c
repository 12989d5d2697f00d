// SPDX-License-Identifier: BSD-2-Clause
#include "program/code/private.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

static const char *out_of_scope(const struct code_object *o, struct error *e)
{
	(void)fail(e, ENODATA, "%s: out of scope; --binary '%s' takes it in", o->entry.path,
		   o->is_main ? "MAIN" : basename(o->entry.path));
	return e->text;
}

static void describe(struct code_map *m, struct code_object *o, struct code_listed *ret,
		     struct error *e)
{
	*ret = (struct code_listed){
		.path = o->entry.path, .is_main = o->is_main, .in_scope = o->in_scope};
	if (!o->in_scope) {
		ret->why = out_of_scope(o, e);
		return;
	}
	ret->elf = code_object_elf(o, e);
	ret->why = ret->elf ? NULL : e->text;
	if (!ret->elf)
		return;
	ret->lines = code_object_lines(o, e);
	if (!code_object_by_function(m, o) && !ret->lines)
		ret->why = e->text;
	if (code_object_by_function(m, o) && !elf_object_has_functions(ret->elf)) {
		ret->why = elf_object_symbol_problem(ret->elf);
		if (!ret->why) {
			(void)fail(e, ENODATA,
				   "%s: no function symbols; build without -s and do not strip it",
				   o->entry.path);
			ret->why = e->text;
		}
	}
}

int code_map_each(struct code_map *m, int (*cb)(const struct code_listed *o, void *arg), void *arg)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_objects; i++) {
		struct code_listed listed;
		struct error e = {0};

		/* The kernel's never can be, and what is made as the program runs is no file's. */
		if (m->objects[i]->is_vdso || m->objects[i]->jit)
			continue;
		describe(m, m->objects[i], &listed, &e);
		r = cb(&listed, arg);
	}
	return r;
}
