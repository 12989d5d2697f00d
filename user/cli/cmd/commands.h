/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands. Each gets its own name as argv[0] and returns the exit status of the program. */
#pragma once

/* Sees to it that no library that the environment had loaded first runs in cozbpf itself, while
 * programs that it starts get the environment as it was. Before anything else. Returns 0, or
 * EXIT_OURS after one line on stderr: the clock is not the kernel's. */
int environment_shed(char **argv);

int cmd_run(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_system(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_collect(int argc, char **argv);
int cmd_db(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
