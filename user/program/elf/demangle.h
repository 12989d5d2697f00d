/* SPDX-License-Identifier: BSD-2-Clause */
/* Readable names in more than one form, for searching. The process for names makes them, if
 * decoders are started (readers.h): the library that makes them takes for ever over some names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_MAX_NAME 8192	    /* longer ones are not made readable */
#define DEMANGLE_MAX_READABLE 16384 /* nor what would become longer than that */
#define DEMANGLE_BATCH 64

/* Could @name be a C++ or Rust symbol? */
bool demangle_is_mangled(const char *name);
/* Is it one of Rust, of the newer (_R...) or the older scheme (_ZN...17h<hash>E)? */
bool demangle_is_rust(const char *name);
/* The readable form with or without the argument list and the result type (only template instances
 * carry one); NULL when @name is not mangled, too long when written out, takes too long, or memory
 * is out. The caller frees. */
char *demangle_as(const char *name, bool arguments, bool result);
/* The same in this process, of a mangled name of any length. */
char *demangle_here(const char *name, bool arguments, bool result);
void demangle_list_here(const char *const *list, size_t n, bool arguments, bool result, char **ret);

/* Many names: one question to the other process for each takes longer than the work. */
struct demangle_batch {
	bool arguments, result;
	/* Gets what demangle_as returns, which it does not keep; in the order in which the names
	 * were added. Not 0: it wants no more. */
	int (*take)(const void *item, const char *readable, void *arg);
	void *arg;
	size_t n;
	const char *names[DEMANGLE_BATCH];
	const void *items[DEMANGLE_BATCH];
};
/* @name and @item are kept until they are taken. Both return what @take returned last. */
int demangle_add(struct demangle_batch *b, const char *name, const void *item);
int demangle_end(struct demangle_batch *b);
