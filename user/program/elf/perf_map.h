/* SPDX-License-Identifier: BSD-2-Clause */
/* Perf maps: the files /tmp/perf-PID.map in which runtimes with a JIT compiler write where their
 * functions are, a line each: begin, size (both hexadecimal) and name. They are the target's, and
 * grow as it runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The end of a longer file is read, which is the newest. */
#define PERF_MAP_MAX_BYTES (32U << 20)
#define PERF_MAP_MAX_LINES (1U << 19)
#define PERF_MAP_MAX_NAME 240 /* bytes; longer ones are cut */

struct perf_map_entry {
	uint64_t lo, hi; /* half-open */
	uint32_t name;	 /* where it begins in the names */
	uint32_t hash;	 /* perf_map_hash of it */
};

struct perf_map {
	struct perf_map_entry *all; /* by address; none overlaps another */
	size_t n;
	char *names; /* each with its end; printable but for bytes above 0x7f */
	size_t names_size;
};

/* Which file a map was read from, and when that was written last; all 0: none. */
struct perf_map_file {
	dev_t device;
	ino_t inode;
	off_t size;
	uint64_t written_ns;
};

/* Reads the map of the process @pid, as it has it in its own mount and PID namespaces. Sets *ret,
 * which the caller frees, and *known. -EALREADY: it is as *known says; -ENOENT and others: there is
 * none that can be trusted: -ELOOP (a link), -ENOEXEC (no regular file), -EPERM (of another user
 * than the process and root), -ESTALE (older than the process). */
int perf_map_read(pid_t pid, struct perf_map_file *known, struct perf_map *ret);
/* Reads it from an open file, by the readers in force (elf/readers.h). */
int perf_map_read_here(int fd, struct perf_map *ret);
/* Of lines that overlap the last one holds. Lines that make no sense are skipped, as is a last one
 * without its end, which is still being written. -ENOMEM. */
int perf_map_parse(const char *text, size_t n, struct perf_map *ret);
void perf_map_free(struct perf_map *m);
/* Is all of it as the parser makes it, so that it can be used? For maps that another process made.
 */
bool perf_map_is_sound(const struct perf_map *m);
/* NULL: nothing is known of that address. */
const struct perf_map_entry *perf_map_at(const struct perf_map *m, uint64_t addr);
/* Of the first @n bytes of @name. */
uint32_t perf_map_hash(const char *name, size_t n);
