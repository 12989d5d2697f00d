/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that is made early, while this one is small and has one thread, and that makes others later, which are as small.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct maker {
	pid_t pid;   /* 0: not started */
	int control; /* sockets go to it by this one */
};

/* The processes that it makes call @serve. Without @rights they, and it, have none. -EPERM: it could not give them up. After
 * a failure maker_stop is still to be called. */
int maker_start(struct maker *m, void (*serve)(int fd), bool rights);
/* Ends it and all that it made. Not started: allowed. */
void maker_stop(struct maker *m);
/* Makes a process. Returns our end of its socket, which shows who sends (SO_PASSCRED), or a negative errno. */
int maker_make(const struct maker *m, uint64_t deadline_ns);
