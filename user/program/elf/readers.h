/* SPDX-License-Identifier: BSD-2-Clause */
/* Who reads what stands in a program's files: this process itself, or, once decoder_start was
 * called, processes without rights. An object keeps those that were in force when it was opened.
 * Parsers do not know which it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_table;
struct elf_object;
struct error;
struct debug_options;
struct line_readers;
struct perf_map;

struct elf_readers {
	/* Fills the object's index of symbols, sorted by address. -ENOMEM; other problems are the
	 * index's. */
	int (*symbols)(const struct elf_object *o);
	/* As cfi_table_read. */
	int (*call_frames)(const struct elf_object *o, size_t max_rows, struct cfi_table *ret,
			   struct error *e);
	/* As demangle_as of each of up to DEMANGLE_BATCH names that are mangled; @ret is all NULL
	 * before. Called by all threads. */
	void (*names)(const char *const *list, size_t n, bool arguments, bool result, char **ret);
	/* As debug_open_named. */
	int (*open_named)(const struct elf_object *o, const struct debug_options *options,
			  const char *path);
	/* As elf_file_build_id. */
	char *(*build_id)(int fd);
	/* As perf_map_read_here. */
	int (*perf_map)(int fd, struct perf_map *ret);
	/* The object is being closed. NULL: nothing to do. */
	void (*close)(struct elf_object *o);
	/* NULL: those of line tables that are read here. */
	const struct line_readers *lines;
};

extern const struct elf_readers elf_readers_here;
/* For objects that are opened from now on, and for names. Nothing may be under way. */
void elf_readers_use(const struct elf_readers *r);
const struct elf_readers *elf_readers_current(void);
