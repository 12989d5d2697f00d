/* SPDX-License-Identifier: BSD-2-Clause */
/* Which libraries an executable will be loaded with, guessed as the dynamic linker would find them:
 * by DT_RUNPATH and DT_RPATH, LD_LIBRARY_PATH, and the usual directories. Its cache is not read, so
 * a guess can be wrong or missing; what the process then really maps is what counts. */
#pragma once

#include <stdbool.h>

struct elf_object;

/* The path of the library @name (a base name) for @main; the caller frees. NULL: not found, or out
 * of memory. */
char *library_find(const struct elf_object *main, const char *name);
/* Calls @cb for each library that @main and its libraries ask for, opened for the call alone; stops
 * at non-zero and returns it. -ENOMEM. */
int library_each_needed(const struct elf_object *main,
			int (*cb)(const struct elf_object *library, void *arg), void *arg);
/* Is the file a library or a module, and no program? Also one that can be executed, as the C
 * library can: it has a name for programs that are linked with it (DT_SONAME), or neither a dynamic
 * linker nor the flag of a program that needs none (DF_1_PIE). */
bool library_is_one(const struct elf_object *o);
/* Can the program load libraries while it runs, by dlopen of its own or of a library's? */
bool library_can_come(const struct elf_object *main);
