/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's hand-over to a program that is about to be started: the descriptors that the launch
 * began with, asked of the controller (shared/shim_abi.h), and LD_PRELOAD. Everything here may run
 * in a child of vfork: what is made is on the caller's stack. */
#pragma once

#include "libc.h"
#include "shim.h"
#include "shared/shim_first.h"

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#define HANDOVER_STRINGS 16384 /* of an environment, at most: pointers on the stack */
#define HANDOVER_VALUE 4096    /* of LD_PRELOAD, at most */

/* Asks the controller for the descriptors; they close on exec. The caller closes them. false: there
 * is none, or it does not answer. */
bool handover_ask(int ret[SHIM_FDS]);
/* Copies of @fds with consecutive numbers, which exec keeps if @kept; the first, or -1. */
int handover_place(const int fds[SHIM_FDS], bool kept);
void handover_close(const int *fds, int n);
/* Are @first + @i, ... still what was placed there? The program's other threads may have closed
 * them, and put others in their place. */
bool handover_has(int first, int i);
/* Closes those that are. @first may be -1. */
void handover_remove(int first);

/* false: too much to be copied, or the program filters its system calls: to ask is forbidden, and
 * the new program could not load the library. */
bool handover_survey(char *const *envp, struct shim_environment *ret);
/* Would the dynamic loader of the program at @path load the library? Not of static, set-uid ones or
 * those of another architecture. */
bool handover_loads(const char *path, struct shim_environment *e);
/* The next path that @file may be found at by PATH. *at: where the search is, NULL at first. false:
 * there is none any more. */
bool handover_candidate(const char **at, const char *file, char ret[PATH_MAX]);
/* Around an exec: what a thread in system or popen keeps open for its shell is not for others. */
void shell_hide(bool hidden);
/* The first of these descriptors, or -1. */
int shell_open(void);
