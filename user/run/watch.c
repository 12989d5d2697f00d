// SPDX-License-Identifier: BSD-2-Clause
/* What a run knows while it goes on: how sure its effects are, for the status line and --until-ci, and who has the machine's CPU time. */
#include "run/run.h"

#include "analysis/analysis.h"
#include "base/clock.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

/* The next look takes this many new experiments, and a tenth of all. */
#define LOOK_EVERY 4
/* What looking costs, of the time: it may not disturb the program. */
#define LOOK_SHARE 50

bool run_certainty_due(const struct run *r, uint64_t now)
{
	size_t n = r->profile.n_experiments;

	if (r->options.until_ci <= 0 && r->options.quiet)
		return false;
	return n >= r->looked_at + LOOK_EVERY + r->looked_at / 10 && now >= r->look_ns;
}

void run_certainty_look(struct run *r, uint64_t now)
{
	struct analysis a;

	r->looked_at = r->profile.n_experiments;
	if (analyse(&r->profile, r->options.seed, &a) < 0)
		return; /* no memory now: the next look may have some */
	r->certainty = certainty_of(&a, r->options.until_ci, a.elapsed_ns / (double)NSEC_PER_SEC);
	analysis_free(&a);
	r->look_ns = now + LOOK_SHARE * (clock_monotonic_ns() - now);
}

/* Of all our threads. */
static uint64_t own_cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

void run_machine_begin(struct run *r)
{
	r->own_cpu_ns = own_cpu_ns();
	if (r->options.kind == RUN_LAUNCH)
		return;
	session_cpu_times(r->session, &r->scope_cpu_ns, &r->outside_cpu_ns);
	session_measure_own(r->session);
}

void run_machine_end(struct run *r, struct profile_runtime *t)
{
	double kernel = session_own_share(r->session);
	uint64_t scope, outside;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus <= 0 || !t->time)
		return;
	t->machine_ns = (uint64_t)cpus * t->time;
	t->own_cpu_ns = own_cpu_ns() - r->own_cpu_ns;
	if (r->options.kind == RUN_LAUNCH)
		return;
	if (!isnan(kernel))
		t->kernel_cpu_ns = (uint64_t)(kernel * (double)t->time);
	session_cpu_times(r->session, &scope, &outside);
	t->scope_cpu_ns = scope - r->scope_cpu_ns;
	t->foreign_cpu_ns = outside - r->outside_cpu_ns;
}
