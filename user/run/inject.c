// SPDX-License-Identifier: BSD-2-Clause

#include "run/run.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "shared/shim_abi.h"
#include "shim/image.h"
#include "target/injector.h"
#include "target/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int run_inject_open(struct run *r, struct error *e)
{
	const struct injector_options o = {
		.image = shim_blob_image,
		.size = shim_blob_image_size,
		.pay = r->payer == ABI_PAY_SPIN ? SHIM_PAY_SPIN : SHIM_PAY_SLEEP,
		.signo = r->options.signo,
	};

	return r->injects ? injector_start(&o, &r->injector, e) : 0;
}

static bool is_one_of(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* One line, with the first that is done. */
static void announce(const struct run *r)
{
	const struct scope_options *o = &r->options.scope;
	char names[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < o->n_pids && used < sizeof(names) - 64; i++) {
		struct process_facts f = {.comm = "?"};

		(void)process_read(o->pids[i], &f);
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%d (%.16s)", i ? ", " : "", (int)o->pids[i], f.comm);
	}
	(void)log_error("%sinjecting a payment handler into process %s%s, until the end of the run%s",
			o->inject ? "" : "the kernel has no task work: ", names, o->follow == FOLLOW_ALL ? " and its children" : "",
			o->inject ? "" : " (--no-inject forbids)");
}

/* 0: @pid pays from now on. */
static int inject(struct run *r, pid_t pid, struct error *e)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct injected got;
	unsigned int flags;
	int err;

	/* As long as the ledger has it in scope its number is not another's: so the descriptor is that process's. */
	if (pidfd < 0 || session_flags(r->session, pid, &flags) < 0 || !(flags & ABI_PROC_IN))
		return fail(e, ESRCH, "process %d ended while we attached", (int)pid);
	err = injector_enter(r->injector, pid, pidfd, &got, e);
	/* What was said of the program before an exec is not true of this one, which may have a handler of its own. */
	session_set_signals(r->session, pid, err == 0);
	if (err < 0)
		return err;
	if (got.filtered && !r->options.quiet)
		(void)log_error("%u of %u threads of process %d filter their system calls (seccomp): those get no payment signal", got.filtered,
				got.threads, (int)pid);
	if (got.blocking && !r->options.quiet)
		(void)log_error("%u of %u threads of process %d block signal %d: those cannot be paused", got.blocking, got.threads, (int)pid,
				r->options.signo);
	return 0;
}

/* The first one that refuses is named. */
static void note_refusal(struct run *r, pid_t pid, const struct error *e)
{
	/* Most have ended long since. */
	if (r->n_uninjected >= ABI_MAX_PROCESSES)
		r->n_uninjected = 0;
	if (array_room(r->uninjected, r->n_uninjected) < 0)
		return;
	r->uninjected[r->n_uninjected++] = pid;
	if (!r->said_uninjected)
		(void)log_error("%s: it is not paused; others that cannot be are not named", e->text);
	r->said_uninjected = true;
}

static bool inject_unnamed(struct run *r, pid_t pid)
{
	struct error e = {""};
	int err = is_one_of(r->uninjected, r->n_uninjected, pid) ? -EPERM : inject(r, pid, &e);

	/* -ESTALE: of its new program we hear, too. */
	if (err < 0 && err != -ESTALE && *e.text && process_is_live(pid))
		note_refusal(r, pid, &e);
	return err == 0;
}

void run_inject_anew(struct run *r, pid_t pid)
{
	if (!r->injector)
		return;
	for (size_t i = 0; i < r->n_uninjected; i++)
		if (r->uninjected[i] == pid)
			r->uninjected[i--] = r->uninjected[--r->n_uninjected];
	(void)inject_unnamed(r, pid);
}

void run_inject_rest(struct run *r, const struct session_process *all, size_t n)
{
	for (size_t i = 0; r->injector && i < n; i++)
		if (all[i].flags & ABI_PROC_IN && !(all[i].flags & ABI_PROC_SIGNALS))
			(void)inject_unnamed(r, all[i].pid);
}

int run_inject_all(struct run *r, struct error *e)
{
	bool announced = false;
	int err;

	if (!r->injector)
		return 0;
	err = injector_give_slots(r->injector, session_slots_fd(r->session), e);
	if (err < 0)
		return err;
	/* A child that one of them had before its turn came is found in the next round, and inherits what comes after that. */
	for (size_t done = 1; done;) {
		_cleanup_free_ struct session_process *all = NULL;
		size_t n;

		done = 0;
		err = session_processes(r->session, &all, &n);
		if (err < 0)
			return fail(e, -err, "cannot tell which processes are in scope: %s", strerror(-err));
		for (size_t i = 0; i < n; i++) {
			if (!(all[i].flags & ABI_PROC_IN) || all[i].flags & ABI_PROC_SIGNALS)
				continue;
			if (is_one_of(r->options.scope.pids, r->options.scope.n_pids, all[i].pid)) {
				err = inject(r, all[i].pid, e);
				if (err < 0)
					return err;
				if (!announced)
					announce(r);
				announced = true;
				done++;
			} else {
				done += inject_unnamed(r, all[i].pid);
			}
		}
	}
	return 0;
}

void run_inject_close(struct run *r)
{
	struct error e = {""};

	if (injector_stop(r->injector, &e) < 0)
		(void)log_error("%s", e.text);
	r->injector = NULL;
	free(r->uninjected);
	r->uninjected = NULL;
}
