// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/analysis.h"

#include "analysis/bound.h"
#include "analysis/collect.h"
#include "analysis/drift.h"
#include "analysis/fidelity.h"
#include "analysis/latency.h"
#include "analysis/line.h"
#include "analysis/presence.h"
#include "analysis/run_times.h"
#include "analysis/runs.h"
#include "analysis/slopes.h"
#include "analysis/speed.h"
#include "analysis/stats.h"
#include "analysis/verdict.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/waits.h"

#include <math.h>
#include <string.h>

/* Bound for hostile files. */
#define MAX_POINTS 128

const double analysis_curve_speedups[ANALYSIS_CURVE_POINTS] = {0.25, 0.5, 0.75, 1};

static int by_size(const void *a, const void *b)
{
	const struct line_place *x = a, *y = b;

	return sort_order(y->n, x->n) ?: sort_order(x->first, y->first);
}

static struct line_place *place_lines(const struct observation *obs, size_t n, size_t *ret_n)
{
	struct line_place *places = xcalloc(n + 1, sizeof(*places));
	size_t n_places = 0;

	for (size_t i = 0, len; i < n; i += len) {
		len = line_length(obs + i, n - i);
		places[n_places++] = (struct line_place){i, len};
	}
	qsort(places, n_places, sizeof(*places), by_size);
	*ret_n = n_places;
	return places;
}

/* The line's percentiles; the pool's baseline is made once. */
static void analyse_latency(const struct point_context *ctx, const struct observation *obs,
			    size_t n, struct latency_base *pool, struct analysis_line *line)
{
	size_t zeros = line_zeros(obs, n), n_base;
	_cleanup_free_ struct latency_base *own = NULL;
	const struct observation *base;

	line_baseline(ctx, obs, n, &base, &n_base);
	if (base != ctx->zeros)
		own = latency_base_make(base, n_base, ctx->rng);
	line->latency = latency_line(obs + zeros, n - zeros, line_cell_step(obs, n),
				     own ? own : pool, line->allow, ctx->rng);
}

/* Percentiles of a latency point that measured, and of at most @max_lines of its lines. */
static void analyse_intervals(const struct point_context *ctx, const struct observation *obs,
			      size_t n, const struct line_place *places, size_t max_lines,
			      struct analysis_point *point)
{
	_cleanup_free_ struct latency_base *pool =
		latency_base_make(ctx->zeros, ctx->n_zeros, ctx->rng);

	point->intervals = latency_point(obs, n, pool);
	for (size_t i = 0; i < point->n_lines && i < max_lines && i < LATENCY_LINES_OF_POINT; i++)
		analyse_latency(ctx, obs + places[i].first, places[i].n, pool, &point->lines[i]);
}

/* Machines and programs do not go at one pace. Where the program has phases, its lines have
 * baselines of their own: what differs is drift only if the neighbours in time tell it better than
 * those do. */
static void take_out_what_differs(struct point_context *ctx, struct observation *obs, size_t n,
				  struct analysis_speed *speed)
{
	if (speed_remove(obs, n, speed))
		point_context_init(ctx, obs, n, ctx->rng);
	if (drift_remove(obs, n, ctx->pooled))
		point_context_init(ctx, obs, n, ctx->rng);
	ctx->speed_share = speed->share;
}

static void analyse_lines(struct point_context *ctx, struct observation *obs,
			  const struct line_place *places, const struct collection *c,
			  const struct run_info *run, struct analysis_point *point,
			  struct evidence *evidence)
{
	_cleanup_free_ struct analysis_presence *presence =
		xcalloc(point->n_lines + 1, sizeof(*presence));

	presence_find(ctx, obs, places, point->n_lines, &run->presence, presence);
	for (size_t i = 0; i < point->n_lines; i++) {
		struct analysis_line *line = &point->lines[i];
		uint32_t id = obs[places[i].first].line;

		line->selected = c->lines[id];
		line->function = run->lines[id].function;
		line->share = run->lines[id].share;
		line->held = run->lines[id].held;
		line->wait = wait_of(line->selected, NULL);
		line->undecided = run->lines[id].waits ? run->lines[id].waits
				  : line->held > 0     ? run->held
						       : UNDECIDED_OPEN;
		evidence[i] =
			line_analyse(ctx, obs + places[i].first, places[i].n, presence[i], line);
		line->most = NAN;
		if (point->kind == PROFILE_THROUGHPUT)
			bound_line(obs + places[i].first, places[i].n, line);
	}
}

static void analyse_point(struct collection *c, const struct collected_point *from,
			  const struct run_info *run, struct rng *rng, struct analysis_point *point)
{
	_cleanup_(point_context_free) struct point_context ctx = {0};
	struct observation *obs = c->obs + from->first;
	size_t n_lines = 0;
	_cleanup_free_ struct line_place *places = place_lines(obs, from->n, &n_lines);
	_cleanup_free_ struct evidence *evidence = NULL;
	enum undecided why = run->undecided;
	double visits = 0;

	point_context_init(&ctx, obs, from->n, rng);
	take_out_what_differs(&ctx, obs, from->n, &point->speed);
	point->speed.spins &= !run->alone;
	if (n_lines > run->max_lines)
		n_lines = run->max_lines;
	evidence = xcalloc(n_lines + 1, sizeof(*evidence));
	point->lines = xcalloc(n_lines + 1, sizeof(*point->lines));
	point->n_lines = n_lines;
	point->name = from->name;
	point->kind = from->kind;
	for (size_t i = 0; i < from->n; i++)
		visits += obs[i].visits;
	point->visits = visits < 0x1p63 ? (uint64_t)visits : UINT64_MAX;
	analyse_lines(&ctx, obs, places, c, run, point, evidence);
	if (from->measured)
		analyse_intervals(&ctx, obs, from->n, places, LATENCY_LINES / c->n_points, point);
	point->placebo = point_placebo(&ctx);
	if (why == UNDECIDED_OPEN && from->kind == PROFILE_THROUGHPUT && point_has_bursts(&ctx))
		why = UNDECIDED_BURSTS;
	verdicts(point->lines, evidence, n_lines, why, run->elapsed_s);
}

static void sum_fidelity(const struct profile *p, struct analysis *a)
{
	_cleanup_free_ double *late = xcalloc(p->n_experiments + 1, sizeof(*late));
	_cleanup_free_ uint64_t *settled = fidelity_settled_periods(p);
	double foreign = 0, stolen = 0;
	size_t n_late = 0;

	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_experiment *x = &p->experiments[i].x;
		double share = fidelity_share(x->foreign), taken = fidelity_share(x->stolen),
		       length = fidelity_length(x);
		int64_t imbalance = x->imbalance == INT64_MIN ? INT64_MAX
				    : x->imbalance < 0	      ? -x->imbalance
							      : x->imbalance;

		a->owed_ns += (double)x->owed;
		a->growth_ns += (double)x->growth;
#define SUM(kind, name, json) a->sums.name += (double)x->name;
#include "shared/sums.def"
#undef SUM
		a->elapsed_ns += length;
		foreign += share * length;
		stolen += taken * length;
		a->stolen_flagged += taken > ANALYSIS_STOLEN_FLAG;
		a->marked += fidelity_weight(x, settled[p->experiments[i].run]) < 1;
		a->foreign_flagged += share > ANALYSIS_FOREIGN_FLAG;
		a->disturbed += share > ANALYSIS_FOREIGN_FLAG || taken > ANALYSIS_STOLEN_FLAG;
		if (imbalance > a->imbalance_max)
			a->imbalance_max = imbalance;
		if (x->late)
			late[n_late++] = (double)x->late;
	}
	a->foreign = a->elapsed_ns > 0 ? foreign / a->elapsed_ns : 0;
	a->stolen = a->elapsed_ns > 0 ? stolen / a->elapsed_ns : 0;
	a->late_ns = n_late ? stats_quantile(late, n_late, 0.5) : 0;
}

bool analysis_disturbed(const struct profile *p, const struct analysis *a)
{
	return 2 * a->disturbed > p->n_experiments;
}

void analyse(const struct profile *p, uint64_t seed, struct analysis *ret)
{
	_cleanup_(collection_free) struct collection c = collect(p);
	_cleanup_(run_info_free) struct run_info run = {0};
	size_t n = c.n_points < MAX_POINTS ? c.n_points : MAX_POINTS;
	struct analysis a = {.points = xcalloc(n + 1, sizeof(*a.points)), .n_points = n};
	struct rng rng;

	sum_fidelity(p, &a);
	run_info_make(p, &c, n, a.elapsed_ns / 1e9, &run);
	if (run.undecided == UNDECIDED_OPEN && analysis_disturbed(p, &a))
		run.undecided = UNDECIDED_DISTURBED;
	rng_seed(&rng, seed);
	for (size_t i = 0; i < n; i++)
		analyse_point(&c, &c.points[i], &run, &rng, &a.points[i]);
	slopes_add(p, &a);
	run_times_of(p, &a.run_times);
	for (size_t i = 0; i < a.n_points; i++)
		verdicts_sort(a.points[i].lines, a.points[i].n_lines);
	*ret = a;
}

void analysis_free(struct analysis *a)
{
	for (size_t i = 0; i < a->n_points; i++) {
		for (size_t j = 0; j < a->points[i].n_lines; j++)
			free(a->points[i].lines[j].latency);
		free(a->points[i].intervals);
		free(a->points[i].lines);
	}
	free(a->points);
	for (size_t i = 0; i < a->n_texts; i++)
		free(a->texts[i]);
	free(a->texts);
	*a = (struct analysis){0};
}

const struct analysis_point *analysis_visited(const struct analysis *a)
{
	for (size_t i = 0; i < a->n_points; i++)
		if (a->points[i].visits)
			return &a->points[i];
	return NULL;
}

const struct profile_point *analysis_point_in(const struct profile_run_experiment *x,
					      const struct analysis_point *point)
{
	for (size_t i = 0; i < x->n_points; i++)
		if (x->points[i].kind == point->kind && x->points[i].name &&
		    strcmp(x->points[i].name, point->name) == 0)
			return &x->points[i];
	return NULL;
}
