/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells when a process maps code: a library that dlopen loads is to be known before it does anything worth a sample. Unmapping is not
 * told, and need not be: nothing runs there until something else is mapped, which is. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct code_watch;

/* Watches the whole machine, since events of single processes would slow their context switches down. Needs CAP_PERFMON. On success *ret
 * is the caller's. */
int code_watch_open(struct code_watch **ret, struct error *e);
void code_watch_close(struct code_watch *w); /* NULL is allowed */
/* Readable when code has been mapped since the last code_watch_saw. Owned by the watch. */
int code_watch_fd(const struct code_watch *w);
/* Has @pid mapped code since the last call, or may have? What others did is forgotten. */
bool code_watch_saw(struct code_watch *w, pid_t pid);
