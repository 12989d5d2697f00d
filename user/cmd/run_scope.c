// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/run_scope.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cmd/run.h"
#include "cmd/run_inject.h"
#include "cmd/run_points.h"
#include "session/code_map.h"
#include "target/launch.h"
#include "target/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define LOOK_FIRST_NS (5 * NSEC_PER_MSEC) /* libraries are mapped right after exec, and some later: look less and less often ... */
#define LOOK_LAST_NS (200 * NSEC_PER_MSEC) /* ... and from here on in turn with all other processes */
#define ROUND_NS (200 * NSEC_PER_MSEC)
#define ROUND_LOOKS 8 /* of a round: reading a process's mappings takes some 0.1 ms */
#define SCAN_NS (1 * NSEC_PER_SEC) /* what changes without an exec: user, name, control group */

/* A process that has just started another program. */
struct look {
	pid_t pid;
	uint64_t when, wait;
};

struct run_scope {
	struct process_rule *rule; /* system */
	int *pidfds;               /* attach: by the option's index; -1: it has ended */
	size_t n_pids, n_ended;
	int ends; /* epoll of them */
	pid_t *found; /* entered first */
	size_t n_found;
	struct look *looks;
	size_t n_looks;
	uint64_t round_ns, scan_ns;
	bool launched; /* the exec of the launched program has been seen */
	size_t at; /* of the process that the next round begins with */
};

bool run_scope_is_many(const struct run *r)
{
	const struct scope_options *o = &r->options.scope;

	/* Of --sync pthread the calls of one process are seen. */
	return r->options.kind != RUN_LAUNCH || (r->options.sync != RUN_SYNC_PTHREAD && (o->follow != FOLLOW_EXEC || o->only));
}

static int add_found(struct run_scope *s, pid_t pid)
{
	pid_t *grown;

	for (size_t i = 0; i < s->n_found; i++)
		if (s->found[i] == pid)
			return 0;
	grown = reallocarray(s->found, s->n_found + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	s->found = grown;
	s->found[s->n_found++] = pid;
	return 1;
}

static bool only(const struct run *r, pid_t pid)
{
	_cleanup_free_ char *path = NULL;

	return !r->options.scope.only || (process_executable(pid, &path) == 0 && process_path_matches(r->options.scope.only, path));
}

/* What @pid is to be entered as, by what it is now; 0: not at all. */
static unsigned int wanted(const struct run *r, pid_t pid, unsigned int has)
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
	struct run *r = arg;
	int err;

	if (pid == getpid() || !(wanted(r, pid, 0) & ABI_PROC_IN))
		return 0;
	err = add_found(r->scope, pid);
	return err < 0 ? err : 0;
}

static int open_rule(struct run *r, struct error *e)
{
	int err = process_rule_open(&r->options.scope.rule, &r->scope->rule, e);

	if (err == 0)
		err = process_rule_refresh(r->scope->rule, e);
	if (err == 0 && process_each(find_matching, r) < 0)
		err = fail(e, ENOMEM, "out of memory");
	if (err == 0 && !r->scope->n_found)
		err = process_rule_explain(r->scope->rule, e);
	return err;
}

static int open_pids(struct run *r, struct error *e)
{
	const struct scope_options *o = &r->options.scope;
	struct run_scope *s = r->scope;

	s->pidfds = calloc(o->n_pids, sizeof(*s->pidfds));
	s->ends = epoll_create1(EPOLL_CLOEXEC);
	if (!s->pidfds || s->ends < 0)
		return fail(e, ENOMEM, "out of memory");
	for (; s->n_pids < o->n_pids; s->n_pids++) {
		struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = s->n_pids};
		int err = process_open(o->pids[s->n_pids], &s->pidfds[s->n_pids], e);

		if (err < 0)
			return err;
		if (epoll_ctl(s->ends, EPOLL_CTL_ADD, s->pidfds[s->n_pids], &ev) < 0 || add_found(s, o->pids[s->n_pids]) < 0) {
			s->n_pids++;
			return fail(e, ENOMEM, "out of memory");
		}
	}
	return 0;
}

/* Of the first process: by its name where that is the same file for us. */
static int name_executable(struct run *r, struct error *e)
{
	_cleanup_free_ char *path = NULL, *link = NULL;
	int err;

	if (asprintf(&link, "/proc/%d/exe", (int)r->scope->found[0]) < 0) {
		link = NULL;
		return fail(e, ENOMEM, "out of memory");
	}
	err = process_executable(r->scope->found[0], &path);
	if (err < 0)
		return fail(e, -err, "cannot read the executable of process %d: %s", (int)r->scope->found[0], strerror(-err));
	r->path = strdup(process_file_path(path, link));
	return r->path ? 0 : fail(e, ENOMEM, "out of memory");
}

int run_scope_open(struct run *r, struct error *e)
{
	int err = 0;

	r->scope = calloc(1, sizeof(*r->scope));
	if (!r->scope)
		return fail(e, ENOMEM, "out of memory");
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

/* Of a process in scope: its executable and its mappings. What ends meanwhile, or may not be read, is no failure of the run's. */
static void look_at(struct run *r, pid_t pid)
{
	const struct elf_object *elf;
	struct line_table *lines;

	(void)code_map_add_main(r->code, pid, &elf, &lines, NULL);
	(void)session_look(r->session, pid, NULL);
}

/* Enters @pid as it is to be, or has it leave. */
static int settle(struct run *r, pid_t pid, struct error *e)
{
	unsigned int has = 0, flags;
	bool entered = session_flags(r->session, pid, &has) == 0;
	int err;

	flags = wanted(r, pid, has);
	if (!flags) {
		if (entered)
			session_leave(r->session, pid);
		return 0;
	}
	if (!entered || flags != (has & ~(unsigned int)ABI_PROC_SIGNALS)) {
		err = session_take(r->session, pid, flags, e);
		if (err < 0)
			return err;
		/* Its exit may have come before; its number may be another's soon. */
		if (!process_is_live(pid)) {
			session_leave(r->session, pid);
			return 0;
		}
	}
	if (flags & ABI_PROC_IN && (!entered || !(has & ABI_PROC_IN)))
		look_at(r, pid);
	return 0;
}

struct descent {
	struct run *run;
	struct error *e;
	size_t added;
};

static int find_child(pid_t pid, void *arg)
{
	struct descent *d = arg;
	struct process_facts f;
	unsigned int flags;

	if (session_flags(d->run->session, pid, &flags) == 0 || process_read(pid, &f) < 0 || pid == getpid() ||
	    session_flags(d->run->session, f.parent, &flags) < 0)
		return 0;
	d->added++;
	return settle(d->run, pid, d->e);
}

int run_scope_enter(struct run *r, struct error *e)
{
	struct run_scope *s = r->scope;
	struct descent d = {.run = r, .e = e};
	int err = 0;

	for (size_t i = 0; err == 0 && i < s->n_found; i++)
		err = settle(r, s->found[i], e);
	/* Children that a process has from now on are entered by the kernel's side. */
	do {
		d.added = 0;
		if (err == 0 && r->options.kind == RUN_ATTACH && r->options.scope.follow == FOLLOW_ALL)
			err = process_each(find_child, &d);
	} while (err == 0 && d.added);
	for (size_t i = 0; err == 0 && i < s->n_pids; i++) {
		pid_t pid = r->options.scope.pids[i];
		unsigned int flags;
		int look = session_flags(r->session, pid, &flags) == 0 && flags & ABI_PROC_IN ? session_look(r->session, pid, e) : 0;

		if (process_has_ended(s->pidfds[i]))
			err = fail(e, ESRCH, "process %d ended while we attached", (int)pid);
		else if (look < 0)
			err = look;
	}
	return err;
}

int run_scope_points(struct run *r, struct error *e)
{
	run_refresh_points(r);
	return r->options.kind != RUN_LAUNCH ? run_require_points(r, e) : 0;
}

int run_scope_started(struct run *r, struct error *e)
{
	pid_t pid = target_pid(r->target);

	if (settle(r, pid, e) < 0)
		return -ENOMEM;
	/* One that is over already has no mappings left to read: its run is empty, not failed. */
	(void)session_look(r->session, pid, NULL);
	return 0;
}

int run_scope_execs_fd(const struct run *r)
{
	return r->scope ? session_execs_fd(r->session) : -1;
}

int run_scope_ends_fd(const struct run *r)
{
	return r->scope ? r->scope->ends : -1;
}

static void look_later(struct run_scope *s, pid_t pid, uint64_t now)
{
	struct look *grown, l = {pid, now + LOOK_FIRST_NS, LOOK_FIRST_NS};

	for (size_t i = 0; i < s->n_looks; i++)
		if (s->looks[i].pid == pid) {
			s->looks[i] = l;
			return;
		}
	grown = reallocarray(s->looks, s->n_looks + 1, sizeof(*grown));
	if (!grown)
		return;
	s->looks = grown;
	s->looks[s->n_looks++] = l;
}

void run_scope_look(struct run *r, pid_t pid, uint64_t when)
{
	look_later(r->scope, pid, when > LOOK_FIRST_NS ? when - LOOK_FIRST_NS : 0);
}

/* A program that --only names may fork before we have read of its exec: its child was entered as what the parent still was. */
static int settle_left_out(struct run *r, struct error *e)
{
	_cleanup_free_ struct session_process *all = NULL;
	int err = 0;
	size_t n;

	if (!r->options.scope.only || session_processes(r->session, &all, &n) < 0)
		return 0;
	for (size_t i = 0; err == 0 && i < n; i++)
		if (!(all[i].flags & ABI_PROC_IN))
			err = settle(r, all[i].pid, e);
	return err;
}

static int on_exec(struct run *r, pid_t pid, uint64_t now, struct error *e)
{
	unsigned int flags;
	int err;

	if (r->options.kind != RUN_SYSTEM && r->options.scope.follow == FOLLOW_NONE) {
		/* But for the launch itself. */
		if (r->target && !r->scope->launched)
			r->scope->launched = true;
		else
			session_leave(r->session, pid);
		return 0;
	}
	err = settle(r, pid, e);
	if (err < 0 || session_flags(r->session, pid, &flags) < 0 || !(flags & ABI_PROC_IN))
		return err;
	look_at(r, pid);
	run_inject_anew(r, pid);
	look_later(r->scope, pid, now);
	return settle_left_out(r, e);
}

static void due_looks(struct run *r, uint64_t now)
{
	struct run_scope *s = r->scope;

	for (size_t i = 0; i < s->n_looks;) {
		struct look *l = &s->looks[i];

		if (l->when > now) {
			i++;
			continue;
		}
		if (session_look(r->session, l->pid, NULL) < 0 || l->wait >= LOOK_LAST_NS) {
			*l = s->looks[--s->n_looks];
			continue;
		}
		l->wait *= 2;
		l->when = now + l->wait;
	}
}

/* A few of all processes, in turn: libraries that they load. */
static void round_of_looks(struct run *r)
{
	_cleanup_free_ struct session_process *all = NULL;
	struct run_scope *s = r->scope;
	size_t n;

	session_tidy(r->session);
	if (session_processes(r->session, &all, &n) < 0)
		return;
	run_inject_rest(r, all, n);
	for (size_t i = 0; i < n && i < ROUND_LOOKS; i++) {
		const struct session_process *p = &all[s->at++ % n];

		if (p->flags & ABI_PROC_IN)
			(void)session_look(r->session, p->pid, NULL);
	}
}

static int look_for_new(pid_t pid, void *arg)
{
	struct descent *d = arg;
	unsigned int has = 0;

	if (pid == getpid() || session_flags(d->run->session, pid, &has) == 0 || !(wanted(d->run, pid, 0) & ABI_PROC_IN))
		return 0;
	return settle(d->run, pid, d->e);
}

/* Who joins or leaves without an exec; and what ended just when it was entered. */
static int scan(struct run *r, struct error *e)
{
	_cleanup_free_ struct session_process *all = NULL;
	struct descent d = {.run = r, .e = e};
	size_t n;
	int err = r->scope->rule ? process_rule_refresh(r->scope->rule, e) : 0;

	if (err < 0 || session_processes(r->session, &all, &n) < 0)
		return err;
	for (size_t i = 0; err == 0 && i < n; i++) {
		if (!process_is_live(all[i].pid))
			session_leave(r->session, all[i].pid);
		else if (r->scope->rule)
			err = settle(r, all[i].pid, e);
	}
	if (err == 0 && r->scope->rule)
		err = process_each(look_for_new, &d);
	return err == 0 ? settle_left_out(r, e) : err;
}

int run_scope_step(struct run *r, uint64_t now, uint64_t *ret_next, struct error *e)
{
	struct run_scope *s = r->scope;
	const pid_t *pids;
	size_t n;
	int err = 0;

	while (err == 0 && (n = session_execs(r->session, &pids))) {
		if (s->rule) /* who is in the group now: all of these are older */
			err = process_rule_refresh(s->rule, e);
		for (size_t i = 0; err == 0 && i < n; i++)
			err = on_exec(r, pids[i], now, e);
	}
	due_looks(r, now);
	if (err == 0 && now >= s->round_ns) {
		round_of_looks(r);
		s->round_ns = now + ROUND_NS;
	}
	if (err == 0 && now >= s->scan_ns) {
		err = scan(r, e);
		s->scan_ns = now + SCAN_NS;
	}
	if (err == 0)
		run_refresh_points(r);
	for (size_t i = 0; i < s->n_looks; i++)
		if (s->looks[i].when < *ret_next)
			*ret_next = s->looks[i].when;
	if (s->round_ns < *ret_next)
		*ret_next = s->round_ns;
	return err;
}

bool run_scope_is_over(struct run *r)
{
	_cleanup_free_ struct session_process *all = NULL;
	struct run_scope *s = r->scope;
	struct epoll_event ev;
	size_t n;

	if (!s || r->options.kind != RUN_ATTACH)
		return false;
	while (epoll_wait(s->ends, &ev, 1, 0) == 1)
		s->n_ended++;
	if (s->n_ended < s->n_pids || session_processes(r->session, &all, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (process_is_live(all[i].pid))
			return false;
	return true;
}
