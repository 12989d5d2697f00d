/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that run already: what /proc says of them, and whether they may be profiled. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

struct process_facts {
	char comm[64];
	char state;  /* as in /proc/PID/stat: R, S, D, T, Z, ...; of a thread that lives if there is
			one */
	bool kernel; /* a kernel thread */
	bool exiting;
	pid_t parent;
	uid_t real, effective, saved;
};

/* A file of /proc/PID, or of a thread that lives if the first one has ended (base/proc.h), opened
 * for reading; the caller closes it. -1 with errno set. */
int process_open_file(pid_t pid, const char *name);
/* ... all of it, a text; the caller frees it. NULL: gone, or too long. Two zeros stand behind it:
 * words that each end in one, as in cmdline, are followed by an empty one, even if a process has
 * taken the end off the last. */
char *process_text(pid_t pid, const char *name);
/* The number behind @name in a text like /proc/PID/status; 0: it is not there. */
uint64_t process_field(const char *status, const char *name, int base);
/* -ESRCH: there is no such process. */
int process_read(pid_t pid, struct process_facts *ret);
/* Copies @size bytes of the process's memory at @at. Returns how many could be read, or -1 with
 * errno set. */
ssize_t process_read_memory(pid_t pid, uint64_t at, void *to, size_t size);
/* Is it there to be profiled: neither ended nor a kernel thread? */
bool process_is_live(pid_t pid);
/* Does thread @tid of @pid filter its system calls (seccomp)? Also if nothing is known of it. */
bool process_thread_filters(pid_t pid, pid_t tid);
/* Do numbers in /proc mean what they mean to system calls? Else -EXDEV with @e. */
int process_check_numbers(struct error *e);
/* Opens a pidfd of a process that is to be profiled; the caller closes it. Refused with the reason
 * in @e: what does not exist (-ESRCH), is a thread, a kernel thread or a zombie, runs code of
 * another architecture (-ENOEXEC), or belongs to somebody else (-EPERM): without root, neither
 * other users' processes (but with CAP_SYS_PTRACE) nor set-uid programs. */
int process_open(pid_t pid, int *ret_pidfd, struct error *e);
/* Has the process of @pidfd ended? */
bool process_has_ended(int pidfd);
/* The path of the executable as the kernel has it, " (deleted)" cut off; the caller frees. -errno.
 */
int process_executable(pid_t pid, char **ret);
/* What @path is, with STATX_TYPE and STATX_INO. A file system of its own must not keep us waiting
 * (FUSE), so it is not asked for what may have changed. 0 or -1 with errno set. */
struct statx;
int file_look_at(const char *path, struct statx *ret);
bool file_is_same(const struct statx *a, const struct statx *b);
/* Which file it is, as stat says it. Two files that are there at once can have the same device and
 * inode in mappings (subvolumes of btrfs), and one after the other can have them here as well, but
 * for the time. */
struct file_life {
	dev_t device; /* 0: nothing is known of the file */
	uint64_t inode;
	uint64_t ns; /* when it was made, which nobody can choose; 0: that is not known */
};

struct file_life file_life(const struct statx *x);
/* Has it the device and inode? */
bool file_life_is_at(const struct file_life *l, const struct statx *x);
/* Can it be that file's? Where one of the two times is not known, device and inode decide. */
bool file_life_is_of(const struct file_life *l, const struct statx *x);
/* @path if that is the file which the link @link of /proc leads to, else @link: a path in a
 * process's own mount namespace says nothing about what is there in ours. */
const char *process_file_path(const char *path, const char *link);
/* Does @glob match @path or its last component? */
bool process_path_matches(const char *glob, const char *path);
/* Calls @cb for every process of /proc until it returns non-zero, which is then returned. */
int process_each(int (*cb)(pid_t pid, void *arg), void *arg);
/* Reaps a child that was killed, or has nothing left to do: within a second, or not at all. */
void process_reap_soon(pid_t pid);
/* Where the kernel has mapped its vDSO in the process; 0: it has none, or cannot be read. */
uint64_t process_vdso(pid_t pid);
