// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/validation.h"

#include "analysis/analysis.h"

#include <math.h>
#include <string.h>

/* An interval of the gap that is wider says nothing about the bound. */
#define WIDEST 0.05

static const struct analysis_line *find(const struct analysis_point *p, bool slowed)
{
	for (size_t i = 0; i < p->n_lines; i++)
		if ((strcmp(p->lines[i].selected, VALIDATION_SLOWED) == 0) == slowed)
			return &p->lines[i];
	return NULL;
}

/* The effect is one of less than no time: the noise of either side is independent of the other's.
 */
static struct validation_level compare(const struct analysis_cell *c,
				       const struct analysis_curve *curve)
{
	struct validation_level l = {
		.slowed = c->speedup,
		.measured = c->change.effect,
		.measured_half = (c->change.high - c->change.low) / 2,
		.predicted = -c->speedup * curve->slope.effect,
		.predicted_half = c->speedup * (curve->slope.high - curve->slope.low) / 2,
	};

	l.gap = l.measured - l.predicted;
	l.gap_half = hypot(l.measured_half, l.predicted_half);
	return l;
}

static void say(struct validation *v, enum validation_outcome outcome, const char *why)
{
	v->outcome = outcome;
	v->why = why;
}

/* Twice as slow, but surely not twice the effect? Then the program bends somewhere below 0. */
static bool bends(const struct validation *v)
{
	const struct validation_level *a = &v->levels[0], *b = &v->levels[v->n_levels - 1];
	double factor = b->slowed / a->slowed, off = b->measured - factor * a->measured;

	return fabs(off) > VALIDATION_BOUND + hypot(b->measured_half, factor * a->measured_half);
}

static void judge(struct validation *v, double elapsed_s)
{
	double widest = 0;
	bool apart = false, flat = true, loses = false;

	for (size_t i = 0; i < v->n_levels; i++) {
		const struct validation_level *l = &v->levels[i];

		if (isnan(l->gap_half)) {
			say(v, VALIDATION_UNDECIDED, "too few experiments with visits");
			return;
		}
		widest = fmax(widest, l->gap_half);
		apart |= fabs(l->gap) > VALIDATION_BOUND && fabs(l->gap) > l->gap_half;
		flat &= fabs(l->predicted) <= fmax(VALIDATION_BOUND, l->predicted_half);
		loses |= l->measured < -VALIDATION_BOUND - l->measured_half;
	}
	if (v->n_levels < 2) {
		say(v, VALIDATION_UNDECIDED, "too few experiments");
	} else if (apart && flat && loses) {
		say(v, VALIDATION_NOT_COMPARABLE,
		    "the line gains nothing by being faster and loses by being slower: its curve "
		    "has a knee at 0, or just below, and cannot be "
		    "continued; choose a line that gains");
	} else if (bends(v)) {
		say(v, VALIDATION_NOT_COMPARABLE,
		    "twice as slow is not twice the loss: the program bends below 0, where another "
		    "line takes over, and the curve cannot be "
		    "continued past that");
	} else if (apart) {
		say(v, VALIDATION_GAP, "the slowed line does not do what the curve says");
	} else if (widest > WIDEST) {
		say(v, VALIDATION_UNDECIDED, "the intervals are too wide");
		v->missing_s = elapsed_s * (widest * widest / (WIDEST * WIDEST) - 1);
	} else {
		say(v, VALIDATION_AGREES, "the slowed line does what the curve says");
	}
}

/* Was anything tried? A line that never runs has no effect, whatever the method is worth. */
static bool was_hit(const struct profile *p)
{
	for (size_t i = 0; i < p->n_experiments; i++)
		if (p->experiments[i].x.selected_samples)
			return true;
	return p->n_experiments == 0;
}

struct validation validation_make(const struct profile *p, uint64_t seed)
{
	const struct analysis_line *fast, *slow;
	const struct analysis_point *point;
	struct validation v = {.missing_s = NAN};
	struct analysis a;

	analyse(p, seed, &a);
	point = analysis_visited(&a);
	fast = point ? find(point, false) : NULL;
	slow = point ? find(point, true) : NULL;
	v.experiments = p->n_experiments;
	for (size_t i = 0; slow && fast && i < slow->n_cells && v.n_levels < VALIDATION_LEVELS; i++)
		if (slow->cells[i].speedup > 0)
			v.levels[v.n_levels++] = compare(&slow->cells[i], &fast->curve);
	judge(&v, a.elapsed_ns / 1e9);
	if (!was_hit(p))
		say(&v, VALIDATION_NOT_COMPARABLE,
		    "no sample fell into the line: nothing was tried");
	analysis_free(&a);
	return v;
}
