// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/certainty.h"

#include "analysis/fidelity.h"
#include "analysis/slopes.h"

#include <math.h>
#include <string.h>

#define AT_50 1
/* Noise below this share of the method's own error widens an interval by no more than an eighth. */
#define NOISE_AT_FLOOR 0.5
/* An interval of few experiments is itself not much more than a guess. */
#define MIN_EXPERIMENTS 12

static bool is_asked(const struct analysis_point *point, const struct analysis_line *l)
{
	bool known = analysis_slopes_only(point) ? isfinite(l->slope.effect) : l->experiments > 0;

	return known && (isnan(l->share) || l->share >= CERTAINTY_SHARE);
}

/* By how much longer the run must be than so far for an interval that is +-@now wide, of which the
 * method's own error is @own, to be +-@half wide; 1: not at all. */
static double longer(double now, double own, double half, bool *ret_floor)
{
	double noise, target;

	if (now <= half)
		return 1;
	noise = sqrt(fmax(now * now - own * own, 0));
	target = sqrt(fmax(half * half - own * own, 0));
	if (target < NOISE_AT_FLOOR * own) {
		target = NOISE_AT_FLOOR * own;
		*ret_floor = noise <= target;
	}
	return noise <= target ? 1 : noise * noise / (target * target);
}

/* How many times as long as so far the run must be for this line; 1: it may end. */
static double factor_of(const struct analysis_line *l, bool slopes, double half, bool *ret_floor)
{
	double effect = l->curve.at[AT_50].effect, low = l->curve.at[AT_50].low,
	       high = l->curve.at[AT_50].high;
	struct analysis_allowance method = l->allow;
	double now = fmax(effect - low, high - effect);

	*ret_floor = false;
	if (slopes && isnan(l->slope.low))
		return NAN;
	if (slopes)
		return longer(l->slope.effect - l->slope.low, slopes_method_error(l->slope.effect),
			      half, ret_floor);
	/* More time takes away what is not known of the factor by which the effect was multiplied.
	 */
	method.presence.error = 0;
	if (isnan(now) || l->experiments < MIN_EXPERIMENTS)
		return NAN;
	return longer(now, fidelity_allowance(method, effect), half, ret_floor);
}

/* The names go with the analysis. */
static void show(const struct analysis_line *l, struct analysis_change at,
		 struct certainty_line *ret)
{
	size_t length = strlen(l->selected), skipped = 0;

	if (length >= sizeof(ret->selected))
		skipped = length - sizeof(ret->selected) + 1;
	*ret = (struct certainty_line){.effect = at.effect,
				       .low = at.low,
				       .high = at.high,
				       .verdict = l->experiments ? verdict_names[l->verdict] : ""};
	memcpy(ret->selected, l->selected + skipped, length - skipped + 1);
}

static void show_top(const struct analysis_point *point, struct certainty *c)
{
	for (size_t i = 0; i < point->n_lines && c->n_top < CERTAINTY_SHOWN; i++) {
		const struct analysis_line *l = &point->lines[i];
		struct analysis_change at = c->slopes	? l->slope
					    : c->shares ? l->in_class[PROFILE_CLASSES - 1]
							: l->curve.at[AT_50];

		if (!isnan(at.low))
			show(l, at, &c->top[c->n_top++]);
	}
}

struct certainty certainty_of(const struct analysis *a, double half, double elapsed_s)
{
	struct certainty c = {.missing_s = NAN};
	const struct analysis_point *point = analysis_visited(a);
	double longest = 1;
	size_t asked = 0;

	c.slopes = point && analysis_has_slopes(point);
	c.shares = point && !c.slopes && !analysis_was_tried(point) && analysis_has_classes(point);
	if (point)
		show_top(point, &c);
	if (!(half > 0))
		return c;
	for (size_t i = 0; i < a->n_points; i++)
		for (size_t j = 0, top = 0; j < a->points[i].n_lines && top < CERTAINTY_TOP; j++) {
			const struct analysis_line *l = &a->points[i].lines[j];
			bool at_floor;
			double factor;

			if (!a->points[i].visits || !is_asked(&a->points[i], l))
				continue;
			factor = factor_of(l, analysis_slopes_only(&a->points[i]), half, &at_floor);
			if (isnan(factor))
				return c;
			c.at_floor |= at_floor;
			longest = fmax(longest, factor);
			top++;
			asked++;
		}
	if (!asked)
		return c;
	c.missing_s = elapsed_s * (longest - 1);
	c.reached = longest <= 1;
	c.at_floor &= c.reached;
	return c;
}
