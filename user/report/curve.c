// SPDX-License-Identifier: BSD-2-Clause
/* A line's curve as text: virtual speedup to the right, effect upwards. */
#include "report/text.h"

#include "base/cleanup.h"

#include <math.h>
#include <string.h>

#define ROWS 9
#define MIN_COLUMNS 21
#define MAX_COLUMNS 61
#define LABEL 8	  /* columns left of the plot */
#define BEHIND 11 /* what the last label takes behind it */

enum mark { EMPTY, ZERO, BAR, DOT };

struct plot {
	enum mark at[ROWS][MAX_COLUMNS];
	int columns;
	double low, high; /* effects at the bottom and the top row */
};

static int row_of(const struct plot *p, double effect)
{
	double at = (p->high - effect) / (p->high - p->low) * (ROWS - 1);

	if (at < 0)
		return 0;
	return at > ROWS - 1 ? ROWS - 1 : (int)lround(at);
}

/* Every estimate fits in; intervals at most so far that they do not press the estimates flat. */
static void choose_range(const struct analysis_line *line, struct plot *p)
{
	double low = 0, high = 0, span;

	for (size_t i = 0; i < line->n_cells; i++)
		if (isfinite(line->cells[i].change.effect)) {
			/* Bounded, as a hostile file can have any: a throughput can fall by more
			 * than a plot can show. */
			low = fmin(low, fmax(line->cells[i].change.effect, -2));
			high = fmax(high, line->cells[i].change.effect);
		}
	span = fmax(high - low, 0.05);
	p->low = low;
	p->high = high;
	for (size_t i = 0; i < line->n_cells; i++) {
		const struct analysis_change *c = &line->cells[i].change;

		if (isfinite(c->low) && isfinite(c->high)) {
			p->low = fmin(p->low, fmax(c->low, low - span / 2));
			p->high = fmax(p->high, fmin(c->high, high + span / 2));
		}
	}
	if (p->high - p->low < 0.05) {
		p->low -= 0.025;
		p->high += 0.025;
	}
}

static void draw(const struct analysis_line *line, struct plot *p)
{
	int zero = row_of(p, 0);

	for (int x = 0; x < p->columns; x++)
		p->at[zero][x] = ZERO;
	for (size_t i = 0; i < line->n_cells; i++) {
		const struct analysis_change *c = &line->cells[i].change;
		int x = (int)lround(line->cells[i].speedup * (p->columns - 1));

		if (!isfinite(c->effect))
			continue;
		if (isfinite(c->low) && isfinite(c->high))
			for (int y = row_of(p, c->high); y <= row_of(p, c->low); y++)
				if (p->at[y][x] != DOT)
					p->at[y][x] = BAR;
		p->at[row_of(p, c->effect)][x] = DOT;
	}
}

static void print_axis(const struct report *r, const struct plot *p)
{
	static const char *const labels[] = {"0", "25", "50", "75", "100 %"};
	int at = 0;

	(void)fprintf(r->out, "%*s", LABEL, "");
	for (int i = 0; i < 5; i++) {
		int x = i * (p->columns - 1) / 4;

		at += fprintf(r->out, "%*s%s", x > at ? x - at : 0, "", labels[i]);
	}
	(void)fputs(" faster\n", r->out);
}

static void print_plot(const struct report *r, const struct plot *p)
{
	static const char *const ascii[] = {[EMPTY] = " ", [ZERO] = "-", [BAR] = "|", [DOT] = "o"};
	static const char *const utf8[] = {
		[EMPTY] = " ", [ZERO] = "\u2500", [BAR] = "\u2502", [DOT] = "\u25cf"};
	const char *const *marks = r->utf8 ? utf8 : ascii;
	int zero = row_of(p, 0);

	for (int y = 0; y < ROWS; y++) {
		int last = p->columns - 1;

		while (last >= 0 && p->at[y][last] == EMPTY)
			last--;
		if (y == 0 || y == ROWS - 1 || y == zero) {
			double value =
				y == zero ? 0
					  : 100 * (p->high + (p->low - p->high) * y / (ROWS - 1));

			(void)fprintf(r->out, "%5.0f %% ", fabs(value) < 0.5 ? 0.0 : value);
		} else if (last >= 0) {
			(void)fprintf(r->out, "%*s", LABEL, "");
		}
		for (int x = 0; x <= last; x++)
			(void)fputs(marks[p->at[y][x]], r->out);
		(void)fputc('\n', r->out);
	}
	print_axis(r, p);
}

static size_t known_cells(const struct analysis_line *line)
{
	size_t n = 0;

	for (size_t i = 0; i < line->n_cells; i++)
		n += line->cells[i].speedup > 0 && isfinite(line->cells[i].change.effect);
	return n;
}

void curves_print(const struct report *r, const struct analysis_point *point)
{
	size_t left = r->curves, n;
	_cleanup_free_ const struct analysis_line **lines = shown_lines(r, point, &n);

	for (size_t i = 0; left && i < n; i++) {
		const struct analysis_line *line = lines[i];
		_cleanup_free_ char *name = NULL, *verdict = NULL;
		struct plot p = {0};

		/* A flat curve and one of a single speedup say no more than the table, and one that
		 * decides nothing is for those who look at all. */
		if (line->verdict == VERDICT_NO_EFFECT || known_cells(line) < 2 ||
		    (line->verdict == VERDICT_UNDECIDED && !r->verbose))
			continue;
		name = text_line_name(r, line->selected, text_name_room(r));
		p.columns = r->width - LABEL - BEHIND;
		p.columns = p.columns < MIN_COLUMNS   ? MIN_COLUMNS
			    : p.columns > MAX_COLUMNS ? MAX_COLUMNS
						      : p.columns;
		choose_range(line, &p);
		draw(line, &p);
		(void)fputc('\n', r->out);
		verdict = text_verdict_long(line);
		heading(r, "%s (%s)", name, verdict);
		print_plot(r, &p);
		left--;
	}
}
