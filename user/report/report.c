// SPDX-License-Identifier: BSD-2-Clause
#include "report/report.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "report/text.h"

#include <inttypes.h>
#include <string.h>

#define DEFAULT_TOP 10
#define DEFAULT_CURVES 1
#define VERBOSE_CURVES 3

static struct report make_report(FILE *out, const struct profile *p, const struct analysis *a,
				 const struct report_options *o, const struct report_hints *h)
{
	static const struct report_options no_options;
	struct report r;

	if (!o)
		o = &no_options;
	r = report_text(out, p, a, h, o->width);
	r.color = o->color;
	r.inlined = o->inlined;
	r.verbose = o->verbose;
	r.all = o->all;
	r.top = o->all ? SIZE_MAX : o->top ? o->top : DEFAULT_TOP;
	r.curves = o->curves == (size_t)-1 ? 0
		   : o->curves		   ? o->curves
		   : o->verbose		   ? VERBOSE_CURVES
					   : DEFAULT_CURVES;
	return r;
}

static void print_head(const struct report *r)
{
	_cleanup_free_ char *times = run_times_text(r);
	struct words what =
		r->p->n_slopes && !r->p->n_experiments
			? text_words("Slopes of %s", text_duration((double)r->p->runtime_ns).text)
			: text_words("%zu experiment%s, %s", r->p->n_experiments,
				     plural(r->p->n_experiments),
				     text_duration(r->a->elapsed_ns).text);

	paragraph(r, 2, "%s, in %zu run%s", what.text, r->p->n_runs, plural(r->p->n_runs));
	if (r->p->n_runs == 1 && what_was_profiled(r->p)) {
		_cleanup_free_ char *clean = text_clean(r, what_was_profiled(r->p)),
				    *command = text_cut(r, clean, (size_t)r->width - 4);

		paragraph(r, 2, "of: %s", r->verbose ? clean : command);
	}
	if (r->directory.n) {
		_cleanup_free_ char *directory = xstrndup(r->directory.name, r->directory.n);

		paragraph(r, 2, "Files are under %s", directory);
	}
	if (times)
		paragraph(r, 2, "%s", times);
}

/* What is to be known before the numbers are believed stands beside what they say. @run: notes on
 * the whole run. */
static void print_answer(const struct report *r, const struct analysis_point *point,
			 const struct notes *of_table, const struct notes *run)
{
	_cleanup_free_ char *said = answer(r, point);

	if (*said)
		paragraph(r, 0, "%s", said);
	notes_print(r, run, true);
	notes_print(r, of_table, true);
}

static void print_point(const struct report *r, const struct analysis_point *point,
			const struct notes *run)
{
	_cleanup_(notes_free) struct notes of_table = {0};
	struct report collects = *r;

	collects.notes = &of_table;
	table_notes(&collects, point);
	(void)fputc('\n', r->out);
	if (point->kind == PROFILE_LATENCY) {
		heading(r, "Latency point '%s': %" PRIu64 " %s%s", point->name, point->visits,
			what_is_counted(point), plural(point->visits));
		if (point->intervals)
			latency_head_notes(r, point->intervals);
		print_answer(r, point, &of_table, run);
		if (analysis_was_tried(point))
			paragraph(r, 0,
				  "Per line: by how many %% the mean latency shrinks if the line "
				  "runs 25, 50, 75, 100 %% faster.");
	} else {
		heading(r, "Progress point '%s': %" PRIu64 " visit%s", point->name, point->visits,
			plural(point->visits));
		print_answer(r, point, &of_table, run);
		if (analysis_slopes_only(point))
			paragraph(r, 0,
				  "Per line: by how many %% the %s shrinks for each "
				  "100 %% of the line's time, while it gets a little faster.",
				  what_shrinks(point));
		else
			paragraph(r, 0,
				  "Per line: by how many %% the %s shrinks if the line "
				  "runs 25, 50, 75, 100 %% faster.%s",
				  what_shrinks(point),
				  analysis_has_slopes(point)
					  ? " With a slope of 50 each per cent of speed takes "
					    "0.5 % off, at first."
					  : "");
	}
	if (analysis_was_tried(point) || analysis_has_slopes(point))
		table_print(r, point);
	notes_print(r, &of_table, false);
	if (analysis_has_classes(point)) {
		(void)fputc('\n', r->out);
		classes_print(r, point);
	}
	if (point->intervals) {
		(void)fputc('\n', r->out);
		latency_print_lines(r, point);
		latency_notes(r, point);
	}
	if (r->inlined)
		inlined_print(r, point);
	curves_print(r, point);
}

void silent_notes(const struct report *r)
{
	_cleanup_free_ const char **names = silent_points(r);

	if (names[0] && !r->notes)
		(void)fputc('\n', r->out);
	for (size_t i = 0; names[i]; i++)
		note(r, NOTE_PLAIN, "Progress point '%s' never fired.", names[i]);
}

/* Counters are ours, several lines of them; still nothing gets to the terminal unchecked. */
static void print_counters(const struct report *r)
{
	const char *s = r->h->kernel_counters;

	if (!s || !*s)
		return;
	(void)fputs("\nIn the kernel:\n", r->out);
	while (*s) {
		size_t n = strcspn(s, "\n");
		_cleanup_free_ char *line = xstrndup(s, n);
		_cleanup_free_ char *clean = text_clean(r, line);

		if (*clean) {
			(void)fputs("  ", r->out);
			paragraph_rest(r, 2, 4, "%s", clean);
		}
		s += n + (s[n] == '\n');
	}
}

void report_print(FILE *out, const struct profile *p, const struct analysis *a,
		  const struct report_options *o, const struct report_hints *h)
{
	struct report r = make_report(out, p, a, o, h), collects = r;
	_cleanup_(notes_free) struct notes run = {0};
	const struct notes none = {0}, *warnings = &run;

	collects.notes = &run;
	footer_notes(&collects);
	if (report_is_empty(a)) {
		heading(&r, "The profile is empty.");
		empty_notes(&r);
		where_print(&r);
		if (!p->n_experiments)
			jit_notes(&r);
		print_counters(&r);
		if (p->n_experiments) {
			notes_print(&r, &run, true);
			footer_print(&r, &run);
		}
		return;
	}
	print_head(&r);
	for (size_t i = 0; i < a->n_points; i++)
		if (a->points[i].visits) {
			print_point(&r, &a->points[i], warnings);
			warnings = &none;
		}
	silent_notes(&r);
	intervals_missing(&r);
	print_counters(&r);
	footer_print(&r, &run);
}
