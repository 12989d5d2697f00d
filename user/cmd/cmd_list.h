/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `cozbpf list` share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct code_map;
struct list_note;
struct list_seen;

struct listing {
	const char *glob; /* NULL: all */
	bool functions;
	struct code_map *code;
	size_t printed;
	struct list_note *notes; /* what cannot be tried, in the order in which it was found */
	struct list_seen *seen;  /* names printed: several symbols may read the same */
	char *nothing;           /* why nothing of the main executable can be tried */
};

/* Prints what can be tried, a name a line, then what cannot and why, each line with "# " in front. Returns the exit status, after one line
 * on stderr if there is nothing to try. */
int list_names(struct listing *l, bool process);
void list_free(struct listing *l); /* frees the contents */
