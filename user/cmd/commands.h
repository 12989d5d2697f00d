/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands. Each gets its own name as argv[0] and returns the exit status of the program. */
#pragma once

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
