// SPDX-License-Identifier: BSD-2-Clause
/* The report as one HTML file that needs nothing else: no server, no other file, no request. Its
 * security policy allows its own style and script by their hashes and nothing besides, so that text
 * of a profile could do nothing even if it were taken for markup. */
#include "report/html.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "page.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

void html_text(const struct report *r, const char *s)
{
	static const char *const references[] = {['&'] = "&amp;",
						 ['<'] = "&lt;",
						 ['>'] = "&gt;",
						 ['"'] = "&quot;",
						 ['\''] = "&#39;"};
	_cleanup_free_ char *clean = text_clean(r, s);

	for (const unsigned char *c = (const unsigned char *)clean; *c; c++)
		if (*c < sizeof(references) / sizeof(references[0]) && references[*c])
			(void)fputs(references[*c], r->out);
		else
			(void)fputc(*c, r->out);
}

void html_put(const struct report *r, const char *markup, ...)
{
	va_list texts;

	va_start(texts, markup);
	for (const char *s; (s = strstr(markup, "%s")); markup = s + 2) {
		(void)fwrite(markup, 1, (size_t)(s - markup), r->out);
		html_text(r, va_arg(texts, const char *));
	}
	va_end(texts);
	(void)fputs(markup, r->out);
}

void html_effect(const struct report *r, struct analysis_change c)
{
	html_put(r, "<td class=n>%s", text_effect(r, c).text);
}

void html_notes(const struct report *r)
{
	struct notes *all = r->notes;

	if (all->n)
		(void)fputs("<ul class=notes>\n", r->out);
	for (size_t i = 0; i < all->n; i++) {
		(void)fprintf(r->out, "<li class=%s>%s", note_kind_names[all->list[i].kind],
			      all->list[i].kind == NOTE_WARNING ? "Warning: " : "");
		html_text(r, all->list[i].text);
		(void)fputc('\n', r->out);
	}
	if (all->n)
		(void)fputs("</ul>\n", r->out);
	notes_free(all);
}

void html_begin(const struct report *r, const char *title)
{
	html_put(r,
		 REPORT_HTML_BEGINS
		 "<html lang=en>\n<meta charset=utf-8>\n<meta "
		 "http-equiv=Content-Security-Policy content=\"default-src 'none'; "
		 "base-uri 'none'; form-action 'none'; style-src '" PAGE_CSS_HASH
		 "'; script-src '" PAGE_JS_HASH "'\">\n"
		 "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
		 "<title>%s - cozbpf</title>\n",
		 title);
	(void)fprintf(r->out, "<style>%s</style>\n", page_css);
}

void html_end(const struct report *r)
{
	(void)fprintf(r->out, "<script>%s</script>\n", page_js);
}

/* What was profiled, when, for how long, and where. */
static void put_head(const struct report *r)
{
	_cleanup_free_ char *times = run_times_text(r);
	const struct profile *p = r->p;
	const struct profile_startup *s = p->n_runs ? &p->runs[0] : NULL;

	html_put(r, "<header>\n<h1>%s</h1>\n<p class=dim>",
		 what_was_profiled(p) ? what_was_profiled(p) : "A causal profile");
	if (s && s->time)
		(void)fprintf(r->out, "%s UTC &middot; ", text_time(s->time / 1000000000).text);
	(void)fprintf(r->out, "%zu experiment%s, %s, in %zu run%s", p->n_experiments,
		      plural(p->n_experiments), text_duration(r->a->elapsed_ns).text, p->n_runs,
		      plural(p->n_runs));
	if (s && s->host)
		html_put(r, " &middot; on %s", s->host);
	if (s && s->cpus)
		(void)fprintf(r->out, " with %.0f CPU%s", (double)s->cpus, plural(s->cpus));
	if (s && s->kernel)
		html_put(r, ", Linux %s", s->kernel);
	if (r->directory.n) {
		_cleanup_free_ char *directory = xstrndup(r->directory.name, r->directory.n);

		html_put(r, "<br>Files are under <code>%s</code>", directory);
	}
	if (times)
		html_put(r, "<br>%s", times);
	(void)fputs("\n</header>\n", r->out);
}

static void put_books(const struct report *r)
{
	struct book_row rows[MAX_BOOK_ROWS];
	size_t n = book_rows(r->a, rows);

	if (!n)
		return;
	(void)fputs("<details><summary>The books of all experiments</summary>\n<table>\n", r->out);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(r->out, "<tr><th scope=row>%s<td class=n>%s<td>%s\n", rows[i].name,
			      text_duration(rows[i].ns).text, rows[i].words);
	(void)fputs("</table>\n</details>\n", r->out);
}

static void put_help(const struct report *r)
{
	static const struct {
		const char *points, *zero, *name, *words;
	} shapes[] = {
		{"20,100 220,20", "100", "It rises",
		 "The program waits for this line. Each bit that it gets faster is worth as much "
		 "as the first."},
		{"20,100 110,40 220,40", "100", "It rises, then stays",
		 "Up to the bend the program waits for this line, beyond it for something else. "
		 "More speed than that is wasted."},
		{"20,70 220,70", "70", "It is flat",
		 "The program waits for something else, however much time this line takes. Leave "
		 "it alone."},
		{"20,40 220,100", "40", "It falls",
		 "If this line gets faster, threads meet more often where they get in each other's "
		 "way: a lock, a cache line, a queue. Look there."},
	};

	(void)fputs("<details class=help><summary>How to read a curve</summary>\n<p>To the right: "
		    "how much faster a line is made. Upwards: how much less "
		    "time a unit of work takes then. The line is the curve that fits all "
		    "experiments, the band where it lies with 95 % certainty; a dot "
		    "is what the experiments at one speedup say for themselves, with its "
		    "interval.\n<div class=shapes>\n",
		    r->out);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		(void)fprintf(r->out,
			      "<div><svg viewBox=\"0 0 240 120\" aria-hidden=true><path class=zero "
			      "d=\"M20 %s h200\"/><polyline class=curve "
			      "points=\"%s\"/></svg>"
			      "<b>%s.</b> %s</div>\n",
			      shapes[i].zero, shapes[i].points, shapes[i].name, shapes[i].words);
	(void)fputs("</div>\n</details>\n", r->out);
}

static void put_point(const struct report *r, size_t at)
{
	const struct analysis_point *point = &r->a->points[at];
	_cleanup_free_ char *said = answer(r, point);

	(void)fprintf(r->out, "<section id=p%zu>\n<h2>%s point <span class=name>", at,
		      point->kind == PROFILE_LATENCY ? "Latency" : "Progress");
	html_text(r, point->name);
	(void)fprintf(r->out, "</span> <small>%.0f %s%s</small></h2>\n", (double)point->visits,
		      what_is_counted(point), plural(point->visits));
	html_put(r, "<p class=answer>%s\n", said);
	if (analysis_was_tried(point) || analysis_has_slopes(point))
		html_lines(r, at);
	if (analysis_has_classes(point))
		html_classes(r, point);
	if (point->intervals)
		latency_head_notes(r, point->intervals);
	table_notes(r, point);
	if (point->intervals)
		latency_notes(r, point);
	html_notes(r);
	html_rate(r, point);
	(void)fputs("</section>\n", r->out);
}

static void put_fidelity(const struct report *r)
{
	_cleanup_free_ char *words = NULL;
	enum light light = fidelity_light(r->a, r->p->n_experiments, &words);

	(void)fputs("<section id=fidelity>\n<h2>How far this can be trusted</h2>\n", r->out);
	html_put(r, "<p class=\"light %s\">Fidelity: %s\n", light_names[light], words);
	footer_notes(r);
	html_notes(r);
	put_books(r);
	(void)fputs("</section>\n", r->out);
}

int report_html(FILE *out, const struct profile *p, const struct analysis *a,
		const struct report_hints *hints)
{
	struct notes notes = {0};
	struct report r = report_make(out, p, a, hints, &notes);

	html_begin(&r, what_was_profiled(p) ? what_was_profiled(p) : "causal profile");
	put_head(&r);
	(void)fputs("<main>\n", out);
	if (report_is_empty(a)) {
		(void)fputs("<p class=answer>The profile is empty.\n", out);
		empty_notes(&r);
		html_notes(&r);
	} else {
		for (size_t i = 0; i < a->n_points; i++)
			if (a->points[i].visits)
				put_point(&r, i);
		silent_notes(&r);
		(void)intervals_missing(&r);
		html_notes(&r);
		put_help(&r);
	}
	if (p->n_experiments) {
		put_fidelity(&r);
	} else {
		jit_notes(&r);
		html_notes(&r);
	}
	(void)fputs("</main>\n", out);
	html_end(&r);
	return fflush(out) ? -errno : 0;
}
