/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of all processes on the machine a run is about: all that is given must be true of them. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct process_rule;

struct process_rule_options {
	const char *cgroup; /* a directory of a cgroup file system of either version, or a path in
			       the hierarchy; NULL: any */
	const char *user;   /* name or number: the effective user; NULL: any */
	const char *comm;   /* glob over the process's name; NULL: any */
	const char *exe;    /* the executable: this very file; NULL: any */
	pid_t tree;	    /* this process and what descends from it; 0: any */
};

/* -ENOENT, -EINVAL: something named does not exist; @e says what is near. The strings of @o must
 * outlive the rule. */
int process_rule_open(const struct process_rule_options *o, struct process_rule **ret,
		      struct error *e);
void process_rule_free(struct process_rule *r); /* NULL is allowed */
/* Reads anew who is in the cgroup. -ENOENT: it was removed. */
int process_rule_refresh(struct process_rule *r, struct error *e);
/* @known_in_tree: it was followed from a process of the tree, which /proc does not say any more
 * once parents have ended. @ret_in_tree may be NULL. */
bool process_rule_matches(const struct process_rule *r, pid_t pid, bool known_in_tree,
			  bool *ret_in_tree);
/* No process is in scope: one line that says why, and what is near. Returns -ESRCH. */
int process_rule_explain(const struct process_rule *r, struct error *e);
