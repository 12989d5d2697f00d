// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/compare.h"

#include "analysis/collect.h"
#include "analysis/fidelity.h"
#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "profile/source_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Neighbours in time are more alike than experiments that are far apart. So the scatter of a run's
 * time per visit is taken from this many parts of it. */
#define PARTS 8
/* What two runs of one program differ by beyond what they scatter inside, as a 95 % half-width, on
 * a machine that keeps its speed ... */
#define RUN_TO_RUN 0.01
#define FAMILY_RATE 0.05

/* A mean of logarithms, so that two of them are compared by their quotient. */
struct pace {
	double log_ns, variance, df;
	double wander; /* ... and its variance from one time to another on one that does not: of the
			  parts of a run, beyond what their experiments scatter */
};

/* What an experiment at 0 % adds to a point's time and visits, by what it can be trusted. False:
 * nothing. */
static bool time_of(const struct profile_run_experiment *x, uint64_t settled_period_ns,
		    const struct analysis_point *point, double *ns, double *visits)
{
	double weight = fidelity_weight(&x->x, settled_period_ns);
	const struct profile_point *p = analysis_point_in(x, point);
	struct observation o;

	if (!p)
		return false;
	o = observation_read(&x->x, p);
	*ns = weight * o.num[READ_WHOLE];
	*visits = weight * o.den[READ_WHOLE];
	return *ns > 0 || *visits > 0;
}

/* Without experiments, from the windows in which slopes were measured. Returns how many. */
static size_t windows_of(const struct profile *p, const struct analysis_point *point, double *ns,
			 double *visits)
{
	size_t n = 0;
	uint64_t last = 0;

	for (size_t i = 0; i < p->n_slopes; i++) {
		const struct profile_slopes *s = &p->slopes[i];

		/* A window with many places has several records. */
		if (strcmp(s->point, point->name) != 0 || s->began == last || !s->length ||
		    !s->seen)
			continue;
		last = s->began;
		ns[n] = (double)s->length;
		visits[n++] = (double)s->seen;
	}
	return n;
}

/* A pace that is not known is NaN. */
static struct pace pace_of(const struct profile *p, const struct analysis_point *point)
{
	size_t most = p->n_experiments + p->n_slopes + 1;
	_cleanup_free_ double *ns = xcalloc(most, sizeof(*ns)),
			      *visits = xcalloc(most, sizeof(*visits));
	double sum_ns = 0, sum_visits = 0, logs[PARTS] = {0}, within = 0;
	_cleanup_free_ uint64_t *settled = fidelity_settled_periods(p);
	struct pace ret = {.variance = NAN};
	size_t n = 0, parts;

	for (size_t i = 0; i < p->n_experiments; i++)
		if (p->experiments[i].x.speedup == 0 &&
		    time_of(&p->experiments[i], settled[p->experiments[i].run], point, &ns[n],
			    &visits[n]))
			n++;
	if (analysis_slopes_only(point))
		n = windows_of(p, point, ns, visits);
	for (size_t i = 0; i < n; i++) {
		sum_ns += ns[i];
		sum_visits += visits[i];
	}
	ret.log_ns = sum_ns > 0 && sum_visits > 0 ? log(sum_ns / sum_visits) : NAN;
	parts = n < PARTS ? n : PARTS;
	for (size_t k = 0; k < parts; k++) {
		double part_ns = 0, part_visits = 0;

		for (size_t i = k * n / parts; i < (k + 1) * n / parts; i++) {
			part_ns += ns[i];
			part_visits += visits[i];
		}
		logs[k] = log(part_ns / part_visits);
		for (size_t i = k * n / parts; i < (k + 1) * n / parts; i++)
			within += pow(log(ns[i] / visits[i]) - logs[k], 2);
	}
	if (parts >= 2) {
		ret.df = (double)parts - 1;
		ret.variance = pow(stats_deviation(logs, parts), 2) / (double)parts;
		/* Of a part with one experiment nothing is known but that. */
		if (n > parts && isfinite(within))
			ret.wander = fmax(0, ret.variance * (double)parts -
						     within / (double)(n - parts) * (double)parts /
							     (double)n);
	}
	return ret;
}

/* By how much less time a unit takes at pace @b than at @a; with @wander, if that of the machine is
 * in it. Degrees of freedom after Welch. */
static struct analysis_change gain_of(const struct pace *a, const struct pace *b, bool wander)
{
	double variance = a->variance + b->variance, change = b->log_ns - a->log_ns, half, df;

	if (isnan(change) || isnan(variance))
		return (struct analysis_change){isnan(change) ? NAN : 1 - exp(change), NAN, NAN};
	df = variance > 0 ? variance * variance /
				    (a->variance * a->variance / a->df +
				     b->variance * b->variance / b->df)
			  : a->df + b->df;
	half = hypot(stats_t_quantile(df) * sqrt(variance + (wander ? a->wander + b->wander : 0)),
		     RUN_TO_RUN);
	return (struct analysis_change){1 - exp(change), 1 - exp(change + half),
					1 - exp(change - half)};
}

/* How much wider than for one of them 95 % intervals must be that hold for @n differences together:
 * Bonferroni's bound, of a normal distribution. */
static double family_factor(size_t n)
{
	double low = 1, high = 50, normal = 1e9;

	for (int i = 0; n > 1 && i < 60; i++) {
		double t = (low + high) / 2;

		if (stats_t_tail(t, normal) > FAMILY_RATE / (double)n)
			low = t;
		else
			high = t;
	}
	return n > 1 ? high / stats_t_quantile(normal) : 1;
}

static struct analysis_change difference_of(struct analysis_change a, struct analysis_change b,
					    double factor)
{
	double half = factor * hypot((a.high - a.low) / 2, (b.high - b.low) / 2),
	       value = b.effect - a.effect;

	if (isnan(value) || isnan(half))
		return ANALYSIS_UNKNOWN;
	return analysis_around(value, half);
}

/* The text of a line, without the blanks around it. False: the profile does not have it. */
static bool text_of(const struct profile *p, const char *line, struct source_line *ret)
{
	const struct profile_samples *s = profile_find_samples(p, line);
	const char *at = s ? s->source : NULL;
	size_t length, blanks;
	unsigned long number = source_line_number(line, &length);

	while (at && source_next(&at, ret)) {
		if (ret->number != number)
			continue;
		blanks = strspn(ret->text, " \t");
		ret->text += blanks;
		ret->length -= blanks;
		while (ret->length && strchr(" \t", ret->text[ret->length - 1]))
			ret->length--;
		return ret->length > 0;
	}
	return false;
}

static bool same_place(const struct analysis_line *a, const struct analysis_line *b)
{
	size_t x, y;

	return source_line_number(a->selected, &x) && source_line_number(b->selected, &y) &&
	       x == y && !memcmp(a->selected, b->selected, x) && a->function && b->function &&
	       !strcmp(a->function, b->function);
}

/* The one line of @point's with the function, the file and the text of @line; NULL: none, or
 * several. */
static const struct analysis_line *moved(const struct profile *p,
					 const struct analysis_point *point,
					 const struct profile *own,
					 const struct analysis_line *line)
{
	const struct analysis_line *found = NULL;
	struct source_line text, other;

	if (!text_of(own, line->selected, &text))
		return NULL;
	for (size_t i = 0; i < point->n_lines; i++) {
		if (!same_place(&point->lines[i], line) ||
		    !text_of(p, point->lines[i].selected, &other) || other.length != text.length ||
		    memcmp(other.text, text.text, text.length) != 0)
			continue;
		if (found)
			return NULL;
		found = &point->lines[i];
	}
	return found;
}

/* Does the line that has the name still have its text, as far as both profiles know? If not,
 * another line has moved there. */
static bool same_text(const struct profile *p, const struct profile *q, const char *name)
{
	struct source_line x, y;

	return !text_of(p, name, &x) || !text_of(q, name, &y) ||
	       (x.length == y.length && !memcmp(x.text, y.text, x.length));
}

static void compare_lines(const struct profile *before, const struct profile *after,
			  struct compare_point *p)
{
	double factor;

	p->slopes_only = analysis_slopes_only(p->before) && analysis_slopes_only(p->after);
	p->lines = xcalloc(p->after->n_lines + 1, sizeof(*p->lines));
	for (size_t i = 0; i < p->after->n_lines; i++) {
		const struct analysis_line *line = &p->after->lines[i],
					   *old = moved(before, p->before, after, line);

		/* Of several lines with one text it is none. */
		if (old && moved(after, p->after, after, line) != line)
			continue;
		if (!old && same_text(before, after, line->selected))
			old = analysis_line_named(p->before, p->before->n_lines, line->selected);
		if (old)
			p->lines[p->n_lines++] =
				(struct compare_line){.before = old, .after = line};
	}
	factor = family_factor(p->n_lines * (p->slopes_only ? 1 : ANALYSIS_CURVE_POINTS));
	for (size_t i = 0; i < p->n_lines; i++) {
		struct compare_line *l = &p->lines[i];

		l->slope = p->slopes_only ? difference_of(l->before->slope, l->after->slope, factor)
					  : ANALYSIS_UNKNOWN;
		l->differs |= l->slope.low > 0 || l->slope.high < 0;
		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
			struct analysis_change d = difference_of(
				analysis_shown(l->before, k), analysis_shown(l->after, k), factor);

			l->difference[k] = d;
			l->differs |= d.low > 0 || d.high < 0;
		}
	}
}

void compare(const struct profile *before, const struct analysis *a, const struct profile *after,
	     const struct analysis *b, struct comparison *ret)
{
	*ret = (struct comparison){.points = xcalloc(b->n_points + 1, sizeof(*ret->points))};
	for (size_t i = 0; i < b->n_points; i++)
		for (size_t j = 0; j < a->n_points; j++) {
			struct compare_point *p = &ret->points[ret->n_points];
			struct pace x, y;

			if (!a->points[j].visits || !b->points[i].visits)
				continue;
			if (a->points[j].kind != b->points[i].kind ||
			    strcmp(a->points[j].name, b->points[i].name) != 0)
				continue;
			*p = (struct compare_point){.before = &a->points[j],
						    .after = &b->points[i],
						    .old = before,
						    .new = after};
			ret->n_points++;
			x = pace_of(before, p->before);
			y = pace_of(after, p->after);
			compare_lines(before, after, p);
			p->before_ns = exp(x.log_ns);
			p->after_ns = exp(y.log_ns);
			p->gain = gain_of(&x, &y, true);
			p->steady = gain_of(&x, &y, false);
			break;
		}
}

void compare_free(struct comparison *c)
{
	for (size_t i = 0; i < c->n_points; i++)
		free(c->points[i].lines);
	free(c->points);
	*c = (struct comparison){0};
}
