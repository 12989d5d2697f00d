// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/verdict.h"

#include "analysis/bound.h"
#include "analysis/curve.h"
#include "analysis/fidelity.h"
#include "analysis/forecast.h"
#include "analysis/latency.h"
#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

/* An effect is "none" if it surely lies within this. */
#define NO_EFFECT 0.03
/* Lines without any effect read 0 +- 0.6 points: a smaller one is the method's own error however
 * sure its sign. */
#define SYSTEMATIC 0.01
#define DISCOVERY_RATE 0.05
/* Shown as 0.0 %. */
#define ROUNDED_AWAY 0.0005

const struct undecided_words undecided_words[N_UNDECIDED] = {
	[UNDECIDED_DISTURBED] = {"undecided (disturbed)",
				 "most experiments were disturbed, repeat the run on a quiet "
				 "machine",
				 "Waits get longer where others have the CPUs, and an effect then "
				 "shows what they did as well as what the line is worth."},
	[UNDECIDED_BURSTS] = {"undecided (bursts)",
			      "visits come in bursts, choose a point that is passed evenly",
			      "The average of few large numbers and many small ones says little, "
			      "however wide its interval."},
	[UNDECIDED_LENT] =
		{"undecided (slept)",
		 "paused threads slept while others waited for a CPU, use --pay spin or --pay hold",
		 "There were more threads than CPUs, and those that went on used the paused "
		 "threads' CPUs, as they would not in the faster "
		 "program. Effects can be off by any amount."},
	[UNDECIDED_QUOTA] =
		{"not measurable (quota)",
		 "the control group used up its CPU quota, run it with a larger quota or none",
		 "A pause on a CPU is charged to the quota as well, and a thread that sleeps its "
		 "pause leaves its quota to the others. "
		 "Effects can be "
		 "off by any amount. While the quota is what limits the program, a line is worth "
		 "its share of the CPU time."},
	[UNDECIDED_INJECT] = {"not measurable without --inject",
			      "paused threads that should have slept were held on CPUs that others "
			      "wanted, use --inject=auto",
			      "What waits for such a CPU stands still meanwhile, so that effects "
			      "come out far too small. A signal handler in the process lets "
			      "its threads sleep. Or leave two CPUs free."},
	[UNDECIDED_HELD] = {"undecided (held)",
			    "paused threads that should have slept were held on CPUs that others "
			    "wanted, leave two CPUs free",
			    "What waits for such a CPU stands still meanwhile, so that effects "
			    "come out far too small. The threads have no signal handler that "
			    "would let them sleep: their program uses the signal itself, or it "
			    "filters system calls."},
	[UNDECIDED_ABSENT] = {"not seen", "no such wait ended in its experiments, try --what all",
			      "Threads do not wait for that there; or what ends the waits is a "
			      "thread of the program itself: then that thread's "
			      "lines are what to try."},
	[UNDECIDED_DEPENDS] = {"not measurable",
			       "its waits depend on the program, try the lines that run, or "
			       "--follow what it waits for",
			       "The waits got longer in the experiments that made them count as "
			       "shorter: what ends them waits for this program in turn, such as a "
			       "proxy between two of its threads. With such a process in scope, "
			       "what that does counts instead."},
};

const char *const verdict_names[] = {
	[VERDICT_UNDECIDED] = "undecided",
	[VERDICT_HELPS] = "helps",
	[VERDICT_NO_EFFECT] = "no effect",
	[VERDICT_HURTS] = "hurts",
};

/* Speedups are what the run had on its grid: the nearest one stands for the column if it is this
 * near. */
#define NEAR 0.05

static const struct analysis_cell *cell_near(const struct analysis_line *line, double speedup)
{
	const struct analysis_cell *best = NULL;

	for (size_t i = 0; i < line->n_cells; i++) {
		const struct analysis_cell *c = &line->cells[i];

		if (c->speedup > 0 && fabs(c->speedup - speedup) <= NEAR + 1e-9 &&
		    (!best || fabs(c->speedup - speedup) < fabs(best->speedup - speedup)))
			best = c;
	}
	return best;
}

struct analysis_change analysis_shown(const struct analysis_line *line, size_t i)
{
	const struct analysis_curve *c = &line->curve;
	double speedup = analysis_curve_speedups[i];
	const struct analysis_cell *cell = cell_near(line, speedup);
	bool measured = speedup >= c->run_least - NEAR && speedup <= c->run_most + NEAR;

	if (isfinite(c->at[i].low) && (measured || cell))
		return c->at[i];
	return cell ? cell->change : ANALYSIS_UNKNOWN;
}

bool analysis_told(const struct analysis_line *line, size_t first,
		   bool (*fits)(struct analysis_change c, enum verdict v), enum verdict v,
		   double *ret_percent, struct analysis_change *ret)
{
	size_t shown = 0;

	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		size_t i = (first + k) % ANALYSIS_CURVE_POINTS;

		*ret = analysis_shown(line, i);
		*ret_percent = 100 * analysis_curve_speedups[i];
		if (fits(*ret, v))
			return true;
		shown += isfinite(ret->effect);
	}
	for (size_t i = 0; shown == 0 && i < line->n_cells; i++) {
		*ret = line->cells[i].change;
		*ret_percent = 100 * line->cells[i].speedup;
		if (line->cells[i].speedup > 0 && fits(*ret, v))
			return true;
	}
	return false;
}

/* Shown as effect +- half of the interval's width: both that and the interval itself leave out 0.
 * False without an interval. */
static bool excludes_zero(struct analysis_change c, enum verdict v)
{
	double sign = v == VERDICT_HELPS ? 1 : -1;

	return sign * c.effect > (c.high - c.low) / 2 && sign * c.low > 0 && sign * c.high > 0;
}

/* Every quarter that was measured surely within +-3 points, and no interval that is shown outside
 * of them. */
static bool is_flat(const struct analysis_line *line, const struct evidence *ev)
{
	size_t measured = 0;

	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct analysis_change c = analysis_shown(line, k);

		if (c.low > NO_EFFECT || c.high < -NO_EFFECT)
			return false;
	}
	for (size_t i = 0; i < N_QUARTERS; i++) {
		const struct effect *e = &ev->quarters[i];

		if (isnan(e->value))
			continue;
		if (!(fabs(e->value) + hypot(effect_half_width(e),
					     fidelity_allowance(line->allow, e->value)) <=
		      NO_EFFECT) &&
		    !bound_within(line, e, ev->speedups[i], NO_EFFECT))
			return false;
		measured++;
	}
	return measured > 0;
}

/* What the verdict speaks of: the surest point of the curve, if there is one, of the verdict's
 * sign; else the cell. */
static void tell_best(struct analysis_line *line, size_t cell)
{
	double surest = 0;

	line->best_effect = cell != SIZE_MAX ? line->cells[cell].change.effect : NAN;
	line->best_speedup = cell != SIZE_MAX ? line->cells[cell].speedup : NAN;
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		double effect = line->curve.at[k].effect, half = line->curve.at[k].high - effect;
		bool measured = analysis_curve_speedups[k] >= line->curve.least_speedup &&
				analysis_curve_speedups[k] <= line->curve.most_speedup;

		if (!measured || isnan(half) || effect * line->best_effect < 0 ||
		    !(fabs(effect) > surest * half))
			continue;
		surest = half > 0 ? fabs(effect) / half : INFINITY;
		line->best_effect = effect;
		line->best_speedup = analysis_curve_speedups[k];
	}
}

/* Who reads that a line helps must not see that it hurts. */
static bool has_other_sign(const struct analysis_line *line, enum verdict v)
{
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		if ((v == VERDICT_HELPS ? -1 : 1) * analysis_shown(line, k).effect > ROUNDED_AWAY)
			return true;
	return false;
}

static void decide(struct analysis_line *line, const struct evidence *ev, double limit,
		   const struct forecast_bars *bars, double run_s)
{
	enum verdict found = ev->sign > 0 ? VERDICT_HELPS : VERDICT_HURTS;
	size_t best = ev->best_any, cell = ev->best[ev->sign > 0];
	struct analysis_change shown;
	double percent;

	line->verdict = VERDICT_UNDECIDED;
	line->missing_s = NAN;
	/* An interval that the reader sees must say so, too. */
	if (ev->chance <= limit && cell != SIZE_MAX &&
	    fabs(line->cells[cell].change.effect) >= SYSTEMATIC &&
	    analysis_told(line, 0, excludes_zero, found, &percent, &shown) &&
	    !has_other_sign(line, found)) {
		best = cell;
		line->verdict = found;
	}
	if (line->verdict == VERDICT_UNDECIDED) {
		if (is_flat(line, ev))
			line->verdict = VERDICT_NO_EFFECT;
		else if (run_s > 0)
			line->missing_s = run_s * (forecast_factor(line, ev, bars) - 1);
	}
	tell_best(line, best);
}

/* The best that is sure. Of the curve, which rests on all experiments: the luckiest of twenty cells
 * is often just lucky. */
static double best_low(const struct analysis_line *line)
{
	double best = NAN;

	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		best = fmax(best, line->curve.at[k].low); /* a NaN loses against a number */
	if (!isnan(best))
		return best;
	for (size_t i = 0; i < line->n_cells; i++)
		if (line->cells[i].speedup == line->best_speedup)
			return line->cells[i].change.low;
	return NAN;
}

static bool is_decided(const struct analysis_line *line)
{
	return line->verdict != VERDICT_UNDECIDED;
}

static double sure_gain(const struct analysis_line *line)
{
	double low = best_low(line);

	if (!is_decided(line))
		low = fmax(low, line->slope.low); /* a NaN loses here, too */
	return low > 0 ? low : 0;
}

static double sure_loss(const struct analysis_line *line)
{
	return line->verdict == VERDICT_HURTS && line->best_effect < 0 ? -line->best_effect : 0;
}

static double likely_gain(const struct analysis_line *line)
{
	double effect =
		is_decided(line) ? line->best_effect : fmax(line->best_effect, line->slope.effect);

	if (isnan(effect))
		effect = line->in_class[PROFILE_CLASSES - 1].effect;
	return isnan(effect) ? -INFINITY : effect;
}

/* After what is to be gained by share, so that the order is a fixed one. */
static int by_gain(const void *a, const void *b)
{
	const struct analysis_line *x = a, *y = b;
	const double keys[][2] = {
		{sure_gain(x), sure_gain(y)},
		{sure_loss(x), sure_loss(y)},
		{likely_gain(x), likely_gain(y)},
		{isnan(x->share) ? -1 : x->share, isnan(y->share) ? -1 : y->share},
		{(double)x->experiments, (double)y->experiments}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i][0] != keys[i][1])
			return sort_order(keys[i][1], keys[i][0]);
	return strcmp(x->selected, y->selected);
}

void verdicts_sort(struct analysis_line *lines, size_t n)
{
	sort_array(lines, n, by_gain);
}

/* What is known to be wrong is not told as if it were right. */
static void forget_effects(struct analysis_line *line)
{
	struct analysis_latency *l = line->latency;

	for (size_t i = 0; i < line->n_cells; i++)
		line->cells[i].change = ANALYSIS_UNKNOWN;
	curve_forget(&line->curve);
	for (size_t k = 0; l && k < N_LATENCY_STATISTICS; k++)
		latency_scale(l, k, NAN);
	line->best_effect = line->best_speedup = NAN;
}

/* How many of @n lines have no effect: twice those whose p-value is above a half (Storey, A direct
 * approach to false discovery rates, 2002), less for few lines, and never all. */
static double none_of(size_t above, size_t n)
{
	return fmin(0.9, 2 * (double)above / (double)(n + 2));
}

void verdicts(struct analysis_line *lines, const struct evidence *evidence, size_t n,
	      enum undecided why, double run_s)
{
	_cleanup_free_ double *chances = xcalloc(n + 1, sizeof(*chances));
	size_t known = 0, found = 0, likely = 0;
	struct forecast_bars bars;
	double limit;

	for (size_t i = 0; i < n; i++)
		if (!isnan(evidence[i].chance))
			chances[known++] = evidence[i].chance;
	limit = stats_discovery_limit(chances, known, DISCOVERY_RATE);
	for (size_t i = 0; i < known; i++) {
		found += chances[i] <= limit;
		likely += chances[i] > 0.5;
	}
	bars = (struct forecast_bars){DISCOVERY_RATE * (double)(found + 1) / (double)known,
				      SYSTEMATIC, none_of(likely, known), NO_EFFECT};
	for (size_t i = 0; i < n; i++) {
		decide(&lines[i], &evidence[i], limit, &bars, run_s);
		if (lines[i].undecided == UNDECIDED_OPEN)
			lines[i].undecided = why;
		if (lines[i].undecided != UNDECIDED_OPEN) {
			lines[i].verdict = VERDICT_UNDECIDED;
			lines[i].missing_s = NAN;
		}
		if (lines[i].held > 0 || lines[i].undecided >= UNDECIDED_ABSENT ||
		    lines[i].undecided == UNDECIDED_QUOTA)
			forget_effects(&lines[i]);
	}
}
