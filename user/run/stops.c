// SPDX-License-Identifier: BSD-2-Clause
/* A job that Ctrl-Z, SIGSTOP or a background read stops does no work for as long, and no line is to blame for it: an experiment in which that
 * happened is dropped. Of a program that we started, its process is looked at, for any stop; of attach, the processes that were named, for stops
 * that last until we look (at each step, so at an experiment's end). Programs may stop their children as a matter of course: those are not asked. */
#include "run/run.h"

#include "base/log.h"
#include "experiment/runner.h"
#include "target/launch.h"
#include "target/process.h"

/* ... or was, since the last call. */
static bool is_stopped(struct run *r, bool *ret_was)
{
	const struct scope_options *o = &r->options.scope;
	struct process_facts p;
	bool was = r->stops.was;

	*ret_was = false;
	if (r->target)
		return target_is_stopped(r->target, ret_was);
	r->stops.was = false;
	for (size_t i = 0; i < o->n_pids && !r->stops.was; i++)
		r->stops.was = process_read(o->pids[i], &p) == 0 && p.state == 'T';
	*ret_was = was || r->stops.was;
	return r->stops.was;
}

bool run_is_stopped(struct run *r, uint64_t now)
{
	bool was, is = is_stopped(r, &was);

	/* Whoever stops the whole job with SIGSTOP stops us as well; that we go on is told. */
	if ((was || r->stops.job) && runner_drop(r->runner, now))
		r->stops.dropped++;
	r->stops.job = false;
	return is;
}

void run_say_stops(const struct run *r)
{
	if (r->stops.dropped)
		(void)log_error("%zu experiment%s dropped: the program was stopped meanwhile, by Ctrl-Z or SIGSTOP", r->stops.dropped,
				r->stops.dropped > 1 ? "s were" : " was");
}
