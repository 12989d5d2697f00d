/* SPDX-License-Identifier: BSD-2-Clause */
/* A payment handler in a process that runs already, for kernels that cannot pause threads
 * themselves: three mappings (its code, its data, the slots) and a handler of one signal. The
 * program's libraries, its descriptors and its code are left alone, and one of its threads is
 * stopped for a millisecond. All of it goes again. Children inherit it by fork, exec takes it away.
 *
 * To be called in a process of its own that ends afterwards (user/target/injector.c): see
 * target/remote.h. */
#pragma once

#include "target/injector.h"

#include <stdint.h>

/* As the kernel has it. */
struct inject_action {
	uint64_t handler, flags, restorer, mask;
};

struct inject_options {
	const unsigned char *image; /* begins with struct shim_blob */
	size_t size;
	unsigned int pay; /* enum shim_pay */
	int signo;
	int slots_fd;
	struct inject_progress *progress;
};

/* Shared with the process that watches this one. A program can make a read of its memory take for
 * ever (by a file system of its own); then this process has to be killed. */
#define INJECT_MAX_HUNG 4
struct inject_progress {
	volatile uint64_t steps;     /* rises with each step that is done */
	volatile pid_t at;	     /* the process that inject_leave looks at */
	pid_t hung[INJECT_MAX_HUNG]; /* processes that it leaves alone */
	size_t n_hung;
};

/* Where it is. */
struct inject_layout {
	uint64_t blob, end, slots; /* addresses; end: of the blob, its data and a page of scratch */
	unsigned int numbers;	   /* SHIM_NAMESPACE of that process */
	pid_t pid;		   /* the process that it was put into */
	struct inject_action former; /* what was in the place of the handler: the default, or that
					the signal is ignored */
};

/* Puts the handler into @pid, the process of @pidfd, if it is not there yet by one of the @known
 * layouts, in *ret. -errno with @e; then nothing is left there. */
int inject_enter(const struct inject_options *o, pid_t pid, int pidfd,
		 const struct inject_layout *known, size_t n_known, struct inject_layout *ret,
		 struct injected *ret_injected, struct error *e);
/* Takes it out of all processes that have one of the layouts. No signal may be raised any more.
 * -EBUSY: what is left, in @e. */
int inject_leave(const struct inject_options *o, const struct inject_layout *known, size_t n_known,
		 struct error *e);

/* inject_find.c: what /proc says. */

/* The first system call instruction in code. -ENOENT. */
int inject_find_syscall(const unsigned char *code, size_t size, size_t *ret);
/* The address of one in @pid's memory. */
int inject_syscall_of(pid_t pid, uint64_t *ret);
/* SHIM_NAMESPACE of @pid's PID namespace. -ESRCH. */
int inject_numbers_of(pid_t pid, unsigned int *ret);
/* The layout that a process has, by the text of its /proc/PID/maps and what is there; NULL: none.
 */
const struct inject_layout *inject_layout_in(pid_t pid, const char *maps,
					     const struct inject_layout *known, size_t n);
const struct inject_layout *inject_layout_of(pid_t pid, const struct inject_layout *known,
					     size_t n);

struct inject_thread {
	pid_t tid;
	int rank;      /* the lower, the less is a stop noticed */
	bool known;    /* ... where it is */
	uint64_t at;   /* ... where it made the system call that it is in */
	bool blocking; /* blocks the signal */
	bool filtered; /* filters its system calls (seccomp) */
};
/* Of a thread, by its state and the text of /proc/PID/task/TID/syscall. */
void inject_thread_place(char state, const char *syscall, struct inject_thread *ret);
/* The threads of @pid, by rank, those that filter last. The array is the caller's. */
int inject_threads(pid_t pid, int signo, struct inject_thread **ret, size_t *ret_n);
/* Refuses what must not be injected into: -errno with @e. @ours: its handler of @signo is ours. */
int inject_allowed(pid_t pid, int signo, bool ours, struct error *e);
