// SPDX-License-Identifier: BSD-2-Clause
/* Latency points of a run: each is two points with one name. */
#include "cmd/run.h"

#include "base/error.h"
#include "cmd/run_option_rows.h"
#include "shared/latency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool name_is_taken(const struct run_options *o, const char *name)
{
	for (size_t i = 0; i < o->n_points; i++)
		if (strcmp(o->points[i].name, name) == 0)
			return true;
	for (size_t i = 0; i < o->n_latencies; i++)
		if (strcmp(o->latencies[i].name, name) == 0)
			return true;
	return false;
}

int option_add_latency(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct run_options *o = target;
	struct latency_spec spec, *more;
	int r;

	if (o->n_latencies == ABI_MAX_LATENCIES)
		return fail(e, E2BIG, "--%s '%s': allowed are at most %d latency points", row->name, value, ABI_MAX_LATENCIES);
	r = latency_spec_parse(value, &spec, e);
	if (r < 0)
		return r;
	if (name_is_taken(o, spec.name))
		r = fail(e, EEXIST, "--%s '%s': there is a point of this name; choose another", row->name, value);
	more = r == 0 ? reallocarray(o->latencies, o->n_latencies + 1, sizeof(*more)) : NULL;
	if (!more) {
		latency_spec_free(&spec);
		return r < 0 ? r : fail(e, ENOMEM, "out of memory");
	}
	o->latencies = more;
	o->latencies[o->n_latencies++] = spec;
	return 0;
}

/* Does @step for both ends of each latency point, and says which one failed. */
static int for_ends(struct run *r, const struct latency_spec *l, int (*step)(struct run *, const struct point_spec *, struct error *),
		    struct error *e)
{
	const struct point_spec *ends[] = {&l->begin, &l->end};

	for (size_t i = 0; i < 2; i++) {
		int err = step(r, ends[i], e);

		if (err < 0) {
			latency_spec_reword(l, ends[i], e);
			return err;
		}
	}
	return 0;
}

int run_check_latencies(struct run *r, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < r->options.n_latencies && err == 0; i++)
		err = for_ends(r, &r->options.latencies[i], run_check_point, e);
	return err;
}

int run_add_latencies(struct run *r, struct error *e)
{
	for (size_t i = 0; i < r->options.n_latencies; i++) {
		const struct latency_spec *l = &r->options.latencies[i];
		int err = for_ends(r, l, run_add_point, e);

		if (err == 0)
			err = session_pair_points(r->session, l->begin_argument, l->end_argument, e);
		if (err < 0)
			return err;
	}
	return 0;
}
