// SPDX-License-Identifier: BSD-2-Clause
/* Which lines make slow intervals slow: what those of a latency point are made of, by how long they
 * are. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A line with less in every class has no row. */
#define LEAST_SHOWN 0.01

const char *const class_titles[PROFILE_CLASSES] = {"up to p50", "to p90", "to p99", "above"};

static double most(const struct analysis_line *l)
{
	double ret = -INFINITY;

	for (size_t i = 0; i < PROFILE_CLASSES; i++)
		ret = fmax(ret, l->in_class[i].effect);
	return ret;
}

/* What the slowest spend most on comes first. */
static int by_slowest(const void *a, const void *b)
{
	const struct analysis_line *const *x = a, *const *y = b;

	for (size_t i = PROFILE_CLASSES; i-- > 0;) {
		double sx = (*x)->in_class[i].effect, sy = (*y)->in_class[i].effect;

		if (isfinite(sx) && isfinite(sy) && sx != sy)
			return sx < sy ? 1 : -1;
	}
	return strcmp((*x)->selected, (*y)->selected);
}

const struct analysis_line **class_lines(const struct analysis_point *point, size_t *ret_n)
{
	const struct analysis_line **ret = xcalloc(point->n_lines, sizeof(*ret));

	*ret_n = 0;
	for (size_t i = 0; i < point->n_lines; i++)
		if (most(&point->lines[i]) >= LEAST_SHOWN)
			ret[(*ret_n)++] = &point->lines[i];
	if (*ret_n)
		qsort(ret, *ret_n, sizeof(struct analysis_line *), by_slowest);
	return ret;
}

struct words class_length(const struct analysis_point *point, size_t class)
{
	return text_duration(point->classes[class].n ? point->classes[class].mean_ns : NAN);
}

static void add_row(const struct report *r, struct text_table *tb, const struct analysis_line *line)
{
	struct libscols_line *row = text_row(tb);

	text_line_cell(r, row, line->selected);
	for (size_t i = 0; i < PROFILE_CLASSES; i++)
		text_change_cell(r, row, 1 + i, line->in_class[i]);
}

static void add_lengths(struct text_table *tb, const struct analysis_point *point)
{
	struct libscols_line *row = text_row(tb);

	text_cell(row, 0, "(their mean length)");
	for (size_t i = 0; i < PROFILE_CLASSES; i++)
		text_cell(row, 1 + i, class_length(point, i).text);
}

void classes_print(const struct report *r, const struct analysis_point *point)
{
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = class_lines(point, &n);
	struct text_table tb = text_table(r);

	paragraph(r, 0, "%s", CLASSES_CAPTION);
	text_column(&tb, "line", TEXT_NAME, 0);
	for (size_t i = 0; i < PROFILE_CLASSES; i++)
		text_column(&tb, class_titles[i], TEXT_NUMBER, 0);
	add_lengths(&tb, point);
	for (size_t i = 0; i < n && i < r->top; i++)
		add_row(r, &tb, lines[i]);
	text_table_end(&tb);
}
