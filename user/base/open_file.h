/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files whose names come from a program: its debug links, its dynamic linker, the interpreter
 * of a script. We often run as root, and the program chooses the names. A user's own names can be
 * links that somebody else made. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Further supplementary groups are left out: then we can read less than the program. */
#define FILE_RIGHTS_GROUPS 64

/* Whose rights a file is opened with. */
struct file_rights {
	uid_t uid;
	gid_t gid;
	uint32_t n_groups;
	gid_t groups[FILE_RIGHTS_GROUPS];
	bool plain_path; /* /proc/PID/cwd, root, fd and their like lead nowhere: -ELOOP */
	uint32_t root;	 /* the first so many bytes of the path are a directory that is the root
			    for all that follows, which is no link in the end: -ELOOP; 0: none */
};

/* How much of a text is read ahead when another process opens it, so that reading it does not wait;
 * and so no more of one is read. */
#define FILE_TEXT_MAX (4UL << 20)

/* Are there so few descriptors left that what the profiler opens for itself needs them? Then files
 * that a program has chosen are not opened: it could have as many as it likes. */
bool descriptors_are_short(void);

/* Opens @path for reading. The file is looked at before it is opened (O_PATH): opening a device can
 * have effects, and files of /proc, /sys and their like are made by the kernel when they are read.
 * @as: whose rights are needed, besides ours; NULL: ours alone. Without root, ours are, but not the
 * capabilities that override a file's permissions. Returns a descriptor, -ENOEXEC (not a regular
 * file on a file system for programs), -EREMOTE (on an overlay that another user has over FUSE), or
 * another negative errno. */
int open_file(const char *path, const struct file_rights *as);
/* The same with our own rights, for what a user names: a pipe is opened as well, and its writer
 * waited for. */
int open_file_or_pipe(const char *path);
/* The same of a file of ours in the open @directory, in which others may have made links and pipes:
 * nothing but a regular file of that name is opened. -ELOOP: it is a symbolic link. */
int open_file_at(int directory, const char *name);

/* Is a file that we may not open on a FUSE file system that answers its own user alone? */
bool file_is_anothers_fuse(const char *path);
/* May the open file, of a file system of that type (linux/magic.h), be on FUSE, below an overlay
 * perhaps? */
bool file_may_be_fuse(int fd, int64_t file_system);
/* Is the file on FUSE or an overlay that a user other than root has mounted? Any user can mount
 * both in a namespace. The data of a file on such an overlay can move to the user's FUSE server at
 * any time, even while the file is open: a write copies it to the upper layer, and a data-only
 * layer keeps the data apart from the attributes. @path: by which @fd was opened. *ret_device: of
 * those and of btrfs, the device of the mounted file system, which mappings have; stat shows
 * another one for subvolumes, and for an overlay with layers on several file systems. 0: it is not
 * known. -ESRCH: the process in @path has ended, and the result is not known. */
int file_is_on_users_mount(int fd, const char *path, int64_t file_system, dev_t *ret_device,
			   bool *ret);
/* Do mappings of files on overlays have the device and inode of the file below, as before Linux
 * 6.8? */
bool overlays_have_lower_numbers(void);
/* The path of the open file @fd, whatever name it was opened by (files of a process are opened
 * through its /proc). The caller frees; NULL: it has none. */
char *file_path(int fd);
/* What the open file @fd is, with size and times. Its file system is not asked for what may have
 * changed. 0 or -1 with errno set. */
struct statx;
int file_look_at_open(int fd, struct statx *ret);
/* The size of an open file in bytes, or a negative errno. Moves its offset. FUSE refuses fstat to
 * all users but the one that mounted it, also of an open file, and our processes without rights are
 * another user. */
int64_t file_size(int fd);

/* Those of the process @pid, as files are opened by it. -ESRCH: it has ended. */
int file_rights_of_process(pid_t pid, struct file_rights *ret);
/* The rights for what files name that belong to no process: those of the program's user. Root's own
 * until this is called. Not while other threads open files. */
void file_rights_set_usual(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups);
const struct file_rights *file_rights_usual(void);

/* Those of the user who has started us: as set, or our own. Not while other threads open files. */
void file_rights_set_invoker(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups);
const struct file_rights *file_rights_invoker(void);
/* For text that is shown and written where others may read it, such as sources, which debug
 * information names by any path: the invoking user's, or nobody's if that is root. Such a path
 * follows no link of another process's (/proc/PID/cwd): our capabilities would open what the
 * directories above it keep from that user. */
const struct file_rights *file_rights_reader(void);
