// SPDX-License-Identifier: BSD-2-Clause
/* Of the HTML report: the table of a point's lines, and their figures. */
#include "report/html.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "profile/source_text.h"
#include "report/inlined.h"

#include <math.h>
#include <string.h>

#define MAX_COPIES 5 /* inlined ones that are told of a line */

static void put_effect(const struct html *h, struct analysis_change c)
{
	char text[NUMBER_ROOM];

	text_effect(&h->r, c.effect, c.low, c.high, text);
	(void)fputs("<td class=n>", h->out);
	html_text(h, text);
}

static void put_row(const struct html *h, size_t at, size_t i)
{
	const struct analysis_point *point = &h->r.a->points[at];
	const struct analysis_line *line = &point->lines[i];
	char text[NUMBER_ROOM];

	(void)fprintf(h->out,
		      "<tr data-v=\"%s\" data-f=p%zul%zu><td class=n>%zu<td class=name><a "
		      "href=#p%zul%zu>",
		      verdict_name(line->verdict), at, i, i + 1, at, i);
	html_line_name(h, line->selected);
	(void)fputs("</a><td class=name>", h->out);
	html_text(h, line->function ? line->function : "-");
	if (isfinite(line->share))
		(void)fprintf(h->out, "<td class=n>%.1f %%", 100 * line->share);
	else
		(void)fputs("<td class=n>-", h->out);
	if (analysis_has_slopes(point))
		put_effect(h, line->slope);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		put_effect(h, analysis_shown(line, k));
	text_verdict(line, point->speed.spins, text);
	(void)fprintf(h->out, "<td class=\"v-%.*s\">%s<td class=n>%zu\n",
		      (int)strcspn(verdict_name(line->verdict), " "), verdict_name(line->verdict),
		      text, line->experiments);
}

static void put_table(const struct html *h, size_t at)
{
	const struct analysis_point *point = &h->r.a->points[at];

	(void)fprintf(h->out,
		      "<div class=scroll><table class=lines>\n<caption>By how many %% the %s "
		      "shrinks if the line runs 25, 50, 75, 100 %% faster, with 95 "
		      "%% "
		      "intervals; the %s first</caption>\n<thead><tr><th scope=col "
		      "class=n>#<th scope=col>line<th scope=col>function<th scope=col "
		      "class=n>share%s<th scope=col class=n>25 %%<th "
		      "scope=col class=n>50 %%<th "
		      "scope=col class=n>75 %%<th scope=col class=n>100 %%<th "
		      "scope=col>verdict<th scope=col class=n>experiments</thead>\n<tbody>\n",
		      what_shrinks(point),
		      analysis_has_slopes(point) ? "largest slope" : "surest gain",
		      analysis_has_slopes(point) ? "<th scope=col class=n>slope" : "");
	for (size_t i = 0; i < point->n_lines; i++)
		put_row(h, at, i);
	(void)fputs("</tbody></table></div>\n", h->out);
}

void html_classes(const struct html *h, const struct analysis_point *point)
{
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = class_lines(point, &n);

	(void)fprintf(h->out,
		      "<div class=scroll><table>\n<caption>%s</caption>\n<thead><tr><th "
		      "scope=col>line",
		      CLASSES_CAPTION);
	for (size_t k = 0; k < PROFILE_CLASSES; k++) {
		char text[NUMBER_ROOM];

		text_duration(point->classes[k].mean_ns, text);
		(void)fprintf(h->out, "<th scope=col class=n>%s (%s)", class_titles[k],
			      point->classes[k].n ? text : "-");
	}
	(void)fputs("</thead>\n<tbody>\n", h->out);
	for (size_t i = 0; i < n; i++) {
		(void)fputs("<tr><td class=name>", h->out);
		html_line_name(h, lines[i]->selected);
		for (size_t k = 0; k < PROFILE_CLASSES; k++)
			put_effect(h, lines[i]->in_class[k]);
		(void)fputc('\n', h->out);
	}
	(void)fputs("</tbody></table></div>\n", h->out);
}

static void put_number(const struct html *h, double share)
{
	if (isfinite(share))
		(void)fprintf(h->out, "<td>%.1f", fabs(share) < 0.0005 ? 0 : 100 * share);
	else
		(void)fputs("<td>-", h->out);
}

/* The script reads these as well. */
static void put_cells(const struct html *h, const struct analysis_line *line)
{
	(void)fputs("<table class=cells><thead><tr><th>faster, %<th>effect, "
		    "%<th>from<th>to<th>experiments<tbody>",
		    h->out);
	for (size_t i = 0; i < line->n_cells; i++) {
		const struct analysis_cell *c = &line->cells[i];

		if (!(c->speedup > 0))
			continue;
		(void)fprintf(h->out, "\n<tr><td>%.0f", 100 * c->speedup);
		put_number(h, c->effect);
		put_number(h, c->low);
		put_number(h, c->high);
		(void)fprintf(h->out, "<td>%zu", c->experiments);
	}
	(void)fputs("</table>\n", h->out);
}

/* Where its code was inlined, and what into it. */
static void put_copies(const struct html *h, const struct analysis_line *line)
{
	const struct profile_samples *s = profile_find_samples(h->r.p, line->selected);
	_cleanup_free_ char *text = s && s->inlined ? xstrdup(s->inlined) : NULL;
	struct inlined_copy c;
	char *at = text;
	size_t n = 0;

	while (at && n < MAX_COPIES && inlined_next(&at, &c)) {
		(void)fprintf(
			h->out, "%s<li>%.1f %%: ",
			n++ ? "" : "<p>Inlined code, with its share of the line's samples\n<ul>\n",
			s->count && c.count < s->count ? 100 * (double)c.count / (double)s->count
						       : 100.0);
		for (size_t i = 0; i < c.n; i++) {
			(void)fputs(i ? " in <code>" : "<code>", h->out);
			html_text(h, c.lines[i]);
			(void)fputs("</code>", h->out);
		}
		(void)fputc('\n', h->out);
	}
	if (n)
		(void)fputs("</ul>\n", h->out);
}

/* Tabs are text here, and nowhere else. */
static void put_code(const struct html *h, char *text)
{
	for (char *part; (part = strsep(&text, "\t"));) {
		html_text(h, part);
		(void)fputs(text ? "        " : "", h->out);
	}
}

static void put_source(const struct html *h, const struct analysis_line *line)
{
	const struct profile_samples *s = profile_find_samples(h->r.p, line->selected);
	const char *at = s ? s->source : NULL;
	size_t length;
	unsigned long here = source_line_number(line->selected, &length);
	struct source_line l;
	bool some = false;

	while (source_next(&at, &l)) {
		_cleanup_free_ char *text = xstrndup(l.text, l.length);

		(void)fprintf(h->out, "%s%s%5lu  ", some ? "" : "<pre>",
			      l.number == here ? "<span class=here>" : "", l.number);
		put_code(h, text);
		(void)fputs(l.number == here ? "</span>\n" : "\n", h->out);
		some = true;
	}
	if (some)
		(void)fputs("</pre>\n", h->out);
}

static void put_figure(const struct html *h, size_t at, size_t i, const struct html_scale *scale)
{
	const struct analysis_point *point = &h->r.a->points[at];
	const struct analysis_line *line = &point->lines[i];
	_cleanup_free_ char *verdict = text_verdict_long(line);

	(void)fprintf(h->out, "<figure id=p%zul%zu>\n<figcaption><b class=name>", at, i);
	html_line_name(h, line->selected);
	(void)fputs("</b><br><span class=dim>", h->out);
	html_text(h, verdict);
	(void)fputs("</span></figcaption>\n", h->out);
	html_curve(h, scale, line);
	(void)fputs("<output></output>\n<details><summary>Details</summary>\n", h->out);
	put_source(h, line);
	put_cells(h, line);
	html_latencies(h, point, line);
	put_copies(h, line);
	(void)fputs("</details>\n</figure>\n", h->out);
}

void html_lines(const struct html *h, size_t at)
{
	const struct analysis_point *point = &h->r.a->points[at];
	struct html_scale scale = html_scale(point);

	put_table(h, at);
	(void)fputs("<div class=curves>\n", h->out);
	for (size_t i = 0; i < point->n_lines; i++)
		put_figure(h, at, i, &scale);
	(void)fputs("</div>\n", h->out);
}
