// SPDX-License-Identifier: BSD-2-Clause
/* Who has the machine's CPU time while a run goes on: what is profiled, the rest, and ourselves. */
#include "cmd/run.h"

#include "base/clock.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

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
	session_cpu_times(r->session, &r->scope_cpu_ns, &r->foreign_cpu_ns);
	session_measure_own(r->session);
}

void run_machine_end(struct run *r, struct profile_runtime *t)
{
	double kernel = session_own_share(r->session);
	uint64_t scope, foreign;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus <= 0 || !t->time)
		return;
	t->machine_ns = (uint64_t)cpus * t->time;
	t->own_cpu_ns = own_cpu_ns() - r->own_cpu_ns;
	if (r->options.kind == RUN_LAUNCH)
		return;
	if (!isnan(kernel))
		t->kernel_cpu_ns = (uint64_t)(kernel * (double)t->time);
	session_cpu_times(r->session, &scope, &foreign);
	t->scope_cpu_ns = scope - r->scope_cpu_ns;
	t->foreign_cpu_ns = foreign - r->foreign_cpu_ns;
}
