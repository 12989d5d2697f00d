/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said on stderr, and exit statuses. */
#pragma once

#define EXIT_STOPPED 3	      /* of attach and system: --stop-if held */
#define EXIT_OURS 125	      /* our failure, after one line on stderr */
#define EXIT_NOT_RUNNABLE 126 /* the command was found and cannot be run, as a shell says it */
#define EXIT_NOT_FOUND 127    /* no such command, as a shell says it */

/* Has @before called each time before something is printed, with @arg: to make room where it is to
 * stand. NULL: nothing is. */
void log_before(void (*before)(void *arg), void *arg);
/* Prints "cozbpf: <text>" as one line on stderr, what would steer a terminal replaced by '?', and
 * returns EXIT_OURS. */
int log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
