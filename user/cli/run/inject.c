// SPDX-License-Identifier: BSD-2-Clause

#include "cli/run/run.h"
#include "analysis/analysis.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "experiment/runner.h"
#include "shared/shim_abi.h"
#include "target/shim/image.h"
#include "target/injector.h"
#include "target/launch.h"
#include "target/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --inject=auto: how long and how many experiments it takes to see whether threads are held that
 * should sleep. */
#define TRIAL_NS (3 * NSEC_PER_SEC)
#define TRIAL_EXPERIMENTS 4
#define MOST_ROUNDS 16
/* One whose threads cannot be stopped takes a second and a half. So much for all, each time. */
#define REST_NS (200 * NSEC_PER_MSEC)
#define FIRST_NS (10 * NSEC_PER_SEC)

int run_inject_open(struct run *r, struct error *e)
{
	const struct injector_options o = {
		.image = shim_blob_image,
		.size = shim_blob_image_size,
		.pay = r->payer == ABI_PAY_SPIN ? SHIM_PAY_SPIN : SHIM_PAY_SLEEP,
		.signo = r->options.signo,
	};

	return r->injection.mode != RUN_INJECT_NONE ? injector_start(&o, &r->injection.injector, e)
						    : 0;
}

static bool is_one_of(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static void announce(const struct run *r, const char *reason)
{
	const struct scope_options *o = &r->options.scope;
	char names[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < o->n_pids && used < sizeof(names) - 64; i++) {
		struct process_facts f = {.comm = "?"};

		(void)process_read(o->pids[i], &f);
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%d (%.16s)",
					 i ? ", " : "", (int)o->pids[i], f.comm);
	}
	(void)log_error("%sinjecting a payment handler into %s%s%s%s, until the end of the run",
			reason, o->n_pids ? "process " : "", names,
			o->n_pids ? "" : "processes in scope",
			o->n_pids && o->follow == FOLLOW_ALL ? " and its children" : "");
}

/* 0: @pid pays from now on. */
static int inject(struct run *r, pid_t pid, struct error *e)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct abi_proc handler;
	struct injected got = {0};
	unsigned int flags;
	int err;

	/* As long as the ledger has it in scope, or it is our child, its number is not another's:
	 * so the descriptor is that process's. */
	if (pidfd < 0 ||
	    (r->scope && (session_flags(r->session, pid, &flags) < 0 || !(flags & ABI_PROC_IN))))
		return fail(e, ESRCH, "process %d ended while we attached", (int)pid);
	err = injector_enter(r->injection.injector, pid, pidfd, &got, e);
	handler = (struct abi_proc){.handler = got.handler, .numbers = got.numbers};
	/* What was said of the program before an exec is not true of this one, which may have a
	 * handler of its own. Where some are put into those that need one, it may be the library's.
	 */
	if (err == 0 || r->injection.mode == RUN_INJECT_ALL)
		session_set_handler(r->session, pid, err == 0 ? &handler : NULL);
	if (err < 0)
		return err;
	if (got.filtered && !r->options.quiet)
		(void)log_error("%u of %u threads of process %d filter their system calls "
				"(seccomp): those get no payment signal",
				got.filtered, got.threads, (int)pid);
	if (got.blocking && !r->options.quiet)
		(void)log_error(
			"%u of %u threads of process %d block signal %d: those cannot be paused",
			got.blocking, got.threads, (int)pid, r->options.signo);
	r->injection.put++;
	return 0;
}

/* The first one that refuses is named. A program that we started and that can be held needs none.
 */
static void note_refusal(struct run *r, pid_t pid, int err, const struct error *e)
{
	struct run_injection *i = &r->injection;

	/* Most have ended long since. */
	if (i->n_refused >= ABI_MAX_PROCESSES)
		i->n_refused = 0;
	xarray_add(i->refused, i->n_refused, pid);
	/* It executes another program: of that we hear, too (run_inject_anew). */
	if (err == -ESTALE)
		return;
	if (!i->said && !(r->target && i->held_else))
		(void)log_error("%s: %s; others that refuse are not named", e->text,
				i->held_else ? "its threads are held on a CPU instead"
					     : "it is not paused");
	i->said = true;
}

static bool inject_unnamed(struct run *r, pid_t pid)
{
	struct error e = {""};
	int err = is_one_of(r->injection.refused, r->injection.n_refused, pid) ? -EPERM
									       : inject(r, pid, &e);

	if (err < 0 && *e.text && process_is_live(pid))
		note_refusal(r, pid, err, &e);
	return err == 0;
}

/* Is a handler to be in a process of these flags? */
static bool is_wanted(const struct run *r, unsigned int flags)
{
	return flags & ABI_PROC_IN &&
	       (r->injection.mode == RUN_INJECT_ALL ||
		(r->injection.mode == RUN_INJECT_HELD && flags & ABI_PROC_HELD));
}

/* ... and is it not there yet? */
static bool is_due(const struct run *r, unsigned int flags)
{
	return is_wanted(r, flags) && !(flags & ABI_PROC_SIGNALS);
}

void run_inject_anew(struct run *r, pid_t pid)
{
	struct run_injection *i = &r->injection;
	unsigned int flags;

	for (size_t k = 0; k < i->n_refused; k++)
		if (i->refused[k] == pid)
			i->refused[k--] = i->refused[--i->n_refused];
	if (session_flags(r->session, pid, &flags) == 0 && is_wanted(r, flags))
		(void)inject_unnamed(r, pid);
}

void run_inject_rest(struct run *r, const struct session_process *all, size_t n)
{
	uint64_t until = clock_monotonic_ns() + REST_NS;

	for (size_t i = 0; i < n && clock_monotonic_ns() < until; i++) {
		const struct session_process *p = &all[r->injection.rest_at++ % n];

		if (is_due(r, p->flags))
			(void)inject_unnamed(r, p->pid);
	}
}

/* Into all that are due. A child that one of them had before its turn came is found in the next
 * round, and inherits what comes after that. Who forks faster than that, or comes too late, gets
 * one later (run_inject_rest). */
static int inject_all(struct run *r, struct error *e)
{
	uint64_t until = clock_monotonic_ns() + FIRST_NS;
	int err;

	for (size_t done = 1, round = 0; done && round < MOST_ROUNDS; round++) {
		_cleanup_free_ struct session_process *all = NULL;
		size_t n;

		done = 0;
		err = session_processes(r->session, &all, &n);
		if (err < 0)
			return fail(e, -err, "cannot tell which processes are in scope: %s",
				    strerror(-err));
		for (size_t i = 0; i < n; i++) {
			if (!is_due(r, all[i].flags))
				continue;
			if (r->injection.mode == RUN_INJECT_ALL &&
			    is_one_of(r->options.scope.pids, r->options.scope.n_pids, all[i].pid)) {
				err = inject(r, all[i].pid, e);
				if (err < 0)
					return err;
				done++;
			} else if (clock_monotonic_ns() < until) {
				done += inject_unnamed(r, all[i].pid);
			}
		}
	}
	return 0;
}

int run_inject_begin(struct run *r, struct error *e)
{
	struct run_injection *i = &r->injection;
	unsigned int flags;
	int err =
		i->injector ? injector_give_slots(i->injector, session_slots_fd(r->session), e) : 0;

	if (err < 0 || i->mode != RUN_INJECT_ALL)
		return err;
	/* Nothing is said of programs that cozbpf starts, as nothing is said of the preloaded
	 * library. */
	if (!r->target) {
		err = inject_all(r, e);
		if (err == 0)
			announce(r, i->held_else ? "" : "the kernel has no task work: ");
		return err;
	}
	/* --only may leave it out. */
	if (r->scope &&
	    (session_flags(r->session, target_pid(r->target), &flags) < 0 || !is_due(r, flags)))
		return 0;
	err = inject(r, target_pid(r->target), e);
	if (err < 0 && !i->held_else && process_is_live(target_pid(r->target)))
		return err;
	if (err < 0)
		e->text[0] = '\0';
	return 0;
}

void run_inject_step(struct run *r, uint64_t now)
{
	struct profile_runtime t;
	struct run_injection *i = &r->injection;
	struct error e = {""};
	char reason[128];
	double held;

	if (i->mode != RUN_INJECT_TRIAL || now < r->start_ns + r->options.delay_ns + TRIAL_NS ||
	    r->profile.n_experiments < TRIAL_EXPERIMENTS)
		return;
	run_take_machine(r, &t);
	held = analysis_held(&r->profile);
	i->mode = held > 0 ? RUN_INJECT_HELD : RUN_INJECT_NONE;
	run_keep_trial(r, !(held > 0));
	if (!(held > 0))
		return;
	(void)runner_drop(r->runner, now);
	(void)snprintf(
		reason, sizeof(reason),
		"for %.0f %% of the time threads were kept on a CPU that should have slept: ",
		100 * held);
	announce(r, reason);
	if (inject_all(r, &e) < 0)
		(void)log_error("%s", e.text);
}

bool run_inject_came(struct run *r, const struct profile_experiment *x)
{
	struct profile_run_experiment kept = {.x = *x};
	const struct profile alone = {.experiments = &kept, .n_experiments = 1};
	struct run_injection *i = &r->injection;
	bool came;

	if (i->mode != RUN_INJECT_HELD)
		return false;
	if (x->held_asleep) {
		_cleanup_free_ struct session_process *all = NULL;
		size_t n;

		if (session_processes(r->session, &all, &n) == 0)
			run_inject_rest(r, all, n);
	}
	came = i->put != i->put_before;
	i->put_before = i->put;
	return came && analysis_held(&alone) > 0;
}

void run_inject_close(struct run *r)
{
	struct error e = {""};

	if (injector_stop(r->injection.injector, &e) < 0)
		(void)log_error("%s", e.text);
	free(r->injection.refused);
	r->injection = (struct run_injection){0};
}
