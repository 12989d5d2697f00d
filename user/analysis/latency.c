// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/latency.h"

#include "analysis/fit.h"
#include "analysis/histogram.h"
#include "analysis/line.h"
#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>

/* A percentile has an interval if at least so many intervals lie beyond it: the bootstrap knows
 * nothing of a tail that it has not seen. */
#define LEAST_BEYOND 5
/* A curve takes this many experiments, of two speedups at least. */
#define LEAST_EXPERIMENTS 4
/* A cell stands for a speedup that is this near (as in the report's tables). */
#define NEAR 0.05

static const struct {
	const char *name;
	double quantile; /* NaN: none */
} statistics[N_LATENCY_STATISTICS] = {
	[LATENCY_MEAN] = {"mean", NAN},	   [LATENCY_P50] = {"p50", 0.5},
	[LATENCY_P90] = {"p90", 0.9},	   [LATENCY_P99] = {"p99", 0.99},
	[LATENCY_P999] = {"p99.9", 0.999}, [LATENCY_LITTLE] = {"little", NAN},
};

const char *latency_statistic_name(enum latency_statistic s)
{
	return statistics[s].name;
}

static void compute(const struct histogram_sums *s, double ret[N_LATENCY_STATISTICS])
{
	for (size_t i = 0; i < N_LATENCY_STATISTICS; i++)
		ret[i] = isnan(statistics[i].quantile)
				 ? NAN
				 : histogram_quantile(s, statistics[i].quantile);
	ret[LATENCY_MEAN] = s->num > 0 && s->den > 0 ? s->num / s->den : NAN;
	/* W = L / lambda: what is under way on average, over what leaves in a nanosecond. */
	ret[LATENCY_LITTLE] = s->flight > 0 && s->departures > 0 ? s->flight / s->departures : NAN;
}

/* Does the mean by Little's law say what the timed one does? What is under way is read twice an
 * experiment: of few experiments that is no mean. */
#define AGREES 0.1

static bool little_agrees(const double ns[N_LATENCY_STATISTICS])
{
	return fabs(ns[LATENCY_LITTLE] / ns[LATENCY_MEAN] - 1) <= AGREES;
}

/* Has statistic @i of so many intervals enough of them to be sure of anything? */
static bool enough(size_t i, double intervals)
{
	return isnan(statistics[i].quantile) ||
	       intervals * (1 - statistics[i].quantile) >= LEAST_BEYOND;
}

struct latency_base *latency_base_make(const struct observation *obs, size_t n, struct rng *rng)
{
	_cleanup_(histogram_blocks_free) struct histogram_blocks blocks =
		histogram_blocks_make(obs, n);
	_cleanup_free_ struct histogram_sums *sums = xcalloc(1, sizeof(*sums));
	struct latency_base *base = xcalloc(1, sizeof(*base));

	for (size_t i = 0; i < blocks.n; i++)
		histogram_add(sums, &blocks, i);
	compute(sums, base->ns);
	base->experiments = n;
	base->intervals = sums->count;
	for (size_t i = 0; i < LATENCY_DRAWS; i++) {
		histogram_clear(sums);
		for (size_t j = 0; j < blocks.n; j++)
			histogram_add(sums, &blocks, rng_below(rng, blocks.n));
		compute(sums, base->draws[i]);
	}
	return base;
}

static double change(double ns, double base)
{
	return base > 0 ? 1 - ns / base : NAN;
}

/* The 95 % interval of one cell's effect: the bootstrap's percentiles, but never narrower than
 * Student's t makes its deviation (percentiles of few experiments are too narrow; Hesterberg,
 * American Statistician 69, 2015). */
static void cell_interval(const struct latency_base *own, const struct latency_base *base, size_t i,
			  struct analysis_change *c)
{
	double v[LATENCY_DRAWS], half,
		df = fmin((double)own->experiments, (double)base->experiments) - 1;
	size_t got = 0;

	c->low = c->high = NAN;
	if (isnan(c->effect) || !(df > 0))
		return;
	for (size_t k = 0; k < LATENCY_DRAWS; k++) {
		v[got] = change(own->draws[k][i], base->draws[k][i]);
		got += isfinite(v[got]);
	}
	if (got <= LATENCY_DRAWS / 2)
		return;
	half = stats_t_quantile(df) * stats_deviation(v, got) * sqrt((df + 1) / df);
	c->low = fmin(c->effect - half, stats_quantile(v, got, 0.025));
	c->high = fmax(c->effect + half, stats_quantile(v, got, 0.975));
}

static void make_cell(const struct observation *obs, size_t n, unsigned int key,
		      const struct latency_base *base, struct rng *rng,
		      struct analysis_latency_cell *cell)
{
	_cleanup_free_ struct latency_base *own = latency_base_make(obs, n, rng);

	*cell = (struct analysis_latency_cell){
		.speedup = key / 1000.0, .experiments = n, .intervals = own->intervals};
	for (size_t i = 0; i < N_LATENCY_STATISTICS; i++) {
		struct analysis_change *c = &cell->change[i];

		cell->ns[i] = own->ns[i];
		*c = (struct analysis_change){change(own->ns[i], base->ns[i]), NAN, NAN};
		if (enough(i, fmin(own->intervals, base->intervals)))
			cell_interval(own, base, i, c);
	}
}

/* The effects of all cells of one draw, one curve for each statistic. @sums: one for each cell. */
static void fit_draw(const struct histogram_sums *sums, const double *speedups, size_t n_cells,
		     const double base[N_LATENCY_STATISTICS], struct fit ret[N_LATENCY_STATISTICS])
{
	struct fit_point points[ANALYSIS_MAX_SPEEDUPS];
	double ns[ANALYSIS_MAX_SPEEDUPS][N_LATENCY_STATISTICS];

	for (size_t c = 0; c < n_cells; c++)
		compute(&sums[c], ns[c]);
	for (size_t i = 0; i < N_LATENCY_STATISTICS; i++) {
		size_t n = 0;

		for (size_t c = 0; c < n_cells; c++) {
			points[n] = (struct fit_point){speedups[c], change(ns[c][i], base[i]),
						       sums[c].den};
			n += isfinite(points[n].effect) && points[n].weight > 0;
		}
		ret[i] = n ? fit_curve(points, n, true) : (struct fit){NAN, NAN, NAN, 0};
	}
}

struct curve_draws {
	double at[N_LATENCY_STATISTICS][ANALYSIS_CURVE_POINTS][LATENCY_DRAWS];
	size_t n[N_LATENCY_STATISTICS];
};

static void keep_draw(const struct fit fits[N_LATENCY_STATISTICS], struct curve_draws *d)
{
	for (size_t i = 0; i < N_LATENCY_STATISTICS; i++) {
		if (isnan(fits[i].slope))
			continue;
		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
			d->at[i][k][d->n[i]] = fit_at(&fits[i], analysis_curve_speedups[k]);
		d->n[i]++;
	}
}

static void conclude(const struct fit fits[N_LATENCY_STATISTICS], const struct curve_draws *d,
		     size_t n, double intervals, struct analysis_latency *l)
{
	double least = l->cells[0].speedup, most = l->cells[l->n_cells - 1].speedup;

	for (size_t i = 0; i < N_LATENCY_STATISTICS; i++) {
		double df = (double)n - (double)fits[i].parameters,
		       widen = df > 0 ? stats_t_quantile(df) * sqrt((double)n / df) : NAN;

		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
			double s = analysis_curve_speedups[k],
			       half = widen * stats_deviation(d->at[i][k], d->n[i]);

			if (isnan(fits[i].slope) || s < least - NEAR || s > most + NEAR ||
			    d->n[i] <= LATENCY_DRAWS / 2 || !enough(i, intervals))
				continue;
			l->at[i][k] = analysis_around(fit_at(&fits[i], s), half);
		}
	}
}

/* A curve for each statistic through the cells. Experiments are drawn from the whole line: a cell
 * of a fine grid has one or two, which have no spread of their own. */
static void make_curves(const struct observation *obs, size_t n, unsigned int step,
			const struct latency_base *base, struct rng *rng,
			struct analysis_latency *l)
{
	_cleanup_(histogram_blocks_free) struct histogram_blocks blocks =
		histogram_blocks_make(obs, n);
	_cleanup_free_ struct histogram_sums *sums = xcalloc(l->n_cells, sizeof(*sums));
	_cleanup_free_ struct curve_draws *d = xcalloc(1, sizeof(*d));
	_cleanup_free_ size_t *cell_of = xcalloc(blocks.n + 1, sizeof(*cell_of));
	struct fit fits[N_LATENCY_STATISTICS], drawn[N_LATENCY_STATISTICS];
	double speedups[ANALYSIS_MAX_SPEEDUPS], seen = 0;

	for (size_t c = 0; c < l->n_cells; c++)
		speedups[c] = l->cells[c].speedup;
	for (size_t i = 0; i < blocks.n; i++) {
		double speedup = line_cell_key(blocks.list[i].key, step) / 1000.0;

		while (cell_of[i] + 1 < l->n_cells && speedups[cell_of[i]] < speedup - 1e-9)
			cell_of[i]++;
		histogram_add(&sums[cell_of[i]], &blocks, i);
	}
	for (size_t c = 0; c < l->n_cells; c++)
		seen += sums[c].count;
	fit_draw(sums, speedups, l->n_cells, base->ns, fits);
	for (size_t i = 0; i < LATENCY_DRAWS; i++) {
		for (size_t c = 0; c < l->n_cells; c++)
			histogram_clear(&sums[c]);
		for (size_t j = 0; j < blocks.n; j++) {
			size_t pick = rng_below(rng, blocks.n);

			histogram_add(&sums[cell_of[pick]], &blocks, pick);
		}
		fit_draw(sums, speedups, l->n_cells, base->draws[i], drawn);
		keep_draw(drawn, d);
	}
	conclude(fits, d, blocks.n, fmin(base->intervals, seen), l);
}

/* Where the experiments at just this speedup say otherwise than the curve, or as surely, or where
 * there is no curve. */
static void let_cells_speak(struct analysis_latency *l)
{
	for (size_t c = 0; c < l->n_cells; c++)
		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
			double off = fabs(l->cells[c].speedup - analysis_curve_speedups[k]);

			for (size_t i = 0; i < N_LATENCY_STATISTICS && off <= NEAR + 1e-9; i++) {
				const struct analysis_change *cell = &l->cells[c].change[i];
				struct analysis_change *at = &l->at[i][k];
				bool none = isnan(at->low);

				if (isnan(cell->effect) ||
				    (none && !isnan(at->effect) && off > 1e-9))
					continue;
				if (none || (off <= 1e-9 && line_cell_speaks(at, cell)))
					*at = *cell;
			}
		}
}

static void widen(struct analysis_latency *l, struct analysis_allowance allow)
{
	for (size_t i = 0; i < N_LATENCY_STATISTICS; i++) {
		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
			line_widen(allow, &l->at[i][k]);
		for (size_t c = 0; c < l->n_cells; c++)
			line_widen(allow, &l->cells[c].change[i]);
	}
}

void latency_scale(struct analysis_latency *l, size_t i, double factor)
{
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		change_scale(&l->at[i][k], factor);
	for (size_t c = 0; c < l->n_cells; c++)
		change_scale(&l->cells[c].change[i], factor);
}

/* From the line's own experiments to the whole run. A percentile of the whole run does not follow
 * from one of a part of it: none is told. */
static void scale_to_run(struct analysis_latency *l, double factor)
{
	for (size_t i = 0; factor != 1 && i < N_LATENCY_STATISTICS; i++)
		latency_scale(l, i, isnan(statistics[i].quantile) ? factor : NAN);
}

struct analysis_latency *latency_line(const struct observation *obs, size_t n, unsigned int step,
				      const struct latency_base *base,
				      struct analysis_allowance allow, struct rng *rng)
{
	struct analysis_latency *l = xcalloc(1, sizeof(*l));

	for (size_t i = 0; i < N_LATENCY_STATISTICS; i++)
		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
			l->at[i][k] = ANALYSIS_UNKNOWN;
	for (size_t i = 0, len; i < n && l->n_cells < ANALYSIS_MAX_SPEEDUPS; i += len) {
		unsigned int key = line_cell_key(obs[i].key, step);

		len = line_cell_length(obs + i, n - i, step);
		make_cell(obs + i, len, key, base, rng, &l->cells[l->n_cells++]);
	}
	if (n >= LEAST_EXPERIMENTS && l->n_cells >= 2)
		make_curves(obs, n, step, base, rng, l);
	let_cells_speak(l);
	l->little = little_agrees(base->ns);
	for (size_t c = 0; c < l->n_cells; c++)
		l->little &= little_agrees(l->cells[c].ns);
	if (!l->little)
		latency_scale(l, LATENCY_LITTLE, NAN);
	scale_to_run(l, allow.presence.factor);
	widen(l, allow);
	return l;
}

struct analysis_intervals *latency_point(const struct observation *obs, size_t n,
					 const struct latency_base *base)
{
	struct analysis_intervals *out = xcalloc(1, sizeof(*out));
	double time = 0, flight = 0;

	for (size_t i = 0; i < N_LATENCY_STATISTICS; i++)
		out->ns[i] = base->ns[i];
	out->little = little_agrees(base->ns);
	for (size_t i = 0; i < n; i++) {
		const struct profile_latency *l = obs[i].latency;

		out->intervals += obs[i].visits;
		out->unmatched += (double)l->unmatched;
		out->unended += (double)l->unended;
		out->crossed += (double)l->crossed;
		out->lost += (double)l->lost;
		out->distance_ns = fmax(out->distance_ns, obs[i].sampling_ns);
		flight += obs[i].flight * obs[i].duration;
		time += obs[i].duration;
	}
	out->in_flight = time > 0 ? flight / time : NAN;
	return out;
}
