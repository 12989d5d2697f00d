// SPDX-License-Identifier: BSD-2-Clause
/* A run without a progress point measures nothing. What it is good for: it finds out what a point
 * could be. */
#include "run/run.h"

#include "base/clock.h"
#include "base/error.h"
#include "session/visit_rates.h"
#include "target/launch.h"

#define SETTLE_NS NSEC_PER_SEC /* what a program does first is seldom what it is for */
#define MOST_OF_A_KIND 6

/* System-wide there is no one process, programs that are measured from end to end need no point,
 * and who wants no report gets none. */
static bool may_propose(const struct run *r)
{
	return r->options.n_points == 0 && !r->options.runs && r->options.kind != RUN_SYSTEM &&
	       r->n_runner_points == 0 && !r->options.no_report && !r->purpose->no_file;
}

void run_propose_end(struct run *r)
{
	if (r->proposed)
		return;
	visit_rates_end(r->rates);
	r->rates = NULL;
	r->proposed = true;
}

void run_propose_step(struct run *r, uint64_t now, uint64_t *ret_next)
{
	pid_t pid = r->target		      ? target_pid(r->target)
		    : r->options.scope.n_pids ? r->options.scope.pids[0]
					      : 0;
	uint64_t next = r->start_ns + r->options.delay_ns + SETTLE_NS;
	int err = 0;

	if (r->proposed)
		return;
	/* A counter of coz.h may come at any time: then there is a point. */
	if (!may_propose(r) || !pid) {
		run_propose_end(r);
		return;
	}
	if (!r->rates && now >= next)
		err = visit_rates_begin(r->code, pid, r->options.disabled, &r->rates, NULL);
	if (r->rates && err == 0)
		err = visit_rates_step(r->rates, now, &next, NULL);
	if (err < 0)
		run_propose_end(r);
	else if (err > 0)
		r->proposed = true;
	else
		clock_sooner(ret_next, next);
}

size_t run_proposals(const struct run *r, const struct visit_rate **ret)
{
	return r->rates ? visit_rates_found(r->rates, MOST_OF_A_KIND, ret) : 0;
}
