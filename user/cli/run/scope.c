// SPDX-License-Identifier: BSD-2-Clause
#include "cli/run/run.h"
#include "cli/run/scope_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/open_file.h"
#include "base/proc.h"
#include "program/code/map.h"
#include "target/launch.h"
#include "target/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* At the descendants of processes that run already; and for how long. What a rule names and is not
 * found by then, a scan finds. */
#define MOST_LOOKS 16
#define LOOKS_NS (10 * NSEC_PER_SEC)

bool run_scope_is_many(const struct run *r)
{
	const struct scope_options *o = &r->options.scope;

	/* Of --sync pthread the calls of one process are seen. */
	return r->options.kind != RUN_LAUNCH ||
	       (r->options.sync != RUN_SYNC_PTHREAD && (o->follow != FOLLOW_EXEC || o->only));
}

static void add_found(struct run_scope *s, pid_t pid)
{
	for (size_t i = 0; i < s->n_found; i++)
		if (s->found[i] == pid)
			return;
	xarray_add(s->found, s->n_found, pid);
}

static bool only(const struct run *r, pid_t pid)
{
	_cleanup_free_ char *path = NULL;

	return !r->options.scope.only || (process_executable(pid, &path) == 0 &&
					  process_path_matches(r->options.scope.only, path));
}

unsigned int run_scope_wanted(const struct run *r, pid_t pid, unsigned int has)
{
	const struct scope_options *o = &r->options.scope;
	bool in_tree;

	if (r->scope->rule) {
		if (process_rule_matches(r->scope->rule, pid, has & ABI_PROC_TREE, &in_tree))
			return ABI_PROC_IN | ABI_PROC_FOLLOW | (in_tree ? ABI_PROC_TREE : 0);
		return in_tree ? ABI_PROC_FOLLOW | ABI_PROC_TREE : 0;
	}
	return (only(r, pid) ? ABI_PROC_IN : 0) | (o->follow == FOLLOW_ALL ? ABI_PROC_FOLLOW : 0);
}

static int find_matching(pid_t pid, void *arg)
{
	const struct descent *d = arg;

	if (pid != getpid() && clock_monotonic_ns() <= d->until &&
	    run_scope_wanted(d->run, pid, 0) & ABI_PROC_IN)
		add_found(d->run->scope, pid);
	return 0;
}

static int open_rule(struct run *r, struct error *e)
{
	struct descent d = {.run = r, .until = clock_monotonic_ns() + LOOKS_NS};
	int err = process_rule_open(&r->options.scope.rule, &r->scope->rule, e);

	if (err == 0)
		err = process_rule_refresh(r->scope->rule, e);
	if (err == 0 && process_each(find_matching, &d) < 0)
		err = fail(e, ENOMEM, "out of memory");
	if (err == 0 && !r->scope->n_found)
		err = process_rule_explain(r->scope->rule, e);
	return err;
}

static int open_pids(struct run *r, struct error *e)
{
	const struct scope_options *o = &r->options.scope;
	struct run_scope *s = r->scope;

	s->pidfds = xcalloc(o->n_pids, sizeof(*s->pidfds));
	s->ends = epoll_create1(EPOLL_CLOEXEC);
	if (s->ends < 0)
		return fail(e, ENOMEM, "out of memory");
	for (; s->n_pids < o->n_pids; s->n_pids++) {
		struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = s->n_pids};
		int err = process_open(o->pids[s->n_pids], &s->pidfds[s->n_pids], e);

		if (err < 0)
			return err;
		if (epoll_ctl(s->ends, EPOLL_CTL_ADD, s->pidfds[s->n_pids], &ev) < 0) {
			s->n_pids++;
			return fail(e, ENOMEM, "out of memory");
		}
		add_found(s, o->pids[s->n_pids]);
	}
	return 0;
}

/* By its name where that is the same file for us. */
static int name_executable_of(struct run *r, pid_t pid, struct error *e)
{
	_cleanup_free_ char *path = NULL;
	struct file_rights rights;
	char link[PROC_PATH];
	int err = process_executable(pid, &path);

	if (err < 0)
		return fail(e, -err, "cannot read the executable of process %d: %s", (int)pid,
			    strerror(-err));
	err = file_rights_of_process(pid, &rights);
	if (err < 0)
		return fail(e, -err, "cannot read the user of process %d: %s", (int)pid,
			    strerror(-err));
	proc_path(link, pid, "exe");
	file_rights_set_usual(rights.uid, rights.gid, rights.groups, rights.n_groups);
	r->path = xstrdup(process_file_path(path, link));
	return 0;
}

/* Of the first process that has not ended meanwhile. */
static int name_executable(struct run *r, struct error *e)
{
	int err = -ESRCH;

	for (size_t i = 0; err < 0 && i < r->scope->n_found; i++)
		err = name_executable_of(r, r->scope->found[i], e);
	return err;
}

int run_scope_open(struct run *r, struct error *e)
{
	int err = 0;

	r->scope = xcalloc(1, sizeof(*r->scope));
	r->scope->ends = -1;
	if (r->options.kind == RUN_ATTACH)
		err = open_pids(r, e);
	if (r->options.kind == RUN_SYSTEM)
		err = open_rule(r, e);
	return err == 0 && r->options.kind != RUN_LAUNCH ? name_executable(r, e) : err;
}

void run_scope_free(struct run_scope *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_pids; i++)
		if (s->pidfds[i] >= 0)
			(void)close(s->pidfds[i]);
	if (s->ends >= 0)
		(void)close(s->ends);
	process_rule_free(s->rule);
	free(s->pidfds);
	free(s->found);
	free(s->looks);
	free(s);
}

void run_scope_read(struct run *r, pid_t pid)
{
	(void)code_map_add_main(r->code, pid, NULL);
	(void)session_look(r->session, pid, NULL);
}

int run_scope_settle(struct run *r, pid_t pid, struct error *e)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	unsigned int has = 0, flags;
	bool entered = session_flags(r->session, pid, &has) == 0;
	int err;

	flags = run_scope_wanted(r, pid, has);
	if (!flags) {
		if (entered)
			session_leave(r->session, pid);
		return 0;
	}
	if (!entered || flags != (has & ~(unsigned int)(ABI_PROC_SIGNALS | ABI_PROC_HELD))) {
		err = session_take(r->session, pid, flags, e);
		/* Others decide how many there are. */
		if (err == -E2BIG && !r->scope->is_full)
			(void)log_error("warning: %s; the others are not profiled", e->text);
		if (err == -E2BIG) {
			r->scope->is_full = true;
			e->text[0] = '\0';
			return 0;
		}
		if (err < 0)
			return err;
		/* Its exit may have come before; its number may be another's by now. */
		if (!process_is_live(pid) || pidfd < 0 || process_has_ended(pidfd)) {
			session_leave(r->session, pid);
			return 0;
		}
	}
	if (flags & ABI_PROC_IN && (!entered || !(has & ABI_PROC_IN)))
		run_scope_read(r, pid);
	return 0;
}

static int find_child(pid_t pid, void *arg)
{
	struct descent *d = arg;
	struct process_facts f;
	unsigned int flags;
	int err;

	if (clock_monotonic_ns() > d->until || session_flags(d->run->session, pid, &flags) == 0 ||
	    process_read(pid, &f) < 0 || pid == getpid() ||
	    session_flags(d->run->session, f.parent, &flags) < 0)
		return 0;
	err = run_scope_settle(d->run, pid, d->e);
	/* A zombie is found at each look and never enters. */
	d->added += session_flags(d->run->session, pid, &flags) == 0;
	return err;
}

int run_scope_enter(struct run *r, struct error *e)
{
	struct run_scope *s = r->scope;
	struct descent d = {.run = r, .e = e, .until = clock_monotonic_ns() + LOOKS_NS};
	bool follows = r->options.kind == RUN_ATTACH && r->options.scope.follow == FOLLOW_ALL;
	int err = 0;

	for (size_t i = 0; err == 0 && i < s->n_found; i++)
		if (r->options.kind != RUN_SYSTEM || clock_monotonic_ns() < d.until)
			err = run_scope_settle(r, s->found[i], e);
	/* Children that a process has from now on are entered by the kernel's side. Those of
	 * processes that fork as soon as they are born may be ahead of every look. */
	d.added = 1;
	for (size_t i = 0; err == 0 && follows && d.added && i < MOST_LOOKS; i++) {
		d.added = 0;
		err = process_each(find_child, &d);
	}
	if (err == 0 && follows && !s->is_full && (d.added || clock_monotonic_ns() > d.until))
		(void)log_error("warning: processes fork faster than they are found; some children "
				"are not profiled");
	for (size_t i = 0; err == 0 && i < s->n_pids; i++) {
		pid_t pid = r->options.scope.pids[i];
		unsigned int flags;
		int look = session_flags(r->session, pid, &flags) == 0 && flags & ABI_PROC_IN
				   ? session_look(r->session, pid, e)
				   : 0;

		if (process_has_ended(s->pidfds[i]))
			err = fail(e, ESRCH, "process %d ended while we attached", (int)pid);
		else if (look < 0)
			err = look;
	}
	return err;
}

bool run_scope_lives(const struct run *r, size_t i)
{
	const int *pidfds = r->scope ? r->scope->pidfds : NULL;

	return pidfds && pidfds[i] >= 0 && !process_has_ended(pidfds[i]);
}

int run_scope_started(struct run *r, struct error *e)
{
	pid_t pid = target_pid(r->target);

	if (run_scope_settle(r, pid, e) < 0)
		return -ENOMEM;
	/* One that is over already has no mappings left to read: its run is empty, not failed. */
	(void)session_look(r->session, pid, NULL);
	return 0;
}
