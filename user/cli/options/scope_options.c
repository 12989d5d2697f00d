// SPDX-License-Identifier: BSD-2-Clause
#include "cli/options/scope_options.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/options/quantities.h"
#include "cli/options/run_option_rows.h"
#include "cli/options/run_options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char *const follow_names[] = {"all", "exec", "none", NULL};
static const char *const inject_names[] = {
	[INJECT_NEVER] = "never", [INJECT_AUTO] = "auto", [INJECT_ALWAYS] = "always", NULL};

const char *run_inject_name(enum run_inject inject)
{
	return inject_names[inject];
}

static int set_follow(void *target, const struct option_row *row, const char *value,
		      struct error *e)
{
	((struct run_options *)target)->scope.follow_given = true;
	return option_choice(target, row, value, e);
}

static int set_tree(void *target, const struct option_row *row, const char *value, struct error *e)
{
	uint64_t pid;
	int r = option_unsigned(row, value, 1, INT_MAX, &pid, e);

	if (r == 0)
		((struct run_options *)target)->scope.rule.tree = (pid_t)pid;
	return r;
}

#define AT(field) offsetof(struct run_options, scope.field)
#define FOLLOW_REST "what else it executes\n(exec), or neither (none); (all)"

static const struct option_row only_row[] = {
	{"only", 0, "GLOB",
	 "profile only processes whose executable matches GLOB, by\npath or last component",
	 option_set_word, AT(only)},
	{NULL},
};

static const struct option_row handler_rows[] = {
	{"inject", 0, "WHEN",
	 "put a signal handler into the processes, by which threads\nsleep that would else be kept "
	 "on a CPU: where it is\nneeded (auto), in any case (always), or not (never)",
	 option_choice, AT(inject), .choices = inject_names},
	{"signal", 0, "N", "real-time signal of that handler", option_set_signal,
	 offsetof(struct run_options, signo), .expert = true},
	{NULL},
};

static const struct option_row launch_rows[] = {
	{"follow", 0, "WHAT", "profile the program's children as well (all), only " FOLLOW_REST,
	 set_follow, AT(follow), .choices = follow_names},
	{.include = only_row},
	{NULL},
};

static const struct option_row attach_rows[] = {
	{"follow", 0, "WHAT",
	 "profile each process's children as well, those it has and\nlater ones (all), "
	 "only " FOLLOW_REST,
	 set_follow, AT(follow), .choices = follow_names},
	{.include = only_row},
	{"duration", 'd', "TIME",
	 "let go after TIME: 10 or 10s, 2m, 1h (0: by Ctrl-C, or when\nall processes have ended)",
	 option_set_seconds, offsetof(struct run_options, duration_ns)},
	{.include = handler_rows},
	{NULL},
};

static const struct option_row system_rows[] = {
	{"cgroup", 0, "PATH",
	 "processes of this control group and those below it, a\ncontainer's or a systemd unit's "
	 "(system.slice/x.service)",
	 option_set_word, AT(rule.cgroup)},
	{"uid", 0, "USER", "processes of this user", option_set_word, AT(rule.user)},
	{"comm", 0, "GLOB", "processes of this name", option_set_word, AT(rule.comm)},
	{"exe", 0, "PATH", "processes that run this file", option_set_word, AT(rule.exe)},
	{"pid-tree", 0, "PID", "this process and all that come from it", set_tree},
	{"kernel", 0, NULL, "try the kernel's functions, too, instead of the lines that\ncall them",
	 option_flag, AT(kernel)},
	{"duration", 'd', "TIME", "let go after TIME: 10 or 10s, 2m, 1h (0: by Ctrl-C)",
	 option_set_seconds, offsetof(struct run_options, duration_ns)},
	{.include = handler_rows},
	{NULL},
};

const struct option_row *scope_option_rows(enum run_kind kind)
{
	static const struct option_row *const own[] = {
		[RUN_LAUNCH] = launch_rows, [RUN_ATTACH] = attach_rows, [RUN_SYSTEM] = system_rows};

	return own[kind];
}

int scope_options_pids(struct scope_options *s, const char *word, struct error *e)
{
	for (const char *from = word;; from++) {
		size_t len = strcspn(from, ",");
		char *end;
		long pid;

		errno = 0;
		pid = strtol(from, &end, 10);
		if (!len || *from < '0' || *from > '9' || end != from + len || errno || pid < 1 ||
		    pid > INT_MAX)
			return fail(e, EINVAL,
				    "'%s': allowed is PID[,PID...], numbers of processes", word);
		for (size_t i = 0; i < s->n_pids; i++)
			if (s->pids[i] == pid)
				return fail(e, EINVAL, "'%s': process %ld is named twice", word,
					    pid);
		xarray_add(s->pids, s->n_pids, (pid_t)pid);
		from += len;
		if (!*from)
			return 0;
	}
}

bool scope_options_has_rule(const struct scope_options *s)
{
	return s->rule.cgroup || s->rule.user || s->rule.comm || s->rule.exe || s->rule.tree;
}

void scope_options_free(struct scope_options *s)
{
	free(s->pids);
	*s = (struct scope_options){0};
}
