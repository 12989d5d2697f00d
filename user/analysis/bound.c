// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/bound.h"

#include "analysis/fidelity.h"

#include <math.h>

/* Samples fall as chance has it: Poisson's 97.5 % bound, for few of them too. */
static double at_most(double samples)
{
	return samples + 2 * sqrt(samples) + 2;
}

static double bound_at(const struct analysis_line *line, double speedup)
{
	double most = line->most * speedup;

	return most + fidelity_allowance(line->allow, most);
}

static void draw_in(struct analysis_change *c, double bound)
{
	if (!(c->low <= bound && c->high >= -bound))
		return;
	c->low = fmax(c->low, -bound);
	c->high = fmin(c->high, bound);
	c->effect = fmax(-bound, fmin(c->effect, bound));
}

void bound_line(const struct observation *obs, size_t n, struct analysis_line *line)
{
	double ns = 0, samples = 0, of = 0;

	for (size_t i = 0; i < n; i++) {
		if (!(obs[i].sampling_ns > 0))
			return;
		ns += obs[i].selected_ns;
		samples += obs[i].selected_ns / obs[i].sampling_ns;
		of += obs[i].duration;
	}
	if (line->wait || !(samples > 0) || !(of > 0))
		return;
	line->most = ns / of * at_most(samples) / samples * line->allow.presence.factor;
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		draw_in(&line->curve.at[k], bound_at(line, analysis_curve_speedups[k]));
	for (size_t i = 0; i < line->n_cells; i++)
		draw_in(&line->cells[i].change, bound_at(line, line->cells[i].speedup));
}

bool bound_within(const struct analysis_line *line, const struct effect *e, double speedup,
		  double least)
{
	double bound = bound_at(line, speedup);

	return bound <= least && fabs(e->value) - effect_half_width(e) <= bound;
}
