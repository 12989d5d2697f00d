/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks for a progress point in processes that run, where nobody has named one: what could be
 * counted, and how often and how evenly it is passed. System calls are counted all the time; USDT
 * probes and functions by probes in short windows, which take at most 2 % of the time. */
#pragma once

#include "kernel/counting/choice.h"

#include <sys/types.h>

struct candidates;
struct code_map;
struct error;

struct candidates_scope {
	/* Whose passes count: this process's, with or without those that come from it; or, if it is
	 * 0, those of a session's scope (procs: session_processes_fd). */
	pid_t pid;
	bool children;
	int procs;
	/* Whose files may have probes: USDT probes of all objects, and functions of executables
	 * that others can call. NULL: none. It must outlive the search. */
	struct code_map *code;
	/* The process that probes are put into; 0: all that map the file, and then only files that
	 * are executables of the scope. */
	pid_t probed;
	/* Look at functions also where something else serves already (choice_serves). */
	bool all;
	const char *disabled; /* features to go without, as of run */
	/* The CPU time that [lo, hi) of object number @object takes, in CPUs, as samples say; NULL:
	 * not known. */
	double (*busy)(size_t object, uint64_t lo, uint64_t hi, void *arg);
	void *arg;
};

/* Begins to count. candidates_end ends it. */
int candidates_begin(const struct candidates_scope *s, struct candidates **ret, struct error *e);
/* Does what is due at @now (monotonic ns). 1: all is known, and nothing is counted any more; 0:
 * *ret_next says when to come again; or a negative errno. */
int candidates_step(struct candidates *c, uint64_t now, uint64_t *ret_next, struct error *e);
/* What was passed so far, the most suitable first; nothing before half a second has been seen.
 * Returns how many; *ret is owned by @c, until the next call. */
size_t candidates_found(struct candidates *c, const struct candidate **ret);
/* Functions that could have been counted, and how many of them were. */
size_t candidates_functions(const struct candidates *c, size_t *ret_counted);
void candidates_end(struct candidates *c); /* NULL is allowed */
