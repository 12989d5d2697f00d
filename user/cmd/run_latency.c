// SPDX-License-Identifier: BSD-2-Clause
/* Latency points of a run: each is two points like any other, which the session then makes one. */
#include "cmd/run.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/latency_spec.h"
#include "cmd/run_option_rows.h"
#include "shared/latency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int option_add_latency(void *target, const struct option_row *row, const char *value, struct error *e)
{
	_cleanup_(latency_spec_free) struct latency_spec spec = {0};
	struct run_options *o = target;
	struct run_latency *latencies;
	struct point_spec *points;
	int r;

	if (o->n_latencies == ABI_MAX_LATENCIES || o->n_points + 2 > ABI_MAX_POINTS)
		return fail(e, E2BIG,
			    "--%s '%s': allowed are at most %d latency points, and with their two ends %d points in all",
			    row->name, value, ABI_MAX_LATENCIES, ABI_MAX_POINTS);
	r = latency_spec_parse(value, &spec, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < o->n_points; i++)
		if (strcmp(o->points[i].name, spec.name) == 0)
			return fail(e, EEXIST, "--%s '%s': there is a point of this name; choose another", row->name, value);
	points = reallocarray(o->points, o->n_points + 2, sizeof(*points));
	if (points)
		o->points = points;
	latencies = reallocarray(o->latencies, o->n_latencies + 1, sizeof(*latencies));
	if (latencies)
		o->latencies = latencies;
	if (!points || !latencies)
		return fail(e, ENOMEM, "out of memory");
	latencies[o->n_latencies++] = (struct run_latency){o->n_points, {spec.arguments[0], spec.arguments[1]}};
	for (size_t i = 0; i < 2; i++) {
		points[o->n_points++] = spec.ends[i];
		spec.ends[i] = (struct point_spec){0};
	}
	return 0;
}

void run_reword(const struct run *r, struct error *e)
{
	const struct run_options *o = &r->options;

	for (size_t i = 0; i < o->n_latencies; i++)
		latency_reword(o->points[o->latencies[i].begin].name, e);
}

int run_pair_points(struct run *r, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < r->options.n_latencies && err == 0; i++) {
		const struct run_latency *l = &r->options.latencies[i];

		err = session_pair_points(r->session, l->begin, l->arguments[0], l->begin + 1, l->arguments[1], e);
	}
	return err;
}
