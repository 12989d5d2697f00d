/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories of /proc. That of a process tells of its first thread. Once that one has ended while
 * others go on, as main does by pthread_exit, its memory, files and roots are gone for /proc, and
 * it looks like a zombie. Each thread has such a directory, though no list of /proc shows it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Room for "/proc/PID/map_files/START-END". */
#define PROC_PATH 96

/* The thread whose directory tells of the process @pid: @pid itself or, if that thread has ended,
 * one that has not. @pid if there is none. */
pid_t proc_thread(pid_t pid);
/* The path of @name in that directory. */
void proc_path(char path[PROC_PATH], pid_t pid, const char *name);
/* The number of @pid in the innermost PID namespace that it is in: by which it knows itself. @pid
 * if that cannot be read. */
pid_t proc_own_number(pid_t pid);
/* When the process was made, in ns since the epoch; 0: that cannot be read. */
uint64_t proc_began_ns(pid_t pid);
/* The file that a link of /proc leads to, the caller's (free); also of one that is deleted, or of
 * another mount namespace than ours. NULL with errno set: it leads nowhere. */
#define PROC_DELETED " (deleted)" /* what the kernel puts behind a name */
char *proc_file(const char *link);
/* Calls @cb for each number that is a name in the directory at @path until it returns non-zero,
 * which is then returned. All are read first: processes that fork while @cb runs do not keep it
 * from ending. -errno: there is no such directory. */
int proc_each_number(const char *path, int (*cb)(pid_t number, void *arg), void *arg);
