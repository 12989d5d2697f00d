// SPDX-License-Identifier: BSD-2-Clause
/* The instructions of a function as one HTML file. */
#include "report/annotate_rows.h"
#include "report/html.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define COLUMNS 7
/* Shades of instructions, by their share of the samples of the one with the most. */
#define SHADES 4
/* Of a function with more instructions, blocks without samples are left out: a browser has its
 * limits. */
#define MOST_INSTRUCTIONS 20000

struct page {
	struct annotate_rows x;
	double most;   /* samples of one instruction */
	size_t hidden; /* instructions left out since the last one */
};

static void put_line(struct page *g, uint32_t i)
{
	_cleanup_(annotate_line_free) struct annotate_line l = {0};
	_cleanup_free_ char *worth = NULL;

	if (!annotate_line_begins(&g->x, i, &l))
		return;
	(void)fprintf(g->x.r.out, "<tr class=source><th colspan=%d>", COLUMNS);
	html_put(&g->x.r, "<span class=dim>%s</span> %s", l.name, l.text);
	if (!l.effect)
		return;
	worth = annotate_worth(&g->x, l.effect);
	html_put(&g->x.r, "<div class=\"v-%s\">%s</div>",
		 l.effect->verdict == VERDICT_HELPS   ? "helps"
		 : l.effect->verdict == VERDICT_HURTS ? "hurts"
						      : "undecided",
		 worth);
}

static void put_samples(const struct page *g, double samples)
{
	const struct annotation *a = g->x.p->a;

	if (samples > 0)
		(void)fprintf(g->x.r.out, "<td class=n>%.0f<td class=n>%.1f %%", samples,
			      100 * annotate_share(a, samples));
	else
		(void)fputs("<td><td>", g->x.r.out);
}

/* A jump in the function leads to its target's row. */
static void put_code(const struct page *g, uint32_t i)
{
	const struct annotation *a = g->x.p->a;
	const struct code_instruction *x = &a->flow.all[i];
	size_t to = x->direct && x->flow != CODE_CALL ? flow_find(&a->flow, x->target) : SIZE_MAX;

	if (to != SIZE_MAX && a->flow.all[to].at == x->target)
		(void)fprintf(g->x.r.out, "<a href=#i%" PRIx64 ">", x->target);
	html_text(&g->x.r, annotation_text(a, g->x.p->of->object, i).text);
	if (to != SIZE_MAX && a->flow.all[to].at == x->target)
		(void)fputs("</a>", g->x.r.out);
}

static void put_instruction(struct page *g, const struct flow_block *b, uint32_t i)
{
	const struct annotation *a = g->x.p->a;
	double took = annotate_cycles(g->x.p, b, i);
	int shade = g->most > 0 ? (int)(SHADES * a->samples[i] / g->most + 0.999) : 0;

	put_line(g, i);
	(void)fprintf(g->x.r.out, "<tr id=i%" PRIx64 " class=shade%d>", a->flow.all[i].at, shade);
	put_samples(g, a->samples[i]);
	if (a->model.cycles)
		(void)fprintf(g->x.r.out, "<td class=n>%.1f", a->model.cycles[i]);
	else
		(void)fputs("<td>", g->x.r.out);
	if (isfinite(took))
		(void)fprintf(g->x.r.out, took < 99.95 ? "<td class=n>%.1f" : "<td class=n>%.0f",
			      took);
	else
		(void)fputs("<td>", g->x.r.out);
	(void)fprintf(g->x.r.out, "<td class=\"n name dim\">%" PRIx64 "<td class=name>",
		      a->flow.all[i].at);
	put_code(g, i);
	(void)fputs("<td>", g->x.r.out);
	if (annotate_share(a, a->samples[i]) >= ANNOTATE_WORTH_SHOWING) {
		_cleanup_free_ char *causes = annotate_causes(a->possible[i]);

		html_text(&g->x.r, causes);
	}
	(void)fputc('\n', g->x.r.out);
	if (a->called[i] > 0) {
		(void)fputs("<tr>", g->x.r.out);
		put_samples(g, a->called[i]);
		(void)fputs("<td><td><td><td class=dim>in what it calls<td>\n", g->x.r.out);
	}
}

static void put_head(struct page *g)
{
	const struct annotate_page *p = g->x.p;
	_cleanup_free_ char *name = annotate_function(&g->x);

	html_begin(&g->x.r, name);
	html_put(&g->x.r, "<header>\n<h1>%s</h1>\n<p class=dim>%s", name, p->of->image);
	(void)fprintf(g->x.r.out, " &middot; %" PRIu64 " of %" PRIu64 " samples (%.1f %%) of ",
		      p->of->samples, p->of->total,
		      100 * (double)p->of->samples / (double)p->of->total);
	html_text(&g->x.r, p->of->event);
	(void)fprintf(g->x.r.out, " &middot; %zu instructions in %zu blocks\n</header>\n<main>\n",
		      p->a->flow.n, p->a->flow.n_blocks);
	annotate_notes(&g->x);
	html_notes(&g->x.r);
	(void)fputs("<div class=scroll><table class=code>\n<thead><tr><th class=n>samples<th "
		    "class=n>share<th class=n>cycles<th "
		    "class=n>",
		    g->x.r.out);
	(void)fprintf(g->x.r.out, "%s<th class=n>address<th>code<th>may wait for</thead>\n",
		      p->a->executed ? "took" : "");
}

static void put_gap(struct page *g)
{
	if (g->hidden)
		(void)fprintf(g->x.r.out,
			      "<tr><td><td><td><td><td><td class=dim>... %zu instruction%s<td>\n",
			      g->hidden, g->hidden == 1 ? "" : "s");
	g->hidden = 0;
}

/* Blocks one by one: a function has thousands of rows. */
static void put_block(struct page *g, const struct flow_block *b)
{
	const struct annotation *a = g->x.p->a;
	_cleanup_free_ char *executed = annotate_executed(&g->x, b);
	bool shown = a->flow.n <= MOST_INSTRUCTIONS || annotate_block(a, b) > 0;

	for (uint32_t i = b->first; i < b->first + b->n; i++) {
		if (!shown || !annotate_is_shown(a, b, i)) {
			g->hidden++;
			continue;
		}
		put_gap(g);
		if (i == b->first)
			(void)fputs("<tbody>\n", g->x.r.out);
		if (executed) {
			(void)fprintf(g->x.r.out, "<tr><th colspan=%d class=dim>", COLUMNS);
			html_put(&g->x.r, "%s\n", executed);
			free(executed);
			executed = NULL;
		}
		put_instruction(g, b, i);
	}
}

int annotate_html(FILE *out, const struct annotate_page *p)
{
	struct notes notes = {0};
	struct page g = {.x = {.r = report_make(out, NULL, NULL, NULL, &notes), .p = p}};

	for (size_t i = 0; i < p->a->flow.n; i++)
		g.most = p->a->samples[i] > g.most ? p->a->samples[i] : g.most;
	put_head(&g);
	for (size_t b = 0; b < p->a->flow.n_blocks; b++)
		put_block(&g, &p->a->flow.blocks[b]);
	put_gap(&g);
	(void)fputs("</table></div>\n</main>\n", out);
	html_end(&g.x.r);
	annotate_rows_end(&g.x);
	return fflush(out) ? -errno : 0;
}
