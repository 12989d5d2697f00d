// SPDX-License-Identifier: BSD-2-Clause
/* What a point's lines say, in sentences: for a reader who was not there. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/waits.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_LINES 3 /* the best, each with a sentence */
#define NOTHING_PAUSED "Nothing was paused: how far more speed helps, experiments say."

const char *point_kind_name(enum profile_point_kind kind)
{
	return kind == PROFILE_LATENCY ? "latency" : "throughput";
}

const char *what_was_profiled(const struct profile *p)
{
	return !p->n_runs ? NULL : p->runs[0].program ? p->runs[0].program : p->runs[0].command;
}

const char *what_shrinks(const struct analysis_point *point)
{
	return point->kind == PROFILE_LATENCY		     ? "mean latency"
	       : strcmp(point->name, PROFILE_WHOLE_RUN) == 0 ? "run time"
							     : "time per visit";
}

const char *what_is_counted(const struct analysis_point *point)
{
	return point->kind == PROFILE_THROUGHPUT		? "visit"
	       : point->intervals || !analysis_was_tried(point) ? "interval"
								: "departure";
}

static bool is_sure(struct analysis_change c, enum verdict v)
{
	return v == VERDICT_HELPS ? c.low > 0 : v == VERDICT_HURTS ? c.high < 0 : false;
}

static void tell_knee(FILE *f, const struct analysis_line *line)
{
	const struct analysis_curve *c = &line->curve;
	double before = c->knee_effect / c->knee, after = c->slope_after / before;

	if (line->verdict != VERDICT_HELPS || isnan(c->knee) || !(before > 0))
		return;
	if (fabs(after) < NO_MORE)
		(void)fprintf(f, " No more is gained beyond %.0f %%.", 100 * c->knee);
	else
		(void)fprintf(f, " Beyond %.0f %% it %s.", 100 * c->knee,
			      after < 0	  ? "hurts"
			      : after < 1 ? "gains more slowly"
					  : "gains faster");
}

/* What is made faster, and by how much. */
static void tell_change(FILE *f, const struct report *r, const struct analysis_line *line,
			double percent)
{
	_cleanup_free_ char *name = text_line_name(r, line->selected, text_name_room(r));

	if (line->wait == WAIT_CPU)
		(void)fprintf(f, "%.0f %% less waiting for a CPU", percent);
	else
		(void)fprintf(f, line->wait ? "%.0f %% less waiting at %s" : "A %.0f %% faster %s",
			      percent, name);
}

static bool tell_line(FILE *f, const struct report *r, const struct analysis_point *point,
		      const struct analysis_line *line)
{
	struct analysis_change c;
	double percent;

	if (!analysis_told(line, 0, is_sure, line->verdict, &percent, &c))
		return false;
	tell_change(f, r, line, percent);
	if (c.effect > 0) {
		(void)fprintf(f, " takes %s off the %s", text_interval(c, 1).text,
			      what_shrinks(point));
		if (point->kind == PROFILE_THROUGHPUT && c.effect < 1)
			(void)fprintf(f, " (%.1f %% more %s)", 100 * c.effect / (1 - c.effect),
				      strcmp(point->name, PROFILE_WHOLE_RUN) == 0
					      ? "runs in the same time"
					      : "visits per second");
	} else {
		(void)fprintf(f, " adds %s to the %s: contention", text_interval(c, -1).text,
			      what_shrinks(point));
	}
	(void)fputc('.', f);
	tell_knee(f, line);
	(void)fputc(' ', f);
	return true;
}

static void tell_counts(FILE *f, const struct analysis_point *point)
{
	size_t count[VERDICT_HURTS + 1] = {0}, tried = 0;
	const struct {
		enum verdict v;
		const char *one, *many;
	} words[] = {
		{VERDICT_HELPS, "helps", "help"},
		{VERDICT_HURTS, "hurts", "hurt"},
		{VERDICT_NO_EFFECT, "has no effect", "have no effect"},
		{VERDICT_UNDECIDED, "is undecided", "are undecided"},
	};
	const char *before = ": ";

	for (size_t i = 0; i < point->n_lines; i++) {
		if (!point->lines[i].experiments)
			continue;
		tried++;
		count[point->lines[i].verdict]++;
	}
	(void)fprintf(f, "%zu line%s tried", tried, tried == 1 ? " was" : "s were");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = count[words[i].v];

		if (!n)
			continue;
		if (tried == 1)
			(void)fprintf(f, ": it %s", words[i].one);
		else
			(void)fprintf(f, "%s%zu %s", before, n,
				      n == 1 ? words[i].one : words[i].many);
		before = ", ";
	}
	(void)fputc('.', f);
}

/* What comes before all that the numbers say. */
static void tell_disturbed(FILE *f, const struct report *r)
{
	(void)fprintf(
		f,
		"In %zu of %zu experiment%s %s took CPU time: no verdict is given. Repeat the "
		"run on a quiet machine. ",
		r->a->disturbed, r->p->n_experiments, plural(r->p->n_experiments),
		!r->a->stolen_flagged	 ? "other programs"
		: !r->a->foreign_flagged ? "a hypervisor"
					 : "other programs or a hypervisor");
}

bool slope_is_told(const struct analysis_line *line)
{
	return line->slope.low > 0 && line->slope.effect >= NO_MORE;
}

/* What slopes say: of a tenth, which is small enough for them. */
static bool tell_slope(FILE *f, const struct report *r, const struct analysis_point *point,
		       const struct analysis_line *line)
{
	if (!slope_is_told(line))
		return false;
	tell_change(f, r, line, 10);
	(void)fprintf(f, " takes %s off the %s. ", text_interval(line->slope, 0.1).text,
		      what_shrinks(point));
	return true;
}

/* What the slowest intervals have more of than the faster half. */
static void tell_slowest(FILE *f, const struct report *r, const struct analysis_point *point)
{
	const size_t slowest = PROFILE_CLASSES - 1;
	const struct analysis_line *worst = NULL;
	_cleanup_free_ char *name = NULL;

	for (size_t i = 0; i < point->n_lines; i++) {
		const struct analysis_line *l = &point->lines[i];

		if (l->in_class[slowest].low > l->in_class[0].high &&
		    (!worst || l->in_class[slowest].effect > worst->in_class[slowest].effect))
			worst = l;
	}
	if (!worst)
		return;
	name = text_line_name(r, worst->selected, text_name_room(r));
	(void)fprintf(
		f,
		"The slowest 1 %% (%s on average) spend %s of their time at %s, the faster half "
		"(%s) %.1f %%. ",
		text_duration(point->classes[slowest].mean_ns).text,
		text_interval(worst->in_class[slowest], 1).text, name,
		text_duration(point->classes[0].mean_ns).text, 100 * worst->in_class[0].effect);
}

static void tell_slopes(FILE *f, const struct report *r, const struct analysis_point *point)
{
	size_t told = 0;

	for (size_t i = 0; i < point->n_lines && told < TOLD_LINES; i++)
		told += tell_slope(f, r, point, &point->lines[i]);
	if (!told)
		(void)fputs("No line is sure to gain anything when it gets a little faster. ", f);
	(void)fputs(NOTHING_PAUSED, f);
}

char *answer(const struct report *r, const struct analysis_point *point)
{
	char *text = NULL;
	size_t size, told = 0;
	FILE *f = xopen_memstream(&text, &size);

	if (analysis_slopes_only(point)) {
		tell_slopes(f, r, point);
	} else if (analysis_was_tried(point)) {
		bool disturbed = analysis_disturbed(r->p, r->a);

		if (disturbed)
			tell_disturbed(f, r);
		for (size_t i = 0; i < point->n_lines && told < TOLD_LINES; i++)
			if (point->lines[i].verdict == VERDICT_HELPS ||
			    point->lines[i].verdict == VERDICT_HURTS)
				told += tell_line(f, r, point, &point->lines[i]);
			else if (point->lines[i].verdict == VERDICT_UNDECIDED)
				told += tell_slope(f, r, point, &point->lines[i]);
		if (!told && !disturbed)
			(void)fputs("No line is sure to gain anything. ", f);
		tell_slowest(f, r, point);
		tell_counts(f, point);
	} else if (analysis_has_classes(point)) {
		tell_slowest(f, r, point);
		(void)fputs(NOTHING_PAUSED, f);
	}
	xclose_memstream(f);
	return text;
}
