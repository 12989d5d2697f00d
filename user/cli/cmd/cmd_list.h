/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `cozbpf list` share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_map;
struct elf_object;
struct list_word;

struct listing {
	const char *glob; /* NULL: all */
	bool functions;
	struct code_map *code;
	size_t printed;
	struct list_word *notes; /* what cannot be tried, in the order in which it was found */
	struct list_word *seen;	 /* names printed: several symbols may read the same */
	char *nothing;		 /* why nothing of the main executable can be tried */
};

/* Prints what can be tried, a name a line, then what cannot and why, each line with "# " in front.
 * Returns the exit status, after one line on stderr if there is nothing to try. */
int list_names(struct listing *l, bool process);
/* The same for what --progress could count. (cmd_list_points.c) */
int list_points(struct listing *l);
/* What process @pid and its children pass evenly, how often, the most suitable first.
 * (cmd_list_points.c) */
int list_rates(struct listing *l, int pid);
void list_free(struct listing *l); /* frees the contents */

/* Prints the name and ends the line. Names come from the file: nothing in them reaches the terminal
 * as a control character. */
void list_print_name(const char *name);
/* Was it not printed before? */
bool list_is_new(struct listing *l, const char *name);
/* To be said at the end, once. */
void list_note(struct listing *l, const char *text);
/* If several functions share the code that begins at @vaddr (elf/names.h), that is said at the end.
 * 1: they do. -ENOMEM. */
int list_note_sharers(struct listing *l, const struct elf_object *elf, uint64_t vaddr,
		      bool by_source);
/* Prints the notes. Returns the exit status; if nothing was printed, after one line on stderr: why,
 * or @nothing. */
int list_end(struct listing *l, const char *nothing);
