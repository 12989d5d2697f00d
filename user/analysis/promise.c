// SPDX-License-Identifier: BSD-2-Clause
/* What was predicted of a change, and what came of it. */
#include "analysis/compare.h"
#include "base/waits.h"

#include <math.h>
#include <string.h>

/* An interval of what was gained less what was predicted that is wider than both says nothing:
 * points, and of what was predicted. */
#define WIDEST_GAP 0.05
#define WIDEST_SHARE 0.25
/* Of the CPU time, so much must be other lines' to tell how fast the machine was. */
#define LEAST_OTHER 0.1

/* Between the quarters the curve is taken for straight, but for its knee. Of a line that no
 * experiment tried, its slope is all that is known of it. */
static struct analysis_change curve_at(const struct analysis_line *line, double speedup)
{
	struct analysis_change slope = line->slope, before = {0, 0, 0}, after, ret;
	double from = 0, to, share;
	const struct analysis_curve *c = &line->curve;

	if (!line->experiments)
		return (struct analysis_change){speedup * slope.effect, speedup * slope.low,
						speedup * slope.high};
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		after = analysis_shown(line, k);
		to = analysis_curve_speedups[k];
		if (isnan(after.effect))
			continue;
		if (c->knee > from && c->knee < to) {
			*(speedup <= c->knee ? &after : &before) =
				analysis_around(c->knee_effect, (after.high - after.low) / 2);
			*(speedup <= c->knee ? &to : &from) = c->knee;
		}
		if (speedup <= to + 1e-9) {
			share = (speedup - from) / (to - from);
			ret.effect = before.effect + share * (after.effect - before.effect);
			ret.low = before.low + share * (after.low - before.low);
			ret.high = before.high + share * (after.high - before.high);
			return ret;
		}
		before = after;
		from = to;
	}
	return ANALYSIS_UNKNOWN;
}

static bool is_called(const char *selected, const char *name)
{
	size_t n = strlen(selected), m = strlen(name);

	return m && n >= m && !strcmp(selected + n - m, name) &&
	       (n == m || selected[n - m - 1] == '/');
}

const struct analysis_line *compare_called(const struct analysis_point *point, const char *name)
{
	const struct analysis_line *found = NULL;

	for (size_t i = 0; i < point->n_lines; i++) {
		if (!is_called(point->lines[i].selected, name))
			continue;
		if (!strcmp(point->lines[i].selected, name))
			return &point->lines[i];
		if (found)
			return NULL;
		found = &point->lines[i];
	}
	return found;
}

/* The CPU time of a visit without that in @line, ns, and which part of the time it takes; NaN: not
 * known. */
static double other_time(const struct profile *p, const struct analysis_point *point,
			 const char *line, double *ret_part)
{
	const struct profile_samples *of_line = profile_find_samples(p, line);
	double executed = 0, elapsed = 0, visits = 0, all = 0, own;

	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_run_experiment *x = &p->experiments[i];

		for (size_t k = 0; k < x->n_points && x->x.speedup == 0 && !x->x.slowed; k++)
			if (x->points[k].kind == PROFILE_THROUGHPUT &&
			    strcmp(x->points[k].name, point->name) == 0) {
				executed += (double)x->x.executed_ns;
				elapsed += (double)x->x.elapsed;
				visits += (double)x->points[k].delta;
			}
	}
	for (size_t i = 0; i < p->n_samples; i++)
		all += wait_of(p->samples[i].location, NULL) ? 0 : (double)p->samples[i].ns;
	own = of_line ? (double)of_line->ns : 0;
	if (!(executed > 0) || !(visits > 0) || !(all > 0) || !(own > 0) ||
	    own > (1 - LEAST_OTHER) * all)
		return NAN;
	*ret_part = fmin(1, executed / elapsed);
	return executed / visits * (1 - own / all);
}

static double corrected(double gain, double slower)
{
	return 1 - (1 - gain) / slower;
}

/* Nothing but @line was changed, so what the CPU time of all other lines has changed by is the
 * machine's speed. Without it, what was gained. */
static struct analysis_change gained(const struct compare_point *p, const char *before,
				     const char *after, bool *ret_corrected)
{
	double part, part_after,
		slower = other_time(p->new, p->after, after, &part_after) /
			 other_time(p->old, p->before, before, &part);

	*ret_corrected = isfinite(slower) && slower > 0;
	if (!*ret_corrected)
		return p->gain;
	slower = pow(slower, (part + part_after) / 2);
	return (struct analysis_change){corrected(p->steady.effect, slower),
					corrected(p->steady.low, slower),
					corrected(p->steady.high, slower)};
}

/* What the line is called after the change. */
static const char *name_after(const struct compare_point *p, const struct analysis_line *before)
{
	for (size_t i = 0; i < p->n_lines; i++)
		if (p->lines[i].before == before)
			return p->lines[i].after->selected;
	return before->selected;
}

struct promise compare_promise(const struct compare_point *p, const char *line, double speedup)
{
	struct promise ret = {
		.predicted = {NAN, NAN, NAN}, .gained = p->gain, .gap = NAN, .gap_half = NAN};
	const struct analysis_line *found = compare_called(p->before, line);

	if (found) {
		ret.predicted = curve_at(found, speedup);
		ret.gained = gained(p, found->selected, name_after(p, found), &ret.corrected);
	}
	ret.gap = ret.gained.effect - ret.predicted.effect;
	ret.gap_half = hypot((ret.gained.high - ret.gained.low) / 2,
			     (ret.predicted.high - ret.predicted.low) / 2);
	if (isnan(ret.gap) || isnan(ret.gap_half))
		ret.outcome = PROMISE_UNKNOWN;
	else if (fabs(ret.gap) > ret.gap_half)
		ret.outcome = PROMISE_BROKEN;
	else
		ret.outcome =
			ret.gap_half > fmax(WIDEST_GAP, WIDEST_SHARE * fabs(ret.predicted.effect))
				? PROMISE_OPEN
				: PROMISE_CAME_TRUE;
	return ret;
}
