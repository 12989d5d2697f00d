// SPDX-License-Identifier: BSD-2-Clause
/* The tables of all points as rows for a spreadsheet (CSV, RFC 4180) and for a pull request
 * (Markdown). */
#include "report/report.h"
#include "report/text.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In percent, with the digits of the other forms; empty: not known. */
static void csv_change(const struct report *r, struct analysis_change c)
{
	(void)fprintf(r->out, ",%s,%s,%s", text_percent(c.effect, "").text,
		      text_percent(c.low, "").text, text_percent(c.high, "").text);
}

int report_csv(FILE *out, const struct profile *p, const struct analysis *a)
{
	struct report r = report_make(out, p, a, NULL, NULL);

	(void)fputs("point,kind,line,function,share", out);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		(void)fprintf(out, ",effect_%1$.0f,low_%1$.0f,high_%1$.0f",
			      100 * analysis_curve_speedups[k]);
	(void)fputs(",verdict,experiments,slope,slope_low,slope_high", out);
	for (size_t k = 0; k < PROFILE_CLASSES; k++)
		(void)fprintf(out, ",slope_to_%1$s,slope_to_%1$s_low,slope_to_%1$s_high",
			      profile_class_names[k]);
	(void)fputc('\n', out);
	for (size_t i = 0; i < a->n_points; i++)
		for (size_t j = 0; a->points[i].visits && j < a->points[i].n_lines; j++) {
			const struct analysis_line *line = &a->points[i].lines[j];

			text_csv(&r, a->points[i].name);
			(void)fprintf(out, ",%s,", point_kind_name(a->points[i].kind));
			text_csv(&r, line->selected);
			(void)fputc(',', out);
			text_csv(&r, line->function ? line->function : "");
			(void)fprintf(out, ",%s", text_percent(line->share, "").text);
			for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
				csv_change(&r, analysis_shown(line, k));
			(void)fputc(',', out);
			text_csv(&r, text_verdict(line, a->points[i].speed.spins).text);
			(void)fprintf(out, ",%zu", line->experiments);
			csv_change(&r, line->slope);
			for (size_t k = 0; k < PROFILE_CLASSES; k++)
				csv_change(&r, line->in_class[k]);
			(void)fputc('\n', out);
		}
	return fflush(out) ? -errno : 0;
}

/* Text that others chose: every character that Markdown, or the HTML that may stand in it, gives a
 * meaning to is escaped. What sites look for in the text that comes of it, mentions, numbers of
 * issues and addresses, is broken by an element without content. */
static void markdown_text(const struct report *r, const char *s)
{
	_cleanup_free_ char *clean = text_clean(r, s);

	for (const char *c = clean; *c; c++) {
		if (strchr("\\`*_{}[]()<>#+!|~&@", *c))
			(void)fputc('\\', r->out);
		(void)fputc(*c, r->out);
		if (*c == '@' || *c == '#' || !strncmp(c, "://", 3) || !strncmp(c, "www", 3))
			(void)fputs("<!-- -->", r->out);
	}
}

/* But for the first of a row. */
static void markdown_cell(const struct report *r, const char *s)
{
	(void)fputs(" | ", r->out);
	markdown_text(r, s);
}

static void markdown_row(const struct report *r, const struct analysis_point *point,
			 const struct analysis_line *line)
{
	_cleanup_free_ char *name = text_line_name(r, line->selected, SIZE_MAX);

	(void)fputs("| ", r->out);
	markdown_text(r, name);
	markdown_cell(r, line->function ? line->function : "-");
	markdown_cell(r, text_share(line->share).text);
	if (analysis_has_slopes(point))
		markdown_cell(r, text_effect(r, line->slope).text);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		markdown_cell(r, text_effect(r, analysis_shown(line, k)).text);
	markdown_cell(r, text_verdict(line, point->speed.spins).text);
	(void)fprintf(r->out, " | %zu |\n", line->experiments);
}

/* What intervals of each length are made of. */
static void markdown_classes(const struct report *r, const struct analysis_point *point)
{
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = class_lines(point, &n);

	(void)fprintf(r->out, "%s\n\n| line |", CLASSES_CAPTION);
	for (size_t k = 0; k < PROFILE_CLASSES; k++)
		(void)fprintf(r->out, " %s |", class_titles[k]);
	(void)fputs("\n|---|--:|--:|--:|--:|\n| (their mean length)", r->out);
	for (size_t k = 0; k < PROFILE_CLASSES; k++)
		markdown_cell(r, class_length(point, k).text);
	(void)fputs(" |\n", r->out);
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *name = text_line_name(r, lines[i]->selected, SIZE_MAX);

		(void)fputs("| ", r->out);
		markdown_text(r, name);
		for (size_t k = 0; k < PROFILE_CLASSES; k++)
			markdown_cell(r, text_effect(r, lines[i]->in_class[k]).text);
		(void)fputs(" |\n", r->out);
	}
	(void)fputc('\n', r->out);
}

/* @all: not warnings alone. */
static void markdown_notes(const struct report *r, bool all)
{
	for (size_t i = 0; i < r->notes->n; i++) {
		const struct note *n = &r->notes->list[i];

		if (!all && n->kind != NOTE_WARNING)
			continue;
		(void)fputs(n->kind == NOTE_WARNING ? "- **Warning:** " : "- ", r->out);
		markdown_text(r, n->text);
		(void)fputc('\n', r->out);
	}
	notes_free(r->notes);
}

static void markdown_point(const struct report *r, const struct analysis_point *point)
{
	_cleanup_free_ char *said = answer(r, point);
	bool latency = point->kind == PROFILE_LATENCY, slopes = analysis_has_slopes(point);

	(void)fprintf(r->out, "### %s point ", latency ? "Latency" : "Progress");
	markdown_text(r, point->name);
	(void)fputs("\n\n", r->out);
	markdown_text(r, said);
	(void)fprintf(r->out,
		      "\n\n| line | function | share |%s 25 %% | 50 %% | 75 %% | 100 %% | "
		      "verdict | experiments |\n"
		      "|---|---|--:|%s--:|--:|--:|--:|---|--:|\n",
		      slopes ? " slope |" : "", slopes ? "--:|" : "");
	for (size_t i = 0; i < point->n_lines; i++)
		markdown_row(r, point, &point->lines[i]);
	(void)fprintf(r->out,
		      "\nBy how many %% the %s shrinks if the line runs that much faster, with 95 "
		      "%% intervals.\n\n",
		      what_shrinks(point));
	if (analysis_has_classes(point))
		markdown_classes(r, point);
	table_notes(r, point);
	markdown_notes(r, true);
}

int report_markdown(FILE *out, const struct profile *p, const struct analysis *a)
{
	struct notes notes = {0};
	struct report r = report_make(out, p, a, NULL, &notes);

	if (report_is_empty(a)) {
		(void)fputs("The profile is empty.\n\n", out);
		empty_notes(&r);
		markdown_notes(&r, true);
	}
	for (size_t i = 0; i < a->n_points; i++)
		if (a->points[i].visits && a->points[i].n_lines)
			markdown_point(&r, &a->points[i]);
	footer_notes(&r);
	markdown_notes(&r, false);
	return fflush(out) ? -errno : 0;
}
