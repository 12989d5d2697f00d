/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files in a process of its own, which is given up if a file system does not answer (network,
 * FUSE). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_rights;
struct statx;

/* What an open file is, by its own file system. */
struct opened_file {
	struct stat st;
	int64_t file_system; /* as in linux/magic.h */
	bool is_nosuid;	     /* its mount's owners are not believed */
	bool may_be_fuse;
	bool is_copy;  /* what was opened is a copy of it: see opener_look_at */
	dev_t mounted; /* see opener_mounted_on; 0: not known */
};

/* To be called early, as decoder_start. Not started, files are opened in this process. @answer_s:
 * until a file system that does not answer is given up. */
int opener_start(unsigned int answer_s);
void opener_stop(void);
/* As open_file; what elf_object_open_fd reads of it has been read as well. A file on a mount that a
 * user has made is copied, and the copy opened: -EFBIG if it, or all that is open of such files
 * together, is too large. Also -ETIMEDOUT: the file system does not answer. Can be called by all
 * threads. */
int opener_open(const char *path, const struct file_rights *as);
/* Closes what opener_open returned. Closing a file of a FUSE file system waits for it, and neither
 * a signal nor the end of the process ends the wait. Such a file stays open until opener_leave. */
void opener_close(int fd);
#define _cleanup_opener_ __attribute__((cleanup(opener_closep)))
static inline void opener_closep(const int *fd)
{
	opener_close(*fd);
}

/* Another descriptor of it, which is closed likewise. Negative errno. */
int opener_dup(int fd);
/* Of a file that opener_open returned; where that is a copy, of what was copied, when that was.
 * Its state: negative errno. */
int opener_look_at(int fd, struct statx *ret);
/* Its path as the kernel calls it, which the caller frees; NULL: it has none. */
char *opener_name(int fd);
bool opener_is_copy(int fd);
/* The device of the mounted file system, where stat can show another one (btrfs, overlays). False:
 * it is not known. */
bool opener_mounted_on(int fd, dev_t *ret);
/* Ends this process as exit, but for functions registered with atexit, which must have nothing to
 * do. Files that opener_close has left open are closed by another process, which is waited for by
 * nobody. */
_Noreturn void opener_leave(int status);
/* As opener_open, and what the file is: asking its file system can take as long. */
int opener_open_described(const char *path, const struct file_rights *as, struct opened_file *ret);
