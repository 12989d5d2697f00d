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
#include <string.h>
#include <time.h>

void html_text(const struct html *h, const char *s)
{
	_cleanup_free_ char *clean = text_clean(&h->r, s);

	for (const char *c = clean; *c; c++)
		switch (*c) {
		case '&':
			(void)fputs("&amp;", h->out);
			break;
		case '<':
			(void)fputs("&lt;", h->out);
			break;
		case '>':
			(void)fputs("&gt;", h->out);
			break;
		case '"':
			(void)fputs("&quot;", h->out);
			break;
		case '\'':
			(void)fputs("&#39;", h->out);
			break;
		default:
			(void)fputc(*c, h->out);
		}
}

void html_line_name(const struct html *h, const char *selected)
{
	_cleanup_free_ char *name = text_line_name(&h->r, selected, SIZE_MAX);

	html_text(h, name);
}

void html_notes(struct html *h)
{
	struct notes *all = h->r.notes;

	if (all->n)
		(void)fputs("<ul class=notes>\n", h->out);
	for (size_t i = 0; i < all->n; i++) {
		(void)fprintf(h->out, "<li class=%s>%s", note_kind_name(all->list[i].kind),
			      all->list[i].kind == NOTE_WARNING ? "Warning: " : "");
		html_text(h, all->list[i].text);
		(void)fputc('\n', h->out);
	}
	if (all->n)
		(void)fputs("</ul>\n", h->out);
	notes_free(all);
	*all = (struct notes){0};
}

void html_begin(const struct html *h, const char *title)
{
	(void)fputs(REPORT_HTML_BEGINS
		    "<html lang=en>\n<meta charset=utf-8>\n<meta "
		    "http-equiv=Content-Security-Policy content=\"default-src 'none'; "
		    "base-uri 'none'; form-action 'none'; style-src '" PAGE_CSS_HASH
		    "'; script-src '" PAGE_JS_HASH "'\">\n"
		    "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>",
		    h->out);
	html_text(h, title);
	(void)fprintf(h->out, " - cozbpf</title>\n<style>%s</style>\n", page_css);
}

void html_end(const struct html *h)
{
	(void)fprintf(h->out, "<script>%s</script>\n", page_js);
}

static void put_time(const struct html *h, uint64_t ns)
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[NUMBER_ROOM];

	/* A file can say any time. */
	if (ns && gmtime_r(&s, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &tm))
		(void)fprintf(h->out, "%s &middot; ", text);
}

/* What was profiled, when, for how long, and where. */
static void put_head(const struct html *h)
{
	const struct profile *p = h->r.p;
	const struct profile_startup *s = p->n_runs ? &p->runs[0] : NULL;
	char text[NUMBER_ROOM];

	(void)fputs("<header>\n<h1>", h->out);
	html_text(h, s && s->command ? s->command : "A causal profile");
	(void)fputs("</h1>\n<p class=dim>", h->out);
	if (s)
		put_time(h, s->time);
	text_duration(h->r.a->elapsed_ns, text);
	(void)fprintf(h->out, "%zu experiments, %s, in %zu run%s", p->n_experiments, text,
		      p->n_runs, p->n_runs == 1 ? "" : "s");
	if (s && s->host) {
		(void)fputs(" &middot; on ", h->out);
		html_text(h, s->host);
	}
	if (s && s->cpus)
		(void)fprintf(h->out, " with %.0f CPU%s", (double)s->cpus, s->cpus == 1 ? "" : "s");
	if (s && s->kernel) {
		(void)fputs(", Linux ", h->out);
		html_text(h, s->kernel);
	}
	if (h->r.directory.n) {
		_cleanup_free_ char *directory = xstrndup(h->r.directory.name, h->r.directory.n);

		(void)fputs("<br>Files are under <code>", h->out);
		html_text(h, directory);
		(void)fputs("</code>", h->out);
	}
	(void)fputs("\n</header>\n", h->out);
}

static void put_light(const struct html *h)
{
	_cleanup_free_ char *words = NULL;
	enum light light = fidelity_light(h->r.a, h->r.p->n_experiments, &words);

	(void)fprintf(h->out, "<p class=\"light %s\">Fidelity: ", light_name(light));
	html_text(h, words);
	(void)fputc('\n', h->out);
}

static void put_books(const struct html *h)
{
	struct book_row rows[MAX_BOOK_ROWS];
	size_t n = book_rows(h->r.a, rows);
	char text[NUMBER_ROOM];

	if (!n)
		return;
	(void)fputs("<details><summary>The books of all experiments</summary>\n<table>\n", h->out);
	for (size_t i = 0; i < n; i++) {
		text_duration(rows[i].ns, text);
		(void)fprintf(h->out, "<tr><th scope=row>%s<td class=n>%s<td>%s\n", rows[i].name,
			      text, rows[i].words);
	}
	(void)fputs("</table>\n</details>\n", h->out);
}

static void put_help(const struct html *h)
{
	static const struct {
		const char *points, *name, *words;
	} shapes[] = {
		{"20,100 220,20", "It rises",
		 "The program waits for this line. Each bit that it gets faster is worth as much "
		 "as the first."},
		{"20,100 110,40 220,40", "It rises, then stays",
		 "Up to the bend the program waits for this line, beyond it for something else. "
		 "More speed than that is wasted."},
		{"20,70 220,70", "It is flat",
		 "The program waits for something else, however much time this line takes. Leave "
		 "it alone."},
		{"20,40 220,100", "It falls",
		 "If this line gets faster, threads meet more often where they get in each other's "
		 "way: a lock, a cache line, a queue. Look there."},
	};

	(void)fputs("<details class=help><summary>How to read a curve</summary>\n<p>To the right: "
		    "how much faster a line is made. Upwards: how much less "
		    "time a unit of work takes then. The line is the curve that fits all "
		    "experiments, the band where it lies with 95 % certainty; a dot "
		    "is what the experiments at one speedup say for themselves, with its "
		    "interval.\n<div class=shapes>\n",
		    h->out);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		(void)fprintf(h->out,
			      "<div><svg viewBox=\"0 0 240 120\" aria-hidden=true><path class=zero "
			      "d=\"M20 %s h200\"/><polyline class=curve "
			      "points=\"%s\"/></svg>"
			      "<b>%s.</b> %s</div>\n",
			      i == 3   ? "40"
			      : i == 2 ? "70"
				       : "100",
			      shapes[i].points, shapes[i].name, shapes[i].words);
	(void)fputs("</div>\n</details>\n", h->out);
}

static void put_answer(const struct html *h, const struct analysis_point *point)
{
	_cleanup_free_ char *text = answer(&h->r, point);

	(void)fputs("<p class=answer>", h->out);
	html_text(h, text);
	(void)fputc('\n', h->out);
}

static void put_point(struct html *h, size_t at)
{
	const struct analysis_point *point = &h->r.a->points[at];

	(void)fprintf(h->out, "<section id=p%zu>\n<h2>%s point <span class=name>", at,
		      point->kind == PROFILE_LATENCY ? "Latency" : "Progress");
	html_text(h, point->name);
	(void)fprintf(h->out, "</span> <small>%.0f %s</small></h2>\n", (double)point->visits,
		      point->kind == PROFILE_THROUGHPUT		       ? "visits"
		      : point->intervals || !analysis_was_tried(point) ? "intervals"
								       : "departures");
	put_answer(h, point);
	if (analysis_was_tried(point) || analysis_has_slopes(point))
		html_lines(h, at);
	if (analysis_has_classes(point))
		html_classes(h, point);
	if (point->intervals)
		latency_head_notes(&h->r, point->intervals);
	table_notes(&h->r, point);
	if (point->intervals)
		latency_notes(&h->r, point);
	html_notes(h);
	html_rate(h, point);
	(void)fputs("</section>\n", h->out);
}

static void put_fidelity(struct html *h)
{
	(void)fputs("<section id=fidelity>\n<h2>How far this can be trusted</h2>\n", h->out);
	put_light(h);
	footer_notes(&h->r);
	html_notes(h);
	put_books(h);
	(void)fputs("</section>\n", h->out);
}

int report_html(FILE *out, const struct profile *p, const struct analysis *a,
		const struct report_hints *hints)
{
	static const struct report_hints no_hints;
	struct notes notes = {0};
	struct html h = {
		.out = out,
		.r = {.out = out,
		      .p = p,
		      .a = a,
		      .h = hints ? hints : &no_hints,
		      .utf8 = true,
		      .top = SIZE_MAX,
		      .notes = &notes,
		      .directory = text_common_directory(a)},
	};

	html_begin(&h, p->n_runs && p->runs[0].command ? p->runs[0].command : "causal profile");
	put_head(&h);
	(void)fputs("<main>\n", out);
	if (report_is_empty(a)) {
		(void)fputs("<p class=answer>The profile is empty.\n", out);
		empty_notes(&h.r);
		html_notes(&h);
	} else {
		for (size_t i = 0; i < a->n_points; i++)
			if (a->points[i].visits)
				put_point(&h, i);
		silent_notes(&h.r);
		(void)intervals_missing(&h.r);
		html_notes(&h);
		put_help(&h);
	}
	if (p->n_experiments)
		put_fidelity(&h);
	(void)fputs("</main>\n", out);
	html_end(&h);
	return fflush(out) ? -errno : 0;
}
