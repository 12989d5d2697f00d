/* SPDX-License-Identifier: BSD-2-Clause */
/* The executable file mappings of a process, from /proc/PID/maps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct error;
struct file_life;
struct statx;

/* The kernel's own default limit on the mappings of a process (vm.max_map_count) is about as high.
 */
#define MAP_LIST_MAX 65536
#define MAP_COPIES_MAX 64
#define MAP_MADE_MAX 4096
#define MAP_PARTS_MAX 32
#define MAP_PART (1ULL << 32)

struct map_entry {
	uint64_t start, end; /* in the process */
	uint64_t offset;     /* in the file */
	uint64_t inode;
	dev_t device;
	char *path; /* as the kernel prints it, " (deleted)" cut off; "[vdso]" and anonymous code
		       are left out */
};

/* Executable memory of no file's: perhaps of a JIT compiler, perhaps a copy as below. */
struct map_made {
	uint64_t start, end;
};

/* Executable memory of no file's (or of a memory file), right behind a mapping of a file or behind
 * another such copy: perhaps the file's code, which the program has copied there to have it on huge
 * pages. */
struct map_copy {
	uint64_t start, end;
	struct map_entry near; /* the file's mapping before it, executable or not */
};

struct map_list {
	struct map_entry *entries; /* ascending by start */
	size_t n;
	struct map_copy *copies; /* as well; at most MAP_COPIES_MAX */
	size_t n_copies;
	struct map_made
		*made; /* ascending by start, at most MAP_MADE_MAX; joined where they touch */
	size_t n_made;
	/* Parts of 4 GiB, each in which there is memory of no file's to be written: where they
	 * begin, ascending, at most MAP_PARTS_MAX. */
	uint64_t parts[MAP_PARTS_MAX];
	size_t n_parts;
};

/* All executable file mappings of @pid, whichever of its threads live. -ESRCH: no such process. The
 * contents are the caller's (map_list_free). */
int map_list_read(pid_t pid, struct map_list *ret, struct error *e);
/* The same from an open file. Lines that make no sense, or overlap an earlier mapping, are skipped;
 * at most MAP_LIST_MAX entries are kept. 0 or a negative errno. */
int map_list_parse(FILE *f, struct map_list *ret);
void map_list_free(struct map_list *l);
/* A path to open the file by: /proc/PID/map_files/<range> where we may follow it (root: the mapped
 * file itself, even if it was deleted or replaced), else /proc/PID/root/<path> if that is the
 * mapped inode, else -ENOENT / -ESTALE. Valid while the process lives and keeps the mapping. The
 * caller frees *ret. */
int map_entry_open_path(pid_t pid, const struct map_entry *m, char **ret, struct error *e);
/* Is what was opened by such a path the mapped file? The process can have put another one there
 * meanwhile. By device and inode, or by the name where stat shows others than maps does (overlays,
 * btrfs), which have no device of their own. */
bool map_entry_is_file(const struct map_entry *m, const struct statx *state, const char *name);
/* What stat says of the mapped file, with its times. -EPERM: we may not follow such links;
 * -ENODATA: its file system tells us nothing; else negative errno: it is mapped no longer. Waits
 * for no file system. */
int map_entry_look_at(pid_t pid, const struct map_entry *m, struct statx *ret);
/* Does the path lead to the mapped file in our own mount namespace? Then it is its name for
 * everybody: elsewhere any user can mount a file at any path. @life: what is known of the file.
 * Waits for no file system. */
bool map_entry_leads_here(const struct map_entry *m, const struct file_life *life);
