// SPDX-License-Identifier: BSD-2-Clause
/* Which lines make slow intervals slow: what those of a latency point are made of, by how long they
 * are. */
#include "report/text.h"

#include "base/cleanup.h"

#include <libsmartcols/libsmartcols.h>
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
	const struct analysis_line **ret =
		calloc(point->n_lines + 1, sizeof(struct analysis_line *));

	*ret_n = 0;
	for (size_t i = 0; ret && i < point->n_lines; i++)
		if (most(&point->lines[i]) >= LEAST_SHOWN)
			ret[(*ret_n)++] = &point->lines[i];
	if (ret && *ret_n)
		qsort(ret, *ret_n, sizeof(struct analysis_line *), by_slowest);
	return ret;
}

static bool add_row(const struct report *r, struct libscols_table *tb,
		    const struct analysis_line *line)
{
	size_t room = (size_t)r->table_width / 3;
	_cleanup_free_ char *name = text_line_name(r, line->selected, room < 20 ? 20 : room);
	struct libscols_line *row = scols_table_new_line(tb, NULL);
	bool ok = row && scols_line_set_data(row, 0, name) == 0;

	for (size_t i = 0; ok && i < PROFILE_CLASSES; i++) {
		const struct analysis_change *c = &line->in_class[i];
		char text[NUMBER_ROOM];

		text_effect(r, c->effect, c->low, c->high, text);
		ok = scols_line_set_data(row, 1 + i, text) == 0;
	}
	return ok;
}

static bool add_lengths(struct libscols_table *tb, const struct analysis_point *point)
{
	struct libscols_line *row = scols_table_new_line(tb, NULL);
	bool ok = row && scols_line_set_data(row, 0, "(their mean length)") == 0;

	for (size_t i = 0; ok && i < PROFILE_CLASSES; i++) {
		char text[NUMBER_ROOM];

		text_duration(point->classes[i].mean_ns, text);
		ok = scols_line_set_data(row, 1 + i, point->classes[i].n ? text : "-") == 0;
	}
	return ok;
}

bool classes_print(const struct report *r, const struct analysis_point *point)
{
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = class_lines(point, &n);
	struct libscols_table *tb = lines ? text_table(r) : NULL;
	bool ok = tb != NULL;

	if (!ok)
		return false;
	paragraph(r, 0, "%s", CLASSES_CAPTION);
	ok = scols_table_new_column(tb, "line", 8, 0) != NULL;
	for (size_t i = 0; ok && i < PROFILE_CLASSES; i++)
		ok = scols_table_new_column(tb, class_titles[i], 9, SCOLS_FL_RIGHT) != NULL;
	ok = ok && add_lengths(tb, point);
	for (size_t i = 0; ok && i < n && i < r->top; i++)
		ok = add_row(r, tb, lines[i]);
	ok = ok && scols_print_table(tb) == 0;
	scols_unref_table(tb);
	return ok;
}
