// SPDX-License-Identifier: BSD-2-Clause
/* What became of a program, in sentences and tables. */
#include "report/diff.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "report/html.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLD 1 /* into analysis_curve_speedups: 50 % */
#define NO_DIFFERENCE "no sure difference"

/* How much faster the program became. The caller's. */
static char *gain_words(const struct compare_point *p)
{
	const char *name = p->after->name, *unit = what_shrinks(p->after);
	struct words before = text_duration(p->before_ns), after = text_duration(p->after_ns);
	struct analysis_change g = p->gain;

	if (isnan(g.effect))
		return xasprintf("The %s of '%s' is not known of both profiles.", unit, name);
	if (isnan(g.low))
		return xasprintf("The %s of '%s' was %s and is %s; how sure that is, too few "
				 "%s tell.",
				 unit, name, before.text, after.text,
				 p->slopes_only ? "windows" : "experiments at 0 %");
	if (g.low <= 0 && g.high >= 0)
		return xasprintf("The %s of '%s' was %s and is %s: %s (%s less).", unit, name,
				 before.text, after.text, NO_DIFFERENCE, text_interval(g, 1).text);
	return xasprintf("The program became %s: the %s of '%s' was %s and is %s, %s %s.",
			 g.effect > 0 ? "faster" : "slower", unit, name, before.text, after.text,
			 text_interval(g, g.effect > 0 ? 1 : -1).text,
			 g.effect > 0 ? "less" : "more");
}

static const char *const outcome_names[] = {[PROMISE_UNKNOWN] = "unknown",
					    [PROMISE_CAME_TRUE] = "came true",
					    [PROMISE_OPEN] = "open",
					    [PROMISE_BROKEN] = "did not come true"};

static char *promise_words(const struct diff *d, const struct compare_point *p)
{
	static const char *const ends[] = {
		[PROMISE_CAME_TRUE] = "The prediction came true.",
		[PROMISE_OPEN] =
			"The two agree, but the intervals are so wide that nearly anything would.",
		[PROMISE_BROKEN] = "The prediction did not come true."};
	const char *line = d->changed;
	struct promise s = compare_promise(p, d->changed, d->speedup);

	if (s.outcome == PROMISE_UNKNOWN && !isnan(s.predicted.low))
		return xasprintf(
			"What came of %s is not known: there are too few experiments at 0 %%.",
			line);
	if (s.outcome == PROMISE_UNKNOWN)
		return xasprintf("What a %.0f %% faster %s would be worth was not predicted: the "
				 "line was tried too seldom.",
				 100 * d->speedup, line);
	return xasprintf(
		"%s was made %.0f %% faster: %s less time was predicted, and %s came of it%s. %s",
		line, 100 * d->speedup, text_interval(s.predicted, 1).text,
		text_interval(s.gained, 1).text,
		s.corrected
			? ", the machine's own speed taken out by the CPU time of all other lines"
			: "",
		ends[s.outcome]);
}

/* "hot.c:10", or "hot.c:10 -> 12" of one that moved. */
static char *line_words(const struct report *r, const struct compare_line *l, size_t columns)
{
	_cleanup_free_ char *old = text_line_name(r, l->before->selected, columns),
			    *new = text_line_name(r, l->after->selected, columns);

	return strcmp(l->before->selected, l->after->selected) == 0
		       ? TAKE_PTR(new)
		       : xasprintf("%s -> %s", old, new);
}

#define CELLS 3

/* Before, after, and the difference. */
static void cells_of(const struct compare_point *p, const struct compare_line *l,
		     struct analysis_change ret[CELLS])
{
	ret[0] = p->slopes_only ? l->before->slope : analysis_shown(l->before, TOLD);
	ret[1] = p->slopes_only ? l->after->slope : analysis_shown(l->after, TOLD);
	ret[2] = p->slopes_only ? l->slope : l->difference[TOLD];
}

static const char *difference_words(const struct compare_point *p, const struct compare_line *l)
{
	struct analysis_change cells[CELLS];

	cells_of(p, l, cells);
	return l->differs ? "differs" : isnan(cells[2].effect) ? "not known" : NO_DIFFERENCE;
}

static void add_row(const struct report *r, struct text_table *tb, const struct compare_point *p,
		    const struct compare_line *l)
{
	struct analysis_change cells[CELLS];
	struct libscols_line *row = text_row(tb);
	_cleanup_free_ char *name = line_words(r, l, SIZE_MAX),
			    *function =
				    text_clean(r, l->after->function ? l->after->function : "-");

	text_cell(row, 0, name);
	text_cell(row, 1, function);
	cells_of(p, l, cells);
	for (size_t i = 0; i < CELLS; i++)
		text_change_cell(r, row, 2 + i, cells[i]);
	text_cell(row, 5, difference_words(p, l));
}

static void print_table(const struct report *r, const struct compare_point *p)
{
	struct text_table tb = text_table(r);

	text_column(&tb, "line", TEXT_NAME, 0);
	text_column(&tb, "function", TEXT_NAME, 3);
	text_column(&tb, "before", TEXT_NUMBER, 2);
	text_column(&tb, "after", TEXT_NUMBER, 1);
	text_column(&tb, "difference", TEXT_NUMBER, 0);
	text_column(&tb, "verdict", TEXT_WORDS, 0);
	for (size_t i = 0; i < p->n_lines; i++)
		add_row(r, &tb, p, &p->lines[i]);
	text_table_end(&tb);
}

#define TABLE_PARTS \
	"before, after, and the difference with an interval that holds for all lines together."

static const char *table_words(const struct compare_point *p)
{
	return p->slopes_only ? "Slopes in % (a 10 % faster line takes a tenth of its slope off "
				"the time per visit): " TABLE_PARTS
			      : "Effects of a 50 % faster line, in %: " TABLE_PARTS;
}

void diff_print(FILE *out, const struct diff *d, int width)
{
	struct report r = report_text(out, d->after, d->b, NULL, width);

	for (size_t i = 0; i < d->c->n_points; i++) {
		const struct compare_point *p = &d->c->points[i];
		_cleanup_free_ char *gain = gain_words(p),
				    *promise = d->changed ? promise_words(d, p) : NULL;

		if (i)
			(void)fputc('\n', out);
		paragraph(&r, 0, "%s", gain);
		if (promise)
			paragraph(&r, 0, "%s", promise);
		if (!p->n_lines)
			continue;
		(void)fputc('\n', out);
		paragraph(&r, 0, "%s", table_words(p));
		print_table(&r, p);
	}
}

static void add_changes(struct json_object *o, struct analysis_change before,
			struct analysis_change after, struct analysis_change difference)
{
	json_add_change(o, "before", before);
	json_add_change(o, "after", after);
	json_add_change(o, "difference", difference);
}

static void add_line(struct json_object *lines, const struct compare_line *l)
{
	struct json_object *o = json_append_new(lines), *slope = json_new(), *at;

	json_add_string(o, "before", l->before->selected);
	json_add_string(o, "after", l->after->selected);
	json_add_bool(o, "differs", l->differs);
	json_add(o, "slope", slope);
	add_changes(slope, l->before->slope, l->after->slope, l->slope);
	at = json_add_array(o, "at");
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct json_object *x = json_append_new(at);

		json_add_number(x, "speedup", analysis_curve_speedups[k]);
		add_changes(x, analysis_shown(l->before, k), analysis_shown(l->after, k),
			    l->difference[k]);
	}
}

static struct json_object *promise_of(const struct diff *d, const struct compare_point *p)
{
	struct promise s = compare_promise(p, d->changed, d->speedup);
	struct json_object *o = json_new();

	json_add_string(o, "line", d->changed);
	json_add_number(o, "speedup", d->speedup);
	json_add_change(o, "predicted", s.predicted);
	json_add_change(o, "gained", s.gained);
	json_add_number(o, "gap", s.gap);
	json_add_number(o, "gap_half", s.gap_half);
	json_add_string(o, "outcome", outcome_names[s.outcome]);
	return o;
}

static void add_point(struct json_object *points, const struct diff *d,
		      const struct compare_point *p)
{
	_cleanup_free_ char *gain = gain_words(p);
	struct json_object *o = json_append_new(points), *lines;

	utf8_make_printable(gain, true);
	json_add_string(o, "name", p->after->name);
	json_add_string(o, "kind", point_kind_name(p->after->kind));
	json_add_number(o, "before_ns", p->before_ns);
	json_add_number(o, "after_ns", p->after_ns);
	json_add_change(o, "gain", p->gain);
	json_add_string(o, "answer", gain);
	if (d->changed)
		json_add(o, "promise", promise_of(d, p));
	lines = json_add_array(o, "lines");
	for (size_t j = 0; j < p->n_lines; j++)
		add_line(lines, &p->lines[j]);
}

void diff_json(FILE *out, const struct diff *d)
{
	struct json_object *root = json_new(), *points;

	json_add_number(root, "schema", 1);
	points = json_add_array(root, "points");
	for (size_t i = 0; i < d->c->n_points; i++)
		add_point(points, d, &d->c->points[i]);
	json_print(out, root, JSON_C_TO_STRING_NOSLASHESCAPE);
}

static void put_row(const struct report *r, const struct compare_point *p, size_t i)
{
	const struct compare_line *l = &p->lines[i];
	struct analysis_change cells[CELLS];
	_cleanup_free_ char *name = line_words(r, l, SIZE_MAX);

	cells_of(p, l, cells);
	(void)fprintf(r->out, "<tr data-v=\"%s\"><td class=n>%zu<td class=name>",
		      difference_words(p, l), i + 1);
	html_put(r, "%s<td class=name>%s", name, l->after->function ? l->after->function : "-");
	for (size_t k = 0; k < CELLS; k++)
		html_effect(r, cells[k]);
	(void)fprintf(r->out, "<td>%s\n", difference_words(p, l));
}

int diff_html(FILE *out, const struct diff *d)
{
	struct report r = report_make(out, d->after, d->b, NULL, NULL);

	html_begin(&r, "Two profiles");
	(void)fputs("<header>\n<h1>Before and after</h1>\n</header>\n<main>\n", out);
	for (size_t i = 0; i < d->c->n_points; i++) {
		const struct compare_point *p = &d->c->points[i];
		_cleanup_free_ char *gain = gain_words(p),
				    *promise = d->changed ? promise_words(d, p) : NULL;

		html_put(&r, "<section>\n<p class=answer>%s", gain);
		if (promise)
			html_put(&r, " %s", promise);
		if (!p->n_lines) {
			(void)fputs("</section>\n", out);
			continue;
		}
		html_put(&r,
			 "\n<div class=scroll><table class=lines><caption>%s"
			 "</caption>\n<thead><tr><th scope=col class=n>#<th scope=col>line<th "
			 "scope=col>function<th scope=col class=n>before<th "
			 "scope=col class=n>after<th scope=col class=n>difference<th "
			 "scope=col>verdict</thead>\n<tbody>\n",
			 table_words(p));
		for (size_t j = 0; j < p->n_lines; j++)
			put_row(&r, p, j);
		(void)fputs("</tbody></table></div>\n</section>\n", out);
	}
	(void)fputs("</main>\n", out);
	html_end(&r);
	return fflush(out) ? -errno : 0;
}
