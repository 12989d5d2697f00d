// SPDX-License-Identifier: BSD-2-Clause
#include "profile/machine.h"

#include "profile/profile.h"

#include <math.h>

/* Files say what they like. */
static void add(uint64_t *to, uint64_t more)
{
	if (__builtin_add_overflow(*to, more, to))
		*to = UINT64_MAX;
}

void profile_machine_add_run(struct profile_machine *m, const struct profile_runtime *t)
{
	struct profile_machine run = {0};

	if (t->own_cpu_ns)
		run.own_ns = t->own_cpu_ns, run.own_of_ns = t->machine_ns;
	if (t->kernel_cpu_ns)
		run.kernel_ns = t->kernel_cpu_ns, run.kernel_of_ns = t->machine_ns;
	if (t->scope_cpu_ns || t->foreign_cpu_ns)
		run.scope_ns = t->scope_cpu_ns, run.foreign_ns = t->foreign_cpu_ns, run.scope_of_ns = t->machine_ns;
	profile_machine_add(m, &run);
}

void profile_machine_add(struct profile_machine *m, const struct profile_machine *more)
{
	add(&m->own_ns, more->own_ns);
	add(&m->own_of_ns, more->own_of_ns);
	add(&m->kernel_ns, more->kernel_ns);
	add(&m->kernel_of_ns, more->kernel_of_ns);
	add(&m->scope_ns, more->scope_ns);
	add(&m->foreign_ns, more->foreign_ns);
	add(&m->scope_of_ns, more->scope_of_ns);
}

double profile_machine_share(uint64_t ns, uint64_t of_ns)
{
	if (!of_ns)
		return NAN;
	return ns < of_ns ? (double)ns / (double)of_ns : 1;
}
