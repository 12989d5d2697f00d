// SPDX-License-Identifier: BSD-2-Clause
/* --stop-if: looks whether the program, or the machine, is to be left alone. */
#include "cli/run/run.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/options/stop_spec.h"
#include "shared/histogram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_NS NSEC_PER_SEC
#define LEAST_INTERVALS 20 /* of an experiment: fewer say nothing of a percentile */

static double load_now(void)
{
	double load[1];

	return getloadavg(load, 1) == 1 ? load[0] : NAN;
}

static double pressure_now(const char *resource)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];
	double percent;

	(void)snprintf(path, sizeof(path), "/proc/pressure/%s", resource);
	f = fopen(path, "re");
	return f && fscanf(f, "some avg10=%lf", &percent) == 1 ? percent : NAN;
}

/* Of one experiment's intervals; in virtual time, so without what pauses made longer. NaN: too few.
 */
static double latency_of(const struct profile_latency *l, double quantile)
{
	double n = 0, seen = 0;

	for (size_t i = 0; i < l->n_buckets; i++)
		n += (double)l->buckets[i].count;
	if (n < LEAST_INTERVALS)
		return NAN;
	if (quantile < 0)
		return (double)l->sum_ns / n;
	for (size_t i = 0; i < l->n_buckets; i++) {
		seen += (double)l->buckets[i].count;
		if (seen >= quantile * n)
			return (double)histogram_low(l->buckets[i].bucket);
	}
	return NAN;
}

static void say(struct run *r, const struct stop_spec *s, double is)
{
	if (s->kind == STOP_LATENCY)
		(void)log_error("experiments end, since --stop-if '%s' holds: it is %.3g ms",
				s->text, is / 1e6);
	else
		(void)log_error("experiments end, since --stop-if '%s' holds: it is %.3g", s->text,
				is);
	r->stop_if.holds = true;
}

void run_stop_if_experiment(struct run *r, const struct profile_point *points, size_t n_points)
{
	const struct run_options *o = &r->options;

	for (size_t i = 0; i < o->n_stops && !r->stop_if.holds; i++)
		for (size_t k = 0; k < n_points; k++) {
			const struct stop_spec *s = &o->stops[i];
			double is;

			if (s->kind != STOP_LATENCY || !points[k].latency ||
			    strcmp(points[k].name, s->name) != 0)
				continue;
			is = latency_of(points[k].latency, s->quantile);
			if (is > s->bound) {
				say(r, s, is);
				break;
			}
		}
}

bool run_stop_if(struct run *r, uint64_t now)
{
	const struct run_options *o = &r->options;

	if (r->stop_if.holds)
		return true;
	if (!o->n_stops || now < r->stop_if.next_ns)
		return false;
	r->stop_if.next_ns = now + EVERY_NS;
	for (size_t i = 0; i < o->n_stops && !r->stop_if.holds; i++) {
		const struct stop_spec *s = &o->stops[i];
		double is = s->kind == STOP_LOAD       ? load_now()
			    : s->kind == STOP_PSI      ? pressure_now(s->name)
			    : s->kind == STOP_RESTARTS ? (double)r->stop_if.restarts
						       : NAN;

		if (is > s->bound)
			say(r, s, is);
	}
	return r->stop_if.holds;
}
