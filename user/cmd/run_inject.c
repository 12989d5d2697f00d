// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/run_inject.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/commands.h"
#include "cmd/run.h"
#include "shared/shim_abi.h"
#include "shim/image.h"
#include "target/injector.h"
#include "target/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_named(const struct run *r, pid_t pid)
{
	for (size_t i = 0; i < r->options.scope.n_pids; i++)
		if (r->options.scope.pids[i] == pid)
			return true;
	return false;
}

/* One line before anything is done. */
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
	(void)complain("the kernel has no task work: injecting a payment handler into process %s%s, which goes again at the end (--no-inject forbids)",
		       names, o->follow == FOLLOW_ALL ? " and its children" : "");
}

/* 0: @pid pays from now on. */
static int inject(struct run *r, pid_t pid, struct error *e)
{
	struct injected got;
	int err = injector_enter(r->injector, pid, &got, e);

	if (err < 0)
		return err;
	session_set_signals(r->session, pid, true);
	if (got.blocking && !r->options.quiet)
		(void)complain("%u of %u threads of process %d block signal %d: those cannot be paused", got.blocking, got.threads, (int)pid,
			       r->options.signo);
	return 0;
}

bool run_inject_one(struct run *r, pid_t pid)
{
	struct error e = {""};

	if (!r->injector)
		return false;
	if (inject(r, pid, &e) >= 0)
		return true;
	if (process_is_live(pid) && !r->uninjected++)
		(void)complain("%s: it is not paused; others that cannot be are not named", e.text);
	return false;
}

int run_inject_all(struct run *r, struct error *e)
{
	int err;

	if (!r->injector)
		return 0;
	err = injector_give_slots(r->injector, session_slots_fd(r->session), e);
	if (err < 0)
		return err;
	announce(r);
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
			if (is_named(r, all[i].pid)) {
				err = inject(r, all[i].pid, e);
				if (err < 0)
					return err;
				done++;
			} else {
				done += run_inject_one(r, all[i].pid);
			}
		}
	}
	return 0;
}

void run_inject_close(struct run *r)
{
	struct error e = {""};

	if (injector_stop(r->injector, &e) < 0)
		(void)complain("%s", e.text);
	r->injector = NULL;
}
