/* SPDX-License-Identifier: BSD-2-Clause */
/* What the run_scope*.c files share. */
#pragma once

#include "target/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct run;

/* A process that has just started another program. */
struct look {
	pid_t pid;
	uint64_t when, wait;
};

struct run_scope {
	struct process_rule *rule; /* system */
	int *pidfds;		   /* attach: by the option's index; -1: it has ended */
	size_t n_pids, n_ended;
	int ends;     /* epoll of them */
	pid_t *found; /* entered first */
	size_t n_found;
	struct look *looks;
	size_t n_looks;
	uint64_t round_ns, scan_ns;
	bool launched;		     /* the exec of the launched program has been seen */
	size_t at;		     /* of the process that the next round begins with */
	size_t scan_at, left_out_at; /* likewise */
	pid_t new_at;		     /* whom the next scan looks at first; 0: all */
	const pid_t *execs;	     /* those from next_exec on are still to be handled */
	size_t n_execs, next_exec;
	bool is_full; /* no more are taken, which was said */
};

/* What goes through all processes of the machine. */
struct descent {
	struct run *run;
	struct error *e;
	size_t added;
	uint64_t until; /* when to stop looking; monotonic */
};

/* What @pid is to be entered as, by what it is now; 0: not at all. */
unsigned int run_scope_wanted(const struct run *r, pid_t pid, unsigned int has);
/* Enters @pid as it is to be, or has it leave. */
int run_scope_settle(struct run *r, pid_t pid, struct error *e);
/* Of a process in scope: its executable and its mappings. What ends meanwhile, or may not be read,
 * is no failure of the run's. */
void run_scope_read(struct run *r, pid_t pid);
