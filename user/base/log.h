/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said on stderr, and exit statuses. */
#pragma once

#define EXIT_OURS 125	      /* our failure, after one line on stderr */
#define EXIT_NOT_RUNNABLE 126 /* the command was found and cannot be run, as a shell says it */
#define EXIT_NOT_FOUND 127    /* no such command, as a shell says it */

/* Prints "cozbpf: <text>" as one line on stderr, what would steer a terminal replaced by '?', and returns EXIT_OURS. */
int log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
