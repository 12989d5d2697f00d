// SPDX-License-Identifier: BSD-2-Clause

#include "run/run.h"
#include "base/error.h"
#include "profile/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int repeat_init(struct repeat *x, const struct run_options *o, struct error *e)
{
	*x = (struct repeat){0};
	if (o->n_points)
		return fail(e, EINVAL, "--runs measures whole runs: leave out -p, or --runs");
	if (o->duration_ns)
		return fail(e, EINVAL, "--runs measures until the program ends by itself: leave out --duration, or --runs");
	if (plan_init(&x->plan, o->seed, o->fixed_speedup, o->zero_share, o->grid, o->n_grid, 0) < 0)
		return fail(e, ENOMEM, "out of memory");
	return 0;
}

void repeat_free(struct repeat *x)
{
	profile_free(&x->all);
	plan_free(&x->plan);
	free(x->line);
}

/* A line in proportion to its samples in the runs so far. */
static char *draw_line(struct repeat *x)
{
	uint64_t total = 0, nth;

	for (size_t i = 0; i < x->all.n_samples; i++)
		total += x->all.samples[i].count;
	if (!total)
		return NULL;
	nth = plan_sample(&x->plan, total);
	for (size_t i = 0; i < x->all.n_samples; i++) {
		if (nth < x->all.samples[i].count)
			return strdup(x->all.samples[i].location);
		nth -= x->all.samples[i].count;
	}
	return NULL;
}

int repeat_next(struct repeat *x, struct run_options *o, struct error *e)
{
	const struct profile_startup *first = x->all.n_runs ? &x->all.runs[0] : NULL;

	if (!first) {
		o->fixed_speedup = 0;
		return 0;
	}
	o->fixed_speedup = plan_speedup(&x->plan, NULL);
	if (o->fixed_line && o->fixed_line != x->line)
		return 0;
	free(x->line);
	x->line = draw_line(x);
	if (!x->line && x->all.n_samples)
		return fail(e, ENOMEM, "out of memory");
	o->fixed_line = x->line;
	o->granularity = first->granularity && !strcmp(first->granularity, "function") ? RUN_BY_FUNCTION : RUN_BY_LINE;
	return 0;
}

int repeat_keep(struct repeat *x, struct run *r, struct error *e)
{
	x->done++;
	return profile_merge(&x->all, &r->profile) < 0 ? fail(e, ENOMEM, "out of memory") : 0;
}
