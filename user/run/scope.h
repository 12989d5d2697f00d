/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes a run is about, and what becomes of those that come later. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct run;
struct run_scope;

/* Is the scope more than one process, as the options have it? */
bool run_scope_is_many(const struct run *r);
/* Finds the processes of attach and system, and names the first one's executable (r->path); of run, only makes the scope. Nothing is
 * touched. r->scope is the run's (run_scope_free). */
int run_scope_open(struct run *r, struct error *e);
void run_scope_free(struct run_scope *s); /* NULL is allowed */
/* After session_attach and session_set_code: enters them all, and reads what they have mapped. */
int run_scope_enter(struct run *r, struct error *e);
/* Points in the executables beside the first. Those of attach and system must be somewhere. */
int run_scope_points(struct run *r, struct error *e);
/* The launched program has just been started. */
int run_scope_started(struct run *r, struct error *e);
/* Readable when run_scope_step has something to do before the time it asked for; -1: never. */
int run_scope_execs_fd(const struct run *r);
int run_scope_ends_fd(const struct run *r);
/* Programs that were started, mappings that changed, processes that join or leave. *ret_next: when to come again at the latest. Fails when
 * there can be no scope any more: a control group was removed. */
int run_scope_step(struct run *r, uint64_t now, uint64_t *ret_next, struct error *e);
/* Mappings of @pid have changed: looks at them at @when. */
void run_scope_look(struct run *r, pid_t pid, uint64_t when);
/* Have all processes of attach ended, and what came of them? */
bool run_scope_is_over(struct run *r);
