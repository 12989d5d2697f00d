// SPDX-License-Identifier: BSD-2-Clause
/* Of the HTML report: the table of a point's lines, and their figures. */
#include "report/html.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "profile/source_text.h"

#include <string.h>

#define MAX_COPIES 5 /* inlined ones that are told of a line */

static void put_row(const struct report *r, size_t at, size_t i)
{
	const struct analysis_point *point = &r->a->points[at];
	const struct analysis_line *line = &point->lines[i];
	_cleanup_free_ char *name = text_line_name(r, line->selected, SIZE_MAX);

	(void)fprintf(r->out,
		      "<tr data-v=\"%s\" data-f=p%zul%zu><td class=n>%zu<td class=name><a "
		      "href=#p%zul%zu>",
		      verdict_names[line->verdict], at, i, i + 1, at, i);
	html_put(r, "%s</a><td class=name>%s<td class=n>%s", name,
		 line->function ? line->function : "-", text_share(line->share).text);
	if (analysis_has_slopes(point))
		html_effect(r, line->slope);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		html_effect(r, analysis_shown(line, k));
	(void)fprintf(r->out, "<td class=\"v-%.*s\">%s<td class=n>%zu\n",
		      (int)strcspn(verdict_names[line->verdict], " "), verdict_names[line->verdict],
		      text_verdict(line, point->speed.spins).text, line->experiments);
}

static void put_table(const struct report *r, size_t at)
{
	const struct analysis_point *point = &r->a->points[at];

	(void)fprintf(r->out,
		      "<div class=scroll><table class=lines>\n<caption>By how many %% the %s "
		      "shrinks if the line runs 25, 50, 75, 100 %% faster, with 95 "
		      "%% "
		      "intervals; the surest gain first</caption>\n<thead><tr><th scope=col "
		      "class=n>#<th scope=col>line<th scope=col>function<th scope=col "
		      "class=n>share%s<th scope=col class=n>25 %%<th "
		      "scope=col class=n>50 %%<th "
		      "scope=col class=n>75 %%<th scope=col class=n>100 %%<th "
		      "scope=col>verdict<th scope=col class=n>experiments</thead>\n<tbody>\n",
		      what_shrinks(point),
		      analysis_has_slopes(point) ? "<th scope=col class=n>slope" : "");
	for (size_t i = 0; i < point->n_lines; i++)
		put_row(r, at, i);
	(void)fputs("</tbody></table></div>\n", r->out);
}

void html_classes(const struct report *r, const struct analysis_point *point)
{
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = class_lines(point, &n);

	(void)fprintf(r->out,
		      "<div class=scroll><table>\n<caption>%s</caption>\n<thead><tr><th "
		      "scope=col>line",
		      CLASSES_CAPTION);
	for (size_t k = 0; k < PROFILE_CLASSES; k++)
		(void)fprintf(r->out, "<th scope=col class=n>%s (%s)", class_titles[k],
			      class_length(point, k).text);
	(void)fputs("</thead>\n<tbody>\n", r->out);
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *name = text_line_name(r, lines[i]->selected, SIZE_MAX);

		html_put(r, "<tr><td class=name>%s", name);
		for (size_t k = 0; k < PROFILE_CLASSES; k++)
			html_effect(r, lines[i]->in_class[k]);
		(void)fputc('\n', r->out);
	}
	(void)fputs("</tbody></table></div>\n", r->out);
}

/* The script reads these as well. */
static void put_cells(const struct report *r, const struct analysis_line *line)
{
	(void)fputs("<table class=cells><thead><tr><th>faster, %<th>effect, "
		    "%<th>from<th>to<th>experiments<tbody>",
		    r->out);
	for (size_t i = 0; i < line->n_cells; i++) {
		const struct analysis_cell *c = &line->cells[i];

		if (!(c->speedup > 0))
			continue;
		(void)fprintf(r->out, "\n<tr><td>%.0f<td>%s<td>%s<td>%s<td>%zu", 100 * c->speedup,
			      text_percent(c->change.effect, "-").text,
			      text_percent(c->change.low, "-").text,
			      text_percent(c->change.high, "-").text, c->experiments);
	}
	(void)fputs("</table>\n", r->out);
}

/* Where its code was inlined, and what into it. */
static void put_copies(const struct report *r, const struct analysis_line *line)
{
	const struct profile_samples *s = profile_find_samples(r->p, line->selected);
	_cleanup_free_ char *text = s && s->inlined ? xstrdup(s->inlined) : NULL;
	struct inlined_copy c;
	char *at = text;
	size_t n = 0;

	while (at && n < MAX_COPIES && inlined_next(&at, &c)) {
		(void)fprintf(
			r->out, "%s<li>%.1f %%: ",
			n++ ? "" : "<p>Inlined code, with its share of the line's samples\n<ul>\n",
			s->count && c.count < s->count ? 100 * (double)c.count / (double)s->count
						       : 100.0);
		for (size_t i = 0; i < c.n; i++)
			html_put(r, i ? " in <code>%s</code>" : "<code>%s</code>", c.lines[i]);
		(void)fputc('\n', r->out);
	}
	if (n)
		(void)fputs("</ul>\n", r->out);
}

/* Tabs are text here, and nowhere else. */
static void put_code(const struct report *r, char *text)
{
	for (char *part; (part = strsep(&text, "\t"));) {
		html_text(r, part);
		(void)fputs(text ? "        " : "", r->out);
	}
}

static void put_source(const struct report *r, const struct analysis_line *line)
{
	const struct profile_samples *s = profile_find_samples(r->p, line->selected);
	const char *at = s ? s->source : NULL;
	size_t length;
	unsigned long here = source_line_number(line->selected, &length);
	struct source_line l;
	bool some = false;

	while (source_next(&at, &l)) {
		_cleanup_free_ char *text = xstrndup(l.text, l.length);

		(void)fprintf(r->out, "%s%s%5lu  ", some ? "" : "<pre>",
			      l.number == here ? "<span class=here>" : "", l.number);
		put_code(r, text);
		(void)fputs(l.number == here ? "</span>\n" : "\n", r->out);
		some = true;
	}
	if (some)
		(void)fputs("</pre>\n", r->out);
}

static void put_figure(const struct report *r, size_t at, size_t i, const struct html_scale *scale)
{
	const struct analysis_point *point = &r->a->points[at];
	const struct analysis_line *line = &point->lines[i];
	_cleanup_free_ char *name = text_line_name(r, line->selected, SIZE_MAX),
			    *verdict = text_verdict_long(line);

	(void)fprintf(r->out, "<figure id=p%zul%zu>\n<figcaption><b class=name>", at, i);
	html_put(r, "%s</b><br><span class=dim>%s</span></figcaption>\n", name, verdict);
	html_curve(r, scale, line);
	(void)fputs("<output></output>\n<details><summary>Details</summary>\n", r->out);
	put_source(r, line);
	put_cells(r, line);
	html_latencies(r, point, line);
	put_copies(r, line);
	(void)fputs("</details>\n</figure>\n", r->out);
}

void html_lines(const struct report *r, size_t at)
{
	const struct analysis_point *point = &r->a->points[at];
	struct html_scale scale = html_scale(point);

	put_table(r, at);
	(void)fputs("<div class=curves>\n", r->out);
	for (size_t i = 0; i < point->n_lines; i++)
		put_figure(r, at, i, &scale);
	(void)fputs("</div>\n", r->out);
}
