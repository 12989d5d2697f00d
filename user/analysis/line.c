// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/line.h"

#include "analysis/curve.h"
#include "analysis/fidelity.h"
#include "analysis/permutation.h"
#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* How the experiments of a line and its baseline are read; see enum reading. */
static enum reading choose_reading(const struct point_context *ctx, const struct observation *a,
				   size_t n_a, const struct observation *b, size_t n_b)
{
	size_t n = n_a + n_b, few = 0, plenty = 0;

	if (!ctx->timed_pays || n == 0)
		return READ_WHOLE;
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = i < n_a ? &a[i] : &b[i - n_a];

		if (!o->timed && !o->few)
			return READ_WHOLE;
		few += o->few;
		plenty += o->plenty;
	}
	return 10 * few <= n && 2 * plenty >= n ? READ_TIMED : READ_WHOLE;
}

/* Adds one cell to the comparison of the two readings. Experiments without a span are the same in
 * both: they would only hide the difference. */
static void compare_readings(const struct observation *cell, size_t n, struct observation *scratch,
			     struct noise compared[N_READINGS])
{
	size_t spans = 0;

	for (size_t i = 0; i < n; i++)
		if (cell[i].timed)
			scratch[spans++] = cell[i];
	for (int how = 0; how < N_READINGS; how++) {
		struct group g = group_make(scratch, spans, how);

		noise_add(&compared[how], &g);
	}
}

/* Do the 0 % periods of the lines differ by more than their noise? Cochran's Q over lines with
 * enough of them, all other lines together being one more. */
static void test_pooling(struct point_context *ctx)
{
	_cleanup_free_ struct observation *rest = xcalloc(ctx->n_zeros + 1, sizeof(*rest));
	_cleanup_free_ struct group *groups = xcalloc(ctx->n_zeros + 1, sizeof(*groups));
	enum reading how = choose_reading(ctx, ctx->zeros, ctx->n_zeros, NULL, 0);
	struct noise noise = {0};
	double sum_w = 0, sum = 0, q = 0;
	size_t n_rest = 0, k = 0;

	for (size_t i = 0, len; i < ctx->n_zeros; i += len) {
		len = line_length(ctx->zeros + i, ctx->n_zeros - i);
		if (len >= LINE_MIN_OWN_BASELINE) {
			groups[k++] = group_make(ctx->zeros + i, len, how);
		} else {
			memcpy(rest + n_rest, ctx->zeros + i, len * sizeof(*rest));
			n_rest += len;
		}
	}
	if (n_rest >= LINE_MIN_OWN_BASELINE)
		groups[k++] = group_make(rest, n_rest, how);
	ctx->pooled = true;
	if (k < 2)
		return;
	for (size_t i = 0; i < k; i++)
		noise_add(&noise, &groups[i]);
	noise_finish(&noise);
	for (size_t i = 0; i < k; i++) {
		sum_w += (double)groups[i].n;
		sum += (double)groups[i].n * log(groups[i].period);
	}
	for (size_t i = 0; i < k; i++) {
		double d = log(groups[i].period) - sum / sum_w;

		q += (double)groups[i].n * d * d;
	}
	/* Negated, so that a line without any visit counts as different. The last term forgives
	 * rounding where there is no noise. */
	ctx->pooled = q <= noise.variance * stats_chi2_80((double)(k - 1)) + 1e-18;
}

/* Of what is left of a visit when a line is nearly all of it, and is gone, everything is a large
 * share: that says nothing of other speedups. */
#define LITTLE_LEFT 0.25

void point_context_init(struct point_context *ctx, const struct observation *obs, size_t n,
			struct rng *rng)
{
	_cleanup_free_ struct observation *scratch = xcalloc(n + 1, sizeof(*scratch));
	double num[N_READINGS] = {0}, den[N_READINGS] = {0}; /* of those at 0 % */
	struct noise compared[N_READINGS] = {0};

	point_context_free(ctx);
	ctx->rng = rng;
	for (size_t i = 0; i < n; i++) {
		ctx->sampling_ns += obs[i].sampling_ns / (double)n;
		ctx->tick_ns += obs[i].tick_ns / (double)n;
		if (obs[i].key && (!ctx->least_key || obs[i].key < ctx->least_key))
			ctx->least_key = obs[i].key;
		if (obs[i].key > ctx->most_key)
			ctx->most_key = obs[i].key;
		for (int how = 0; obs[i].key == 0 && how < N_READINGS; how++) {
			num[how] += obs[i].num[how];
			den[how] += obs[i].den[how];
		}
	}
	ctx->zeros = xcalloc(n + 1, sizeof(*ctx->zeros));
	for (size_t i = 0, len; i < n; i += len) {
		len = line_cell_length(obs + i, n - i, 1);
		for (int how = 0; how < N_READINGS; how++) {
			struct group g = group_make(obs + i, len, how);

			if (!(g.period < LITTLE_LEFT * (num[how] / den[how])))
				noise_add(&ctx->noise[how], &g);
		}
		compare_readings(obs + i, len, scratch, compared);
		if (obs[i].key == 0) {
			memcpy(ctx->zeros + ctx->n_zeros, obs + i, len * sizeof(*obs));
			ctx->n_zeros += len;
		}
	}
	for (int how = 0; how < N_READINGS; how++) {
		noise_finish(&ctx->noise[how]);
		noise_finish(&compared[how]);
	}
	/* With nothing to compare (one experiment a cell) the one without edges it is. */
	ctx->timed_pays = isnan(compared[READ_WHOLE].variance) ||
			  compared[READ_TIMED].variance < compared[READ_WHOLE].variance / 2;
	test_pooling(ctx);
}

void point_context_free(struct point_context *ctx)
{
	free(ctx->zeros);
	for (int how = 0; how < N_READINGS; how++)
		free(ctx->pool_resampled[how]);
	*ctx = (struct point_context){0};
}

double point_placebo(struct point_context *ctx)
{
	return group_placebo(ctx->zeros, ctx->n_zeros,
			     choose_reading(ctx, ctx->zeros, ctx->n_zeros, NULL, 0), ctx->rng);
}

/* Fewer experiments at 0 % cannot tell bursts from chance. */
#define MIN_BURST_FREEDOM 7
/* Squared deviation of the visits of an experiment, relative to their mean: of n experiments, n /
 * (1 + this) count in an average. */
#define BURSTS 0.5

bool point_has_bursts(const struct point_context *ctx)
{
	struct noise noise = {0};
	double visits = 0;

	for (size_t i = 0, len; i < ctx->n_zeros; i += len) {
		struct group g;

		len = ctx->pooled ? ctx->n_zeros : line_length(ctx->zeros + i, ctx->n_zeros - i);
		g = group_make(ctx->zeros + i, len, READ_WHOLE);
		noise_add(&noise, &g);
		visits += g.visits;
	}
	/* Few visits scatter by their number, however evenly they come. */
	return noise.df >= MIN_BURST_FREEDOM &&
	       noise.variance / noise.df - (double)ctx->n_zeros / visits > BURSTS;
}

/* A line's baseline and how everything of the line is read. */
struct baseline {
	enum reading how;
	struct group g;
	const double *resampled; /* NULL: no experiments */
	double *own;		 /* to be freed */
	const struct observation *obs;
	size_t n;
};

static void baseline_free(struct baseline *b)
{
	free(b->own);
}

void line_baseline(const struct point_context *ctx, const struct observation *obs, size_t n,
		   const struct observation **ret, size_t *ret_n)
{
	size_t own = line_zeros(obs, n);
	bool pooled = ctx->pooled || own < LINE_MIN_OWN_BASELINE;

	*ret = pooled ? ctx->zeros : obs;
	*ret_n = pooled ? ctx->n_zeros : own;
}

static void make_baseline(struct point_context *ctx, const struct observation *obs, size_t n,
			  struct baseline *ret)
{
	size_t own = line_zeros(obs, n);
	double **at;

	line_baseline(ctx, obs, n, &ret->obs, &ret->n);
	ret->how = choose_reading(ctx, obs + own, n - own, ret->obs, ret->n);
	ret->g = group_make(ret->obs, ret->n, ret->how);
	if (ret->n == 0)
		return;
	at = ret->obs == ctx->zeros ? &ctx->pool_resampled[ret->how] : &ret->own;
	if (!*at) {
		*at = xcalloc(RESAMPLES, sizeof(**at));
		group_resample(ret->obs, ret->n, ret->how, ctx->rng, *at);
	}
	ret->resampled = *at;
}

/* The 95 % interval: the bootstrap's percentiles, but never narrower than Student's t makes it.
 * Percentiles of two or three experiments are far too narrow, and one experiment has none. */
static struct analysis_change change_of(struct point_context *ctx, const struct observation *obs,
					size_t n, const struct baseline *base,
					const struct effect *e)
{
	double periods[RESAMPLES];
	size_t got = 0;
	struct analysis_change ret = analysis_around(e->value, effect_half_width(e));

	if (isnan(ret.low) || !base->resampled)
		return (struct analysis_change){e->value, NAN, NAN};
	group_resample(obs, n, base->how, ctx->rng, periods);
	for (size_t i = 0; i < RESAMPLES; i++) {
		double v = 1 - periods[i] / base->resampled[i];

		if (isfinite(v))
			periods[got++] = v;
	}
	if (got > RESAMPLES / 2) {
		ret.low = fmin(ret.low, stats_quantile(periods, got, 0.025));
		ret.high = fmax(ret.high, stats_quantile(periods, got, 0.975));
	}
	return ret;
}

/* A straight line through 0 % and the quarters, weighted: the one number for "does more speedup
 * mean more effect". */
static struct effect trend(const struct effect *quarters, const double *speedups,
			   const struct baseline *base, const struct noise *noise)
{
	struct effect t = {NAN, NAN, 0};
	double sxx = 0, sxy = 0, sxr = 0, df0, v0 = group_variance(&base->g, noise, &df0);

	for (size_t i = 0; i < N_QUARTERS; i++) {
		double r = 1 - quarters[i].value, own, w;

		if (isnan(quarters[i].value) || isnan(quarters[i].se))
			continue;
		/* The baseline's share of the error is common to all quarters: taken out here, put
		 * back once below. */
		own = fmax(quarters[i].se * quarters[i].se - r * r * v0, 1e-12);
		w = speedups[i] / own;
		sxx += w * speedups[i];
		sxy += w * quarters[i].value;
		sxr += w * r;
		t.df = fmax(
			t.df,
			quarters[i].df); /* not the sum: baseline and pooled noise are in each */
	}
	if (!(sxx > 0))
		return t;
	t.value = sxy / sxx;
	t.se = sqrt(1 / sxx + (sxr / sxx) * (sxr / sxx) * v0);
	return t;
}

static void fill_quarters(const struct point_context *ctx, const struct observation *obs, size_t n,
			  const struct baseline *base, struct analysis_allowance allow,
			  struct evidence *ev)
{
	for (size_t q = 0; q < N_QUARTERS; q++)
		ev->quarters[q] = (struct effect){NAN, NAN, 0};
	for (size_t i = line_zeros(obs, n), len; i < n; i += len) {
		size_t q = ((size_t)obs[i].key - 1) * N_QUARTERS / 1000;
		struct group g;

		len = line_cell_length(obs + i, n - i, 1000 / N_QUARTERS);
		for (size_t j = i; j < i + len; j++)
			ev->speedups[q] += obs[j].key / 1000.0;
		ev->speedups[q] /= (double)len;
		ev->most_speedup = obs[i + len - 1].key / 1000.0;
		g = group_make(obs + i, len, base->how);
		ev->quarters[q] = effect_of(&g, &base->g, &ctx->noise[base->how]);
	}
	ev->trend = trend(ev->quarters, ev->speedups, base, &ctx->noise[base->how]);
	ev->chance = effect_chance(&ev->trend, fidelity_allowance(allow, 0));
	ev->sign = ev->trend.value;
}

unsigned int line_cell_step(const struct observation *obs, size_t n)
{
	size_t distinct = 1; /* the baseline's */

	for (size_t i = line_zeros(obs, n); i < n; i++)
		distinct += i == 0 || obs[i].key != obs[i - 1].key;
	return distinct <= ANALYSIS_MAX_SPEEDUPS ? 1 : 20;
}

static void fill_cells(struct point_context *ctx, const struct observation *obs, size_t n,
		       const struct baseline *base, struct analysis_line *line, struct evidence *ev)
{
	unsigned int step = line_cell_step(obs, n);
	double strongest[2] = {-1, -1}, least = NAN, least_sign = 0;
	size_t tried = 0;

	if (base->g.n)
		line->cells[line->n_cells++] = (struct analysis_cell){.experiments = base->g.n,
								      .visits = base->g.visits,
								      .period_ns = base->g.period};
	for (size_t i = line_zeros(obs, n), len; i < n; i += len) {
		struct analysis_cell *cell = &line->cells[line->n_cells];
		unsigned int key = line_cell_key(obs[i].key, step);
		struct effect e;
		struct group g;
		double chance, t;

		len = line_cell_length(obs + i, n - i, step);
		g = group_make(obs + i, len, base->how);
		e = effect_of(&g, &base->g, &ctx->noise[base->how]);
		*cell = (struct analysis_cell){.speedup = key / 1000.0,
					       .experiments = len,
					       .visits = g.visits,
					       .period_ns = g.period,
					       .change = change_of(ctx, obs + i, len, base, &e)};
		chance = effect_chance(&e, fidelity_allowance(line->allow, 0));
		if (!isnan(chance)) {
			tried++;
			if (!(least <= chance)) {
				least = chance;
				least_sign = e.value;
			}
			t = e.se > 0 ? fabs(e.value) / e.se : fabs(e.value) * 1e12;
			if (t > strongest[e.value > 0]) {
				strongest[e.value > 0] = t;
				ev->best[e.value > 0] = line->n_cells;
			}
		}
		line->n_cells++;
	}
	ev->best_any = strongest[1] >= strongest[0] ? ev->best[1] : ev->best[0];
	/* Two questions were asked, the trend and the strongest of `tried` cells: Bonferroni. */
	if (!isnan(least) && !(ev->chance <= least * (double)tried)) {
		ev->chance = least * (double)tried;
		ev->sign = least_sign;
	}
	ev->chance = fmin(1, 2 * ev->chance);
	if (isnan(least))
		ev->chance = NAN;
}

void line_widen(struct analysis_allowance allow, struct analysis_change *c)
{
	double allowance = fidelity_allowance(allow, c->effect);

	c->low = c->effect - hypot(c->effect - c->low, allowance);
	c->high = c->effect + hypot(c->high - c->effect, allowance);
}

static void allow_for_method(struct analysis_line *line)
{
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		line_widen(line->allow, &line->curve.at[k]);
	for (size_t i = 0; i < line->n_cells; i++)
		if (line->cells[i].speedup > 0)
			line_widen(line->allow, &line->cells[i].change);
}

bool line_cell_speaks(const struct analysis_change *curve, const struct analysis_change *cell)
{
	if (isnan(cell->low))
		return false;
	/* Of no effect and a small one, the curve tells the sign. */
	if (cell->effect * curve->effect < 0 && cell->low <= curve->effect &&
	    cell->high >= curve->effect)
		return false;
	return !(curve->effect >= cell->low && curve->effect <= cell->high) ||
	       !(curve->high - curve->low < cell->high - cell->low);
}

static void let_cells_speak(struct analysis_line *line)
{
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		for (size_t i = 0; i < line->n_cells; i++) {
			const struct analysis_cell *c = &line->cells[i];

			if (fabs(c->speedup - analysis_curve_speedups[k]) <= 1e-9 &&
			    line_cell_speaks(&line->curve.at[k], &c->change))
				line->curve.at[k] = c->change;
		}
}

void change_scale(struct analysis_change *c, double factor)
{
	c->effect *= factor;
	c->low *= factor;
	c->high *= factor;
}

/* From the line's own experiments to the whole run. The chance of "no effect" is the same for both.
 */
static void scale_to_run(struct analysis_line *line, struct evidence *ev)
{
	double factor = line->allow.presence.factor;

	if (factor == 1)
		return;
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		change_scale(&line->curve.at[k], factor);
	line->curve.knee_effect *= factor;
	line->curve.slope_after *= factor;
	for (size_t i = 0; i < line->n_cells; i++)
		change_scale(&line->cells[i].change, factor);
	for (size_t q = 0; q < N_QUARTERS; q++) {
		ev->quarters[q].value *= factor;
		ev->quarters[q].se *= factor;
	}
	ev->trend.value *= factor;
	ev->trend.se *= factor;
}

struct evidence line_analyse(struct point_context *ctx, const struct observation *obs, size_t n,
			     struct analysis_presence presence, struct analysis_line *line)
{
	_cleanup_(baseline_free) struct baseline base = {0};
	struct evidence ev = {.best = {SIZE_MAX, SIZE_MAX}, .best_any = SIZE_MAX};
	size_t zeros = line_zeros(obs, n);
	struct permutation p;

	make_baseline(ctx, obs, n, &base);
	line->experiments = n;
	line->foreign = 0;
	for (size_t i = 0; i < n; i++)
		line->foreign += obs[i].foreign / (double)n;
	line->allow = fidelity_allow(ctx->sampling_ns, base.g.period,
				     ctx->tick_ns / ctx->sampling_ns, line->wait != 0);
	line->allow.share = hypot(line->allow.share, ctx->speed_share);
	fill_quarters(ctx, obs, n, &base, line->allow, &ev);
	fill_cells(ctx, obs, n, &base, line, &ev);
	curve_make(obs + zeros, n - zeros, base.how,
		   &(struct curve_base){base.g.period, base.resampled}, ctx->rng, &line->curve);
	line->curve.run_least = ctx->least_key / 1000.0;
	line->curve.run_most = ctx->most_key / 1000.0;
	/* In phases a cell of few experiments can be one of another phase. */
	if (presence.factor == 1)
		let_cells_speak(line);
	/* Student's t holds where experiments scatter evenly, the permutation test holds whatever
	 * their tails: the verdict takes both, and one sign.
	 */
	if (!isnan(ev.chance)) {
		p = permutation_test(obs + zeros, n - zeros, base.obs, base.n, base.how,
				     fidelity_allowance(line->allow, 0), *ctx->rng);
		ev.chance = p.chance;
		ev.sign = p.sign;
	}
	line->allow.presence = presence;
	scale_to_run(line, &ev);
	allow_for_method(line);
	return ev;
}
