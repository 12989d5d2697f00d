/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that say which processes a run is about. */
#pragma once

#include "cli/options/options.h"
#include "target/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Who starts what is profiled: cozbpf run, attach, system. */
enum run_kind { RUN_LAUNCH, RUN_ATTACH, RUN_SYSTEM };

/* option_row.not_for, for commands that share run's table. A bit for each kind, and one for
 * validate, which starts its program as run does. */
#define NOT_VALIDATE (1U << 3)
#define NOT_RUNNING                                                                              \
	(1U << RUN_ATTACH | 1U << RUN_SYSTEM) /* their threads are paused by hold, and they have \
						 the rights that they have */

enum run_follow {
	FOLLOW_ALL,  /* the process, what it executes, and its children with theirs */
	FOLLOW_EXEC, /* the process and what it executes */
	FOLLOW_NONE, /* the process until it executes something else */
};

struct scope_options {
	enum run_follow follow;
	bool follow_given;
	const char *only;		  /* glob over executables; NULL: any */
	struct process_rule_options rule; /* system */
	bool kernel;			  /* system: its functions are targets */
	pid_t *pids;			  /* attach: at least one, distinct; owned */
	size_t n_pids;
	enum run_inject {
		INJECT_NEVER,
		INJECT_AUTO,
		INJECT_ALWAYS
	} inject; /* attach, system: a payment handler into processes */
};
/* "never", "auto", "always". */
const char *run_inject_name(enum run_inject inject);

/* The rows that the command has beside those that they all have; their target is a struct
 * run_options. */
const struct option_row *scope_option_rows(enum run_kind kind);
/* PID[,PID...] of attach. */
int scope_options_pids(struct scope_options *s, const char *word, struct error *e);
bool scope_options_has_rule(const struct scope_options *s);
void scope_options_free(struct scope_options *s);
