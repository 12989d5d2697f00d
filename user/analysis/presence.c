// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/presence.h"

#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>

/* Fewer experiments have no spread. */
#define MIN_EXPERIMENTS 4
/* What a factor can be off by beside chance: the beginning and the end of a run, in which there are
 * no experiments. */
#define SYSTEMATIC 0.03
/* Of an experiment that has nothing of the line's phase, how much it weighs. */
#define LEAST_PART 0.01

/* A quotient of sums over experiments, num / den, and its squared standard error relative to it
 * (NaN: not known). */
struct ratio {
	double num, den, variance;
};

/* The quotients that effects are computed from. */
enum quotient {
	VISIT,	 /* time per visit */
	FLIGHT,	 /* under way on average */
	DENSITY, /* samples per time that the program would have taken, where the line is faster */
};

/* How long it would have taken without the virtual speedup. @visit_ns: the time per visit at 0 %,
 * NaN if it is not known. */
static double original(const struct observation *o, double visit_ns)
{
	return o->key == 0 || isnan(visit_ns) ? o->duration : o->passed * visit_ns / o->scale;
}

/* Adds an observation to numerator and denominator of each quotient. */
static struct ratio term(const struct observation *o, enum quotient q, double visit_ns)
{
	/* At the mean pace: what a visit takes can differ from phase to phase (analysis/speed.h,
	 * analysis/drift.h). */
	if (q == VISIT)
		return (struct ratio){.num = o->duration * o->scale, .den = o->passed};
	if (q == FLIGHT)
		return (struct ratio){.num = o->flight * o->duration, .den = o->duration};
	/* Effects rest on the experiments that make the line faster, each with its weight. */
	if (!o->key)
		return (struct ratio){0};
	return (struct ratio){.num = o->weight * o->selected_ns,
			      .den = o->weight * original(o, visit_ns)};
}

static struct ratio ratio_make(const struct observation *obs, size_t n, enum quotient q,
			       double visit_ns)
{
	struct ratio r = {0, 0, NAN};
	double residuals = 0;

	for (size_t i = 0; i < n; i++) {
		struct ratio t = term(&obs[i], q, visit_ns);

		r.num += t.num;
		r.den += t.den;
	}
	if (n < 2 || !(r.num > 0) || !(r.den > 0))
		return r;
	for (size_t i = 0; i < n; i++) {
		struct ratio t = term(&obs[i], q, visit_ns);
		double e = t.num - r.num / r.den * t.den;

		residuals += e * e;
	}
	r.variance = residuals / (r.num * r.num) * (double)n / (double)(n - 1);
	return r;
}

static double value(const struct ratio *r)
{
	return r->num > 0 && r->den > 0 ? r->num / r->den : NAN;
}

/* One line, as its experiments show it. */
struct own {
	struct ratio visit;   /* time per visit at 0 % */
	struct ratio density; /* where it is faster: its samples, by the time that they stand for,
				 per time that the program would have taken */
	struct ratio flight;  /* under way on average at 0 %; 1 for a throughput point */
	size_t experiments;   /* in which it is faster */
	double by_visits;     /* share of the time that rests on the number of visits */
	double samples, selected_ns, original_ns;
};

static struct own own_make(const struct point_context *ctx, const struct observation *obs, size_t n)
{
	struct own own = {0};
	const struct observation *base;
	size_t n_base;

	line_baseline(ctx, obs, n, &base, &n_base);
	own.visit = ratio_make(base, n_base, VISIT, NAN);
	own.flight = ratio_make(base, n_base, FLIGHT, NAN);
	own.density = ratio_make(obs, n, DENSITY, value(&own.visit));
	for (size_t i = 0; i < n; i++) {
		double took = original(&obs[i], value(&own.visit));

		own.experiments += obs[i].key != 0;
		own.selected_ns += obs[i].selected_ns;
		own.original_ns += took;
		own.samples += obs[i].selected_ns / fmax(obs[i].sampling_ns, 1);
		own.by_visits += obs[i].key ? took : 0;
	}
	own.by_visits /= own.original_ns;
	return own;
}

/* An experiment that begins in a phase of the line and ends in another one shows little of the
 * effect. By chance there are more of these at one speedup than at another, so each weighs by how
 * much of it was the line's. */
static void weigh(struct observation *obs, size_t n, const struct own *own)
{
	for (size_t i = 0; i < n; i++) {
		double part = obs[i].selected_ns / original(&obs[i], value(&own->visit)) /
			      value(&own->density);

		if (obs[i].key == 0 || !(part < 1))
			continue;
		part = fmax(part, LEAST_PART);
		obs[i].weight *= part;
		for (size_t how = 0; how < N_READINGS; how++) {
			obs[i].num[how] *= part;
			obs[i].den[how] *= part;
		}
	}
}

/* @line_ns of the line's samples in @run_ns, that the run would have taken; @flight: under way on
 * average in the whole run. */
static struct analysis_presence presence_of(const struct own *own, double line_ns, double run_ns,
					    double flight, double sampling_ns)
{
	struct analysis_presence p = {1, 1, 0};
	double share = line_ns / run_ns / value(&own->density), density = own->density.variance,
	       rest, error;

	if (own->experiments < MIN_EXPERIMENTS || isnan(density) || !(line_ns > 0) ||
	    !isfinite(share))
		return p;
	/* Few samples scatter by their number, however evenly the experiments share them. */
	density = fmax(density, 1 / fmax(own->samples, 1));
	if (own->by_visits > 0 && !isnan(own->visit.variance))
		density += own->by_visits * own->by_visits * own->visit.variance;
	rest = 1 / fmax(1, (line_ns - own->selected_ns) / fmax(sampling_ns, 1));
	/* The experiments are a part of the run: only the rest can differ from them. */
	error = stats_t_quantile((double)own->experiments - 1) * sqrt(density + rest) *
		fmax(0, 1 - own->original_ns / run_ns);
	if (!(fabs(log(share)) > hypot(error, SYSTEMATIC)))
		return p;
	p = (struct analysis_presence){share, share, error};
	/* Of the intervals of a latency point, those of the phase are the more, the more are under
	 * way there (Little's law). */
	if (value(&own->flight) > 0 && flight > 0) {
		p.factor *= value(&own->flight) / flight;
		p.error = hypot(p.error, isnan(own->flight.variance)
						 ? 0
						 : stats_t_quantile((double)own->experiments - 1) *
							   sqrt(own->flight.variance));
	}
	return p;
}

void presence_find(const struct point_context *ctx, struct observation *obs,
		   const struct line_place *places, size_t n_places, const struct run_presence *run,
		   struct analysis_presence *ret)
{
	struct ratio flight = ratio_make(ctx->zeros, ctx->n_zeros, FLIGHT, NAN);
	_cleanup_free_ struct own *own = xcalloc(n_places + 1, sizeof(*own));
	double run_ns = run->time_ns;

	for (size_t i = 0; i < n_places; i++) {
		const struct observation *line = obs + places[i].first;

		own[i] = own_make(ctx, line, places[i].n);
		for (size_t j = 0; j < places[i].n; j++)
			run_ns += original(&line[j], value(&own[i].visit)) - line[j].elapsed;
	}
	for (size_t i = 0; i < n_places; i++) {
		uint32_t line = obs[places[i].first].line;

		ret[i] = (struct analysis_presence){1, 1, 0};
		if (!(run->time_ns > 0 && run_ns > 0))
			continue;
		ret[i] = presence_of(&own[i], run->line_ns[line], run_ns, value(&flight),
				     ctx->sampling_ns);
		if (ret[i].factor == 1)
			continue;
		weigh(obs + places[i].first, places[i].n, &own[i]);
		own[i] = own_make(ctx, obs + places[i].first, places[i].n);
		ret[i] = presence_of(&own[i], run->line_ns[line], run_ns, value(&flight),
				     ctx->sampling_ns);
	}
}
