// SPDX-License-Identifier: BSD-2-Clause
/* What becomes of processes while the run goes on: they start other programs, load libraries, join,
 * leave, end. */
#include "cli/run/run.h"
#include "cli/run/scope_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "target/process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define LOOK_FIRST_NS                                                                           \
	(5 * NSEC_PER_MSEC) /* libraries are mapped right after exec, and some later: look less \
			       and less often ... */
#define LOOK_LAST_NS \
	(200 * NSEC_PER_MSEC) /* ... and from here on in turn with all other processes */
#define ROUND_NS (200 * NSEC_PER_MSEC)
#define ROUND_LOOKS 8 /* of a round: reading a process's mappings takes some 0.1 ms */
#define STEP_NS (100 * NSEC_PER_MSEC) /* so that signals are heard, whatever processes do */
#define LATE 1			      /* the rest comes with the next scan */
#define SCAN_NS (1 * NSEC_PER_SEC)    /* what changes without an exec: user, name, control group */

static void look_later(struct run_scope *s, pid_t pid, uint64_t now)
{
	struct look l = {pid, now + LOOK_FIRST_NS, LOOK_FIRST_NS};

	for (size_t i = 0; i < s->n_looks; i++)
		if (s->looks[i].pid == pid) {
			s->looks[i] = l;
			return;
		}
	xarray_add(s->looks, s->n_looks, l);
}

void run_scope_look(struct run *r, pid_t pid, uint64_t when)
{
	look_later(r->scope, pid, when > LOOK_FIRST_NS ? when - LOOK_FIRST_NS : 0);
}

/* A program that --only names may fork before we have read of its exec: its child was entered as
 * what the parent still was. */
static int settle_left_out(struct run *r, struct error *e)
{
	_cleanup_free_ struct session_process *all = NULL;
	uint64_t until = clock_monotonic_ns() + STEP_NS;
	int err = 0;
	size_t n;

	if (!r->options.scope.only || session_processes(r->session, &all, &n) < 0)
		return 0;
	for (size_t i = 0; err == 0 && i < n && clock_monotonic_ns() < until; i++) {
		const struct session_process *p = &all[r->scope->left_out_at++ % n];

		if (!(p->flags & ABI_PROC_IN))
			err = run_scope_settle(r, p->pid, e);
	}
	return err;
}

static int on_exec(struct run *r, pid_t pid, uint64_t now, struct error *e)
{
	unsigned int flags;
	int err;

	/* It has ended since, or its number would be in the map; by now that may be a stranger's.
	 */
	if (r->options.kind != RUN_SYSTEM && session_flags(r->session, pid, &flags) < 0)
		return 0;
	if (r->options.kind != RUN_SYSTEM && r->options.scope.follow == FOLLOW_NONE) {
		/* But for the launch itself. */
		if (r->target && !r->scope->launched)
			r->scope->launched = true;
		else
			session_leave(r->session, pid);
		return 0;
	}
	err = run_scope_settle(r, pid, e);
	if (err < 0 || session_flags(r->session, pid, &flags) < 0 || !(flags & ABI_PROC_IN))
		return err;
	r->stop_if.restarts++;
	run_scope_read(r, pid);
	run_inject_anew(r, pid);
	look_later(r->scope, pid, now);
	return 0;
}

/* Is it told once more of the same process, later? The first one of a launch is needed. */
static bool comes_again(const struct run *r)
{
	const struct run_scope *s = r->scope;

	if (r->target && !s->launched)
		return false;
	for (size_t i = s->next_exec; i < s->n_execs; i++)
		if (s->execs[i] == s->execs[s->next_exec - 1])
			return true;
	return false;
}

/* What is left of a storm of them comes with the next step. */
static int take_execs(struct run *r, uint64_t now, struct error *e)
{
	struct run_scope *s = r->scope;
	bool any = false;
	int err = 0;

	while (err == 0 && clock_monotonic_ns() < now + STEP_NS) {
		if (s->next_exec == s->n_execs) {
			s->next_exec = 0;
			s->n_execs = session_execs(r->session, &s->execs);
			if (!s->n_execs)
				break;
			if (s->rule) /* who is in the group now: all of these are older */
				err = process_rule_refresh(s->rule, e);
		}
		s->next_exec++;
		if (err == 0 && !comes_again(r))
			err = on_exec(r, s->execs[s->next_exec - 1], now, e);
		any = true;
	}
	return err == 0 && any ? settle_left_out(r, e) : err;
}

/* To be called before a look. Otherwise the executable of a process whose exec has not been read
 * yet would be taken for a library. */
static int read_new_execs(struct run *r, struct error *e)
{
	struct pollfd p = {.fd = session_execs_fd(r->session), .events = POLLIN};

	return r->scope->next_exec < r->scope->n_execs || poll(&p, 1, 0) > 0
		       ? take_execs(r, clock_monotonic_ns(), e)
		       : 0;
}

static struct look *first_due(const struct run_scope *s, uint64_t now)
{
	struct look *first = NULL;

	for (size_t i = 0; i < s->n_looks; i++)
		if (s->looks[i].when <= now && (!first || s->looks[i].when < first->when))
			first = &s->looks[i];
	return first;
}

static int due_looks(struct run *r, uint64_t now, struct error *e)
{
	struct run_scope *s = r->scope;
	uint64_t until = clock_monotonic_ns() + STEP_NS;
	int err = 0;

	/* The process that has waited longest comes first: others can be due again and again. */
	while (err == 0 && clock_monotonic_ns() < until && first_due(s, now)) {
		struct look *l;

		err = read_new_execs(r, e);
		l = first_due(s, now);
		if (err < 0 || !l)
			break;
		if (session_look(r->session, l->pid, NULL) < 0 || l->wait >= LOOK_LAST_NS) {
			*l = s->looks[--s->n_looks];
			continue;
		}
		l->wait *= 2;
		l->when = now + l->wait;
	}
	return err;
}

/* A few of all processes, in turn: libraries that they load. */
static int round_of_looks(struct run *r, struct error *e)
{
	_cleanup_free_ struct session_process *all = NULL;
	struct run_scope *s = r->scope;
	uint64_t until;
	int err = 0;
	size_t n;

	session_maintain(r->session);
	if (session_processes(r->session, &all, &n) < 0)
		return 0;
	run_inject_rest(r, all, n);
	until = clock_monotonic_ns() + STEP_NS;
	for (size_t i = 0; err == 0 && i < n && i < ROUND_LOOKS; i++) {
		const struct session_process *p = &all[s->at++ % n];

		err = p->flags & ABI_PROC_IN ? read_new_execs(r, e) : 0;
		if (err == 0 && p->flags & ABI_PROC_IN)
			(void)session_look(r->session, p->pid, NULL);
		if (clock_monotonic_ns() > until)
			break;
	}
	return err;
}

static int look_for_new(pid_t pid, void *arg)
{
	struct descent *d = arg;
	unsigned int has = 0;

	if (pid < d->run->scope->new_at)
		return 0;
	/* Reading the list is no part of it, and each scan gets on. */
	if (!d->until)
		d->until = clock_monotonic_ns() + STEP_NS;
	else if (clock_monotonic_ns() > d->until) {
		d->run->scope->new_at = pid;
		return LATE;
	}
	if (pid == getpid() || session_flags(d->run->session, pid, &has) == 0 ||
	    !(run_scope_wanted(d->run, pid, 0) & ABI_PROC_IN))
		return 0;
	return run_scope_settle(d->run, pid, d->e);
}

/* Who joins or leaves without an exec; and what ended just when it was entered. */
static int scan(struct run *r, struct error *e)
{
	_cleanup_free_ struct session_process *all = NULL;
	struct descent d = {.run = r, .e = e};
	uint64_t until;
	size_t n;
	int err = r->scope->rule ? process_rule_refresh(r->scope->rule, e) : 0;

	if (err < 0 || session_processes(r->session, &all, &n) < 0)
		return err;
	until = clock_monotonic_ns() + STEP_NS;
	for (size_t i = 0; err == 0 && i < n && clock_monotonic_ns() < until; i++) {
		pid_t pid = all[r->scope->scan_at++ % n].pid;

		if (!process_is_live(pid))
			session_leave(r->session, pid);
		else if (r->scope->rule)
			err = run_scope_settle(r, pid, e);
	}
	if (err == 0 && r->scope->rule)
		err = process_each(look_for_new, &d);
	if (err == 0)
		r->scope->new_at = 0;
	return err == 0 || err == LATE ? settle_left_out(r, e) : err;
}

int run_scope_step(struct run *r, uint64_t now, uint64_t *ret_next, struct error *e)
{
	struct run_scope *s = r->scope;
	int err = take_execs(r, now, e);

	if (err == 0)
		err = due_looks(r, now, e);
	if (err == 0 && now >= s->round_ns) {
		err = round_of_looks(r, e);
		s->round_ns = now + ROUND_NS;
	}
	if (err == 0 && now >= s->scan_ns) {
		err = scan(r, e);
		s->scan_ns = now + SCAN_NS;
	}
	if (err == 0)
		run_refresh_points(r, false);
	for (size_t i = 0; i < s->n_looks; i++)
		clock_sooner(ret_next, s->looks[i].when);
	clock_sooner(ret_next, s->round_ns);
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

int run_scope_execs_fd(const struct run *r)
{
	return r->scope ? session_execs_fd(r->session) : -1;
}

int run_scope_ends_fd(const struct run *r)
{
	return r->scope ? r->scope->ends : -1;
}
