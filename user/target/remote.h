/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls in a thread of another process, which is stopped for them and then goes on as if
 * nothing had been: with the registers, the signal mask and the signals that it had, and with its
 * own system call begun again if it was in one. By ptrace, without a debugger's breakpoints:
 * nothing is written into the program's code.
 *
 * The caller must have all signals blocked, and no children but the tracees. Should it die while
 * registers are changed, the thread would go on with wrong ones: between remote_stop and
 * remote_release do nothing that can wait. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct remote {
	pid_t tid;
	bool ended;	 /* and its number may be another's */
	bool unfiltered; /* seccomp does not look at its system calls as long as we trace it */
	uint64_t at;	 /* where the process has a system call instruction; 0: none will be made */
	struct user_regs_struct regs; /* as it will go on with */
	uint64_t mask;		      /* the signals that it blocks */
	int signal;		      /* one that came meanwhile, 0: none */
	bool calling;		      /* stopped in one of our system calls */
};

/* From now on each change of state of a traced thread is counted in *@steps, by which a watching
 * process sees progress. NULL: not counted. */
void remote_count_steps(volatile uint64_t *steps);
/* Stops thread @tid of process @pid, which is that of @pidfd if that is not negative. -ESRCH: there
 * is no such thread; -EPERM: not allowed, or traced already; -ENOEXEC: it runs 32-bit code;
 * -EOPNOTSUPP: it filters its system calls, and we may not suspend that; -ETIMEDOUT: it cannot be
 * stopped now (it stops later, and stays so until this process ends); -EAGAIN: in a place where it
 * must not be moved (a restartable sequence), or there is no such instruction; it goes on: try
 * again. */
int remote_stop(pid_t pid, int pidfd, pid_t tid, uint64_t at, struct remote *ret);
/* *ret: the call's result, a negative errno where it failed. The return value is about the call
 * being made at all: -ESRCH the process has ended, or executed another program, which is let go;
 * -EFAULT there is no such instruction any more, or the program made another call, which is kept
 * from happening. */
int remote_call(struct remote *r, long number, const uint64_t arguments[6], int64_t *ret);
/* A process of its own with the memory of the thread's, but with its own descriptors: what is done
 * in it with those the program cannot see. Stopped; it ends when we do. remote_end when done.
 * *ret_number: its pid as the thread sees it. -errno also where it cannot be made. */
int remote_helper(struct remote *r, struct remote *ret, pid_t *ret_number);
void remote_end(struct remote *helper, struct remote *parent, pid_t number);
/* The thread goes on. */
int remote_release(struct remote *r);
/* Memory of a stopped thread, whatever its protection; of whole words. */
int remote_write(const struct remote *r, uint64_t at, const void *from, size_t size);
int remote_read(const struct remote *r, uint64_t at, void *to, size_t size);
/* Does a call that was interrupted end with EINTR though no signal was there for the program, but
 * could as well begin again? */
bool remote_begins_again(long number);
