// SPDX-License-Identifier: BSD-2-Clause
/* The instructions of a function as text. */
#include "report/annotate_rows.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Columns before the code, and what counts add to them. */
#define MARGIN 25
#define COUNTED 8

static int margin(const struct annotate_rows *x)
{
	return x->p->a->executed ? MARGIN + COUNTED : MARGIN;
}

/* What is left of a line after @used columns. */
static int room(const struct annotate_rows *x, int used)
{
	return x->r.width > used + 9 ? x->r.width - used : 9;
}

/* As many bytes of a clean string as fit into @columns. */
static int cut(const char *s, int columns)
{
	int n = 0;

	while (s[n] && ((s[n] & 0xc0) == 0x80 || columns-- > 0))
		n++;
	return n;
}

/* Frees @text. */
static void put_indented(const struct annotate_rows *x, int by, const char *before, char *text)
{
	int n = cut(text, room(x, by + (int)strlen(before)));

	(void)fprintf(x->r.out, "%*s%s%.*s\n", by, "", before, n, text);
	free(text);
}

static void put_line(struct annotate_rows *x, uint32_t i)
{
	_cleanup_(annotate_line_free) struct annotate_line l = {0};
	_cleanup_free_ char *name = NULL;

	if (!annotate_line_begins(x, i, &l))
		return;
	name = text_cut(&x->r, l.name, (size_t)room(x, margin(x)) / 2);
	(void)fprintf(x->r.out, "%*s%s  %.*s\n", margin(x), "", name,
		      cut(l.text, room(x, margin(x) + 2 + (int)utf8_columns(name))), l.text);
	if (l.effect)
		put_indented(x, margin(x), "", annotate_worth(x, l.effect));
}

static void put_instruction(struct annotate_rows *x, const struct flow_block *b, uint32_t i)
{
	const struct annotation *a = x->p->a;
	double took = annotate_cycles(x->p, b, i);
	char cycles[16] = "", each[16] = "";
	_cleanup_free_ char *clean =
		text_clean(&x->r, annotation_text(a, x->p->of->object, i).text);

	put_line(x, i);
	if (a->model.cycles)
		(void)snprintf(cycles, sizeof(cycles), "%.1f", a->model.cycles[i]);
	if (a->samples[i] > 0)
		(void)fprintf(x->r.out, "%8.0f %5.1f %% %7s", a->samples[i],
			      100 * annotate_share(a, a->samples[i]), cycles);
	else
		(void)fprintf(x->r.out, "%16s %7s", "", cycles);
	if (isfinite(took))
		(void)snprintf(each, sizeof(each), took < 99.95 ? "%.1f" : "%.0f", took);
	(void)fprintf(x->r.out, "%*s  %6" PRIx64 "  %.*s\n", margin(x) - MARGIN, each,
		      a->flow.all[i].at, cut(clean, room(x, margin(x) + 9)), clean);
	if (a->called[i] > 0)
		(void)fprintf(x->r.out, "%8.0f %5.1f %%%*sin what it calls\n", a->called[i],
			      100 * annotate_share(a, a->called[i]), margin(x) - 16 + 5, "");
	if (annotate_share(a, a->samples[i]) >= ANNOTATE_WORTH_SHOWING && a->possible[i])
		put_indented(x, margin(x) + 4, "may wait for: ", annotate_causes(a->possible[i]));
}

static void put_head(const struct annotate_rows *x)
{
	const struct annotation *a = x->p->a;
	const struct shares_code *of = x->p->of;
	_cleanup_free_ char *name = annotate_function(x);

	paragraph(&x->r, 0, "%s in %s: %" PRIu64 " of %" PRIu64 " sample%s (%.1f %%) of %s.", name,
		  of->image, of->samples, of->total, plural(of->total),
		  100 * (double)of->samples / (double)of->total, of->event);
	paragraph(&x->r, 0, "%zu instruction%s in %zu block%s.", a->flow.n, plural(a->flow.n),
		  a->flow.n_blocks, plural(a->flow.n_blocks));
	annotate_notes(x);
	(void)fprintf(x->r.out, "%8s %7s %7s%*s  %6s\n", "samples", "share",
		      a->model.cycles ? "cycles" : "", margin(x) - MARGIN,
		      a->executed ? "took" : "", "code");
}

/* What was left out in between. */
static void put_gap(const struct annotate_rows *x, size_t *hidden)
{
	if (*hidden)
		(void)fprintf(x->r.out, "%*s... %zu instruction%s\n", margin(x), "", *hidden,
			      plural(*hidden));
	*hidden = 0;
}

static void put_executed(const struct annotate_rows *x, const struct flow_block *b)
{
	char *text = annotate_executed(x, b);

	if (text)
		put_indented(x, margin(x), "", text);
}

int annotate_print(FILE *out, const struct annotate_page *p)
{
	struct annotate_rows x = {.r = report_text(out, NULL, NULL, NULL, p->width), .p = p};
	size_t hidden = 0;

	put_head(&x);
	for (size_t b = 0; b < p->a->flow.n_blocks; b++) {
		const struct flow_block *block = &p->a->flow.blocks[b];
		bool shown = p->all || annotate_share(p->a, annotate_block(p->a, block)) >=
					       ANNOTATE_WORTH_SHOWING,
		     said = false;

		for (uint32_t i = block->first; i < block->first + block->n; i++) {
			if (!p->all && (!shown || !annotate_is_shown(p->a, block, i))) {
				hidden++;
				continue;
			}
			put_gap(&x, &hidden);
			if (!said)
				put_executed(&x, block);
			said = true;
			put_instruction(&x, block, i);
		}
	}
	put_gap(&x, &hidden);
	annotate_rows_end(&x);
	return fflush(out) ? -errno : 0;
}
