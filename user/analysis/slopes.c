// SPDX-License-Identifier: BSD-2-Clause
/* A slope is a ratio of two sums over windows: the time in a place's part of the chains of events
 * that led to visits, and the length of those chains, without what the profiler took of them. That
 * a sum is divided by a sum, and not averaged by window, gives each visit the same weight,
 * whichever thread made it. Both are relative to the window's length: chains of long windows are
 * long, and would weigh by the square of it. The interval is that of a ratio estimator (Cochran,
 * Sampling Techniques, 6.4) with Student's t, of as many windows as uneven weights are worth (Kish,
 * Survey Sampling), and of what the method itself may be off. What intervals are made of is the
 * same ratio, of the chains from their begins to their ends. */
#include "analysis/slopes.h"

#include "analysis/curve.h"
#include "analysis/stats.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/sort.h"
#include "base/waits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bounds for hostile files. */
#define MAX_LINES 512
#define MAX_POINTS 128
#define MAX_ALL_LINES 16384
#define MAX_PARTS (1 << 22)
/* By how much the method is off where chance is not, by tests/truth/README.md: in points, and as a
 * share of the slope. */
#define METHOD_POINTS 0.008
#define METHOD_SHARE 0.04
/* With less than that, which reads 0.0 %, what was not tried is not worth a row. */
#define LEAST_SHOWN 0.0005

/* One place in one window, or all places of one row. */
struct part {
	const char *location; /* in one of the analysis's texts */
	size_t record;
	double ns;
	size_t row;
};

struct parts {
	struct part *all;
	size_t n;
};

static void parts_free(struct parts *p)
{
	free(p->all);
}

static int by_location(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return strcmp(x->location, y->location) ?: sort_order(x->record, y->record);
}

static int by_row(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return sort_order(x->row, y->row) ?: sort_order(x->record, y->record);
}

/* Takes the next place from *at, which is profile_slopes.places at first and is written to. NULL:
 * none is left. */
static const char *next_place(char **at, double *ret_ns)
{
	char *line, *end;

	while ((line = strsep(at, "\n"))) {
		*ret_ns = (double)strtoll(line, &end, 10);
		if (end != line && *end == '\t' && end[1])
			return end + 1;
	}
	return NULL;
}

/* The places of record @i. */
static void take_record(const struct profile *p, size_t i, struct analysis *a, struct parts *ret)
{
	char *next = xstrdup(p->slopes[i].places);
	const char *location;
	double ns;

	xarray_add(a->texts, a->n_texts, next);
	while (ret->n < MAX_PARTS && (location = next_place(&next, &ns)))
		xarray_add(ret->all, ret->n, (struct part){location, i, ns});
}

static double length_of(const struct profile_slopes *s)
{
	return s->own_ns < s->time_ns ? (double)(s->time_ns - s->own_ns) : 0;
}

/* Are these windows of visits (NULL), or of intervals of that class? */
static bool is_of(const struct profile_slopes *s, const char *class)
{
	return class && s->class ? strcmp(s->class, class) == 0 : class == s->class;
}

/* What a window's sums are divided by. Intervals are no longer in longer windows. */
static double unit_of(const struct profile_slopes *s)
{
	return s->class || !s->length ? 1 : (double)s->length;
}

double slopes_method_error(double slope)
{
	return hypot(METHOD_POINTS, METHOD_SHARE * slope);
}

/* Of one location: one part for each window. Those of @class count. */
static struct analysis_change slope_of(const struct profile *p, const struct part *parts, size_t n,
				       const char *class)
{
	double sum = 0, length = 0, lengths2 = 0, squares = 0, records = 0, windows, half;

	for (size_t i = 0; i < n; i++) {
		const struct profile_slopes *s = &p->slopes[parts[i].record];
		double x = length_of(s) / unit_of(s);

		if (!is_of(s, class))
			continue;
		sum += parts[i].ns / unit_of(s);
		length += x;
		lengths2 += x * x;
		records++;
	}
	if (!(length > 0))
		return ANALYSIS_UNKNOWN;
	for (size_t i = 0; i < n; i++) {
		const struct profile_slopes *s = &p->slopes[parts[i].record];
		double off = (parts[i].ns - sum / length * length_of(s)) / unit_of(s);

		squares += is_of(s, class) ? off * off : 0;
	}
	/* Of intervals a few long ones are most of the sum: each record counts. */
	windows = class ? records : length * length / lengths2;
	if (windows < 1.5)
		return analysis_around(sum / length, NAN);
	half = stats_t_quantile(windows - 1) * sqrt(windows / (windows - 1) * squares) / length;
	if (!class)
		half = hypot(half, slopes_method_error(sum / length));
	return analysis_around(sum / length, half);
}

static void forget_slopes(struct analysis_line *l)
{
	l->slope = ANALYSIS_UNKNOWN;
	for (size_t i = 0; i < PROFILE_CLASSES; i++)
		l->in_class[i] = l->slope;
}

struct analysis_line *analysis_line_named(const struct analysis_point *p, size_t n,
					  const char *selected)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(p->lines[i].selected, selected) == 0)
			return &p->lines[i];
	return NULL;
}

/* Of the samples; or of the run's time, the part in which at least one thread waited there, as far
 * as that was counted: at most what all threads waited together. */
static double share_of(const struct profile *p, const char *location,
		       const struct profile_samples *s)
{
	size_t place;
	unsigned int kind = wait_of(location, &place);
	double ns = 0;

	if (!kind)
		return s && p->sampled ? (double)s->count / (double)p->sampled : NAN;
	for (size_t i = 0; i < p->n_samples; i++)
		if (place ? &p->samples[i] == s : wait_of(p->samples[i].location, NULL) == kind)
			ns += (double)p->samples[i].ns;
	return p->runtime_ns && ns > 0 ? fmin(1, ns / (double)p->runtime_ns) : NAN;
}

/* A line that no experiment has tried. */
static struct analysis_line *add_line(const struct profile *p, struct analysis_point *point,
				      const char *location)
{
	const struct profile_samples *s = profile_find_samples(p, location);
	struct analysis_line *l;

	point->lines = xreallocarray(point->lines, point->n_lines + 1, sizeof(*l));
	l = &point->lines[point->n_lines++];
	*l = (struct analysis_line){
		.selected = location,
		.function = s ? s->function : NULL,
		.share = share_of(p, location, s),
		.wait = wait_of(location, NULL),
		.missing_s = NAN,
		.most = NAN,
		.best_effect = NAN,
		.best_speedup = NAN,
		.allow = {.share = NAN, .presence = {.share = 1, .factor = 1}},
	};
	forget_slopes(l);
	curve_forget(&l->curve);
	return l;
}

static void add_slopes(const struct profile *p, struct parts *parts, struct analysis *a,
		       struct analysis_point *point)
{
	size_t tried = point->n_lines, room = MAX_ALL_LINES;

	for (size_t i = 0; i < a->n_points; i++)
		room -= a->points[i].n_lines < room ? a->points[i].n_lines : room;
	room = room < MAX_LINES ? room : MAX_LINES;
	qsort(parts->all, parts->n, sizeof(*parts->all), by_location);
	for (size_t i = 0, n; i < parts->n; i += n) {
		struct analysis_change slope, in[PROFILE_CLASSES];
		struct analysis_line *l;
		double most;

		for (n = 1; i + n < parts->n &&
			    strcmp(parts->all[i + n].location, parts->all[i].location) == 0;)
			n++;
		slope = slope_of(p, &parts->all[i], n, NULL);
		most = slope.effect;
		for (size_t k = 0; k < PROFILE_CLASSES; k++) {
			in[k] = slope_of(p, &parts->all[i], n, profile_class_names[k]);
			most = fmax(most, in[k].effect);
		}
		l = analysis_line_named(point, tried, parts->all[i].location);
		if (!l && (!(most > LEAST_SHOWN) || point->n_lines - tried >= room))
			continue;
		if (!l)
			l = add_line(p, point, parts->all[i].location);
		l->slope = slope;
		memcpy(l->in_class, in, sizeof(in));
	}
}

bool analysis_has_slopes(const struct analysis_point *p)
{
	for (size_t i = 0; i < p->n_lines; i++)
		if (isfinite(p->lines[i].slope.effect))
			return true;
	return false;
}

bool analysis_has_classes(const struct analysis_point *p)
{
	for (size_t i = 0; i < PROFILE_CLASSES; i++)
		if (p->classes[i].n)
			return true;
	return false;
}

bool analysis_was_tried(const struct analysis_point *p)
{
	for (size_t i = 0; i < p->n_lines; i++)
		if (p->lines[i].experiments)
			return true;
	return false;
}

bool analysis_slopes_only(const struct analysis_point *p)
{
	return !analysis_was_tried(p) && analysis_has_slopes(p);
}

static struct analysis_point *point_named(struct analysis *a, const char *name,
					  enum profile_point_kind kind)
{
	for (size_t i = 0; i < a->n_points; i++)
		if (strcmp(a->points[i].name, name) == 0)
			return &a->points[i];
	a->points = xreallocarray(a->points, a->n_points + 1, sizeof(*a->points));
	a->points[a->n_points] = (struct analysis_point){
		.name = name, .kind = kind, .placebo = NAN, .self_share = NAN};
	return &a->points[a->n_points++];
}

static bool is_known(const struct profile *p, const size_t *firsts, size_t n, const char *point)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(p->slopes[firsts[i]].point, point) == 0)
			return true;
	return false;
}

static size_t class_number(const char *class)
{
	size_t i = 0;

	while (i < PROFILE_CLASSES && (!class || strcmp(class, profile_class_names[i]) != 0))
		i++;
	return i;
}

/* Adds a record's visits or intervals to those of the point and of their class. */
static void count_record(const struct profile_slopes *s, struct analysis_point *point, bool alone)
{
	size_t class = class_number(s->class);

	if (alone)
		point->visits += s->seen;
	if (class == PROFILE_CLASSES || !s->visits)
		return;
	point->classes[class].mean_ns =
		(point->classes[class].mean_ns * (double)point->classes[class].n +
		 (double)s->time_ns) /
		(double)(point->classes[class].n + s->visits);
	point->classes[class].n += s->visits;
}

/* Of the point that record @first is the first one of. */
static void add_point(const struct profile *p, size_t first, struct analysis *a)
{
	_cleanup_(parts_free) struct parts parts = {0};
	struct analysis_point *point =
		point_named(a, p->slopes[first].point,
			    p->slopes[first].class ? PROFILE_LATENCY : PROFILE_THROUGHPUT);
	const struct profile_slopes *last = NULL;
	bool alone = point->n_lines == 0;
	double own = 0, time = 0;

	for (size_t i = first; i < p->n_slopes; i++) {
		const struct profile_slopes *s = &p->slopes[i];

		if (strcmp(s->point, point->name) != 0)
			continue;
		take_record(p, i, a, &parts);
		own += (double)s->own_ns / unit_of(s);
		time += (double)s->time_ns / unit_of(s);
		/* A long list of places has several records. */
		if (!last || last->began != s->began || !is_of(last, s->class))
			count_record(s, point, alone);
		last = s;
	}
	point->self_share = time > 0 ? own / time : NAN;
	add_slopes(p, &parts, a, point);
}

const char *slopes_point(const struct profile *p)
{
	for (size_t i = 0; i < p->n_slopes; i++)
		if (!p->slopes[i].class)
			return p->slopes[i].point;
	return NULL;
}

void slopes_of_rows(const struct profile *p, const char *point, size_t n,
		    size_t (*row_of)(const char *location, void *arg), void *arg,
		    struct analysis_change *ret)
{
	_cleanup_(parts_free) struct parts parts = {0};
	/* Of each row how many parts there were once its last one was added. */
	_cleanup_free_ size_t *last = xcalloc(n + 1, sizeof(*last));
	size_t first = SIZE_MAX; /* record of the window, which may have several */

	for (size_t i = 0; i < p->n_slopes; i++) {
		_cleanup_free_ char *text = NULL;
		char *next;
		const char *location;
		double ns;

		if (p->slopes[i].class || strcmp(p->slopes[i].point, point) != 0)
			continue;
		if (first == SIZE_MAX || p->slopes[first].began != p->slopes[i].began)
			first = i;
		next = text = xstrdup(p->slopes[i].places);
		while (parts.n < MAX_PARTS && (location = next_place(&next, &ns))) {
			size_t row = row_of(location, arg);

			if (row >= n)
				continue;
			if (!last[row] || parts.all[last[row] - 1].record != first) {
				xarray_add(parts.all, parts.n,
					   (struct part){.row = row, .record = first});
				last[row] = parts.n;
			}
			parts.all[last[row] - 1].ns += ns;
		}
	}
	sort_array(parts.all, parts.n, by_row);
	for (size_t i = 0; i < n; i++)
		ret[i] = ANALYSIS_UNKNOWN;
	for (size_t i = 0, len; i < parts.n; i += len) {
		for (len = 1; i + len < parts.n && parts.all[i + len].row == parts.all[i].row;)
			len++;
		ret[parts.all[i].row] = slope_of(p, &parts.all[i], len, NULL);
	}
}

void slopes_add(const struct profile *p, struct analysis *a)
{
	size_t firsts[MAX_POINTS], n = 0;

	for (size_t i = 0; i < a->n_points; i++) {
		a->points[i].self_share = NAN;
		for (size_t k = 0; k < a->points[i].n_lines; k++)
			forget_slopes(&a->points[i].lines[k]);
	}
	for (size_t i = 0; i < p->n_slopes && n < MAX_POINTS; i++) {
		if (is_known(p, firsts, n, p->slopes[i].point))
			continue;
		firsts[n++] = i;
		add_point(p, i, a);
	}
}
