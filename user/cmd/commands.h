/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands. Each gets its own name as argv[0] and returns the exit status of the program. */
#pragma once

#define EXIT_OURS 125       /* a failure of ours, after one line on stderr */
#define EXIT_NOT_RUNNABLE 126 /* the command was found and cannot be run, as a shell says it */
#define EXIT_NOT_FOUND 127  /* no such command, as a shell says it */

int cmd_run(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_system(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_validate(int argc, char **argv);

/* status.c: prints "cozbpf: <text>" as one line on stderr, control characters replaced by '?', and returns EXIT_OURS. */
int log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
