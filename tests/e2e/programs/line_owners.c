// SPDX-License-Identifier: BSD-2-Clause
/* line_owners FILE: for each byte of code of FILE's functions in scope, the line that samples there belong to and the way out of inlined copies,
 * separated by tabs; "-": none. */
#include "program/code/private.h"

#include "base/error.h"

#include <stdio.h>

struct walk {
	struct code_map *map;
	struct code_object *object;
};

static int print_function(const struct elf_symbol *s, void *arg)
{
	struct walk *w = arg;
	struct code_listed listed = {.lines = w->object->lines};

	if (code_map_source_out_of_scope(w->map, &listed, s->addr))
		return 0;
	for (uint64_t at = s->addr; at < s->addr + s->size; at++) {
		struct line_location where;
		const char *line = NULL, *copies;

		if (line_table_at(w->object->lines, at, &where) < 0)
			continue;
		if (code_owner_line(w->map, 0, at, &line) < 0)
			line = "-";
		copies = code_inlined_text(w->map, w->object, at);
		(void)printf("%llx\t%s\t%s\n", (unsigned long long)at, line, copies ? copies : "-");
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct code_scope scope = {.functions = false};
	struct error e = {.text = ""};
	struct code_map *map;
	struct walk w;

	if (argc != 2)
		return 2;
	if (code_map_open(argv[1], &scope, &map, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	w = (struct walk){map, map->objects[0]};
	(void)elf_object_each_function(w.object->elf, print_function, &w);
	code_map_close(map);
	return 0;
}
