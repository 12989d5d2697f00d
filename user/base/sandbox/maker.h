/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that is made early, while this one is small and has one thread, and that makes others
 * later, which are as small.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct maker {
	pid_t pid;   /* 0: not started */
	int control; /* sockets go to it by this one */
};

/* One that it made. -1: there is none, or it was ended. */
struct made {
	int fd;	   /* our end of its socket, which shows who sends (SO_PASSCRED) */
	int pidfd; /* to end it, once made_read has learned who it is */
};

/* The processes that it makes call @serve. Without @rights they, and it, have none. -EPERM: it
 * could not give them up. After a failure maker_stop is still to be called. */
int maker_start(struct maker *m, void (*serve)(int fd), bool rights);
/* Ends it and all that it made. Not started: allowed. */
void maker_stop(struct maker *m);
/* Makes a process. After a negative errno there is none. */
int maker_make(const struct maker *m, uint64_t deadline_ns, struct made *ret);
/* Reads what a process sends first. */
int made_read(struct made *m, void *bytes, size_t n, uint64_t deadline_ns);
/* Kills it, if it is known. None made: allowed. */
void made_end(struct made *m);
