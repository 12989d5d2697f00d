// SPDX-License-Identifier: BSD-2-Clause
/* Tables of text that are no wider than the report: where there is no room, columns are left out,
 * then names are cut. The library that prints them would cut rows in two instead, or words. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#define BETWEEN 2     /* columns of the terminal, between those of the table */
#define LEAST_NAME 16 /* what is left of a longer name at least, while a column can be left out */
#define LEAST_TEXT 4

struct text_table text_table(const struct report *r)
{
	struct text_table t = {.r = r, .scols = or_out_of_memory(scols_new_table())};

	(void)scols_table_set_stream(t.scols, r->out);
	(void)scols_table_set_column_separator(t.scols, "  ");
	(void)scols_table_enable_colors(t.scols, r->color);
	/* The width is ours to say, whatever the stream is. */
	(void)scols_table_set_termforce(t.scols, SCOLS_TERMFORCE_ALWAYS);
	return t;
}

void text_column(struct text_table *t, const char *title, enum text_column_kind kind,
		 unsigned int leaves)
{
	int flags = kind == TEXT_NUMBER ? SCOLS_FL_RIGHT : 0;

	(void)or_out_of_memory(scols_table_new_column(t->scols, title, 0, flags));
	t->columns[t->n++] =
		(struct text_column){.kind = kind, .leaves = leaves, .title = utf8_columns(title)};
}

struct libscols_line *text_row(struct text_table *t)
{
	return or_out_of_memory(scols_table_new_line(t->scols, NULL));
}

void text_cell(struct libscols_line *row, size_t column, const char *text)
{
	if (scols_line_set_data(row, column, text) < 0)
		out_of_memory();
}

void text_change_cell(const struct report *r, struct libscols_line *row, size_t column,
		      struct analysis_change c)
{
	text_cell(row, column, text_effect(r, c).text);
}

void text_line_cell(const struct report *r, struct libscols_line *row, const char *selected)
{
	_cleanup_free_ char *name = text_line_name(r, selected, SIZE_MAX);

	text_cell(row, 0, name);
}

static struct libscols_cell *cell_at(const struct text_table *t, size_t row, size_t column)
{
	return scols_line_get_cell(scols_table_get_line(t->scols, row), column);
}

static void measure(struct text_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		size_t width = t->columns[i].title;

		for (size_t k = 0; k < scols_table_get_nlines(t->scols); k++) {
			const char *data = scols_cell_get_data(cell_at(t, k, i));
			size_t columns = data ? utf8_columns(data) : 0;

			width = columns > width ? columns : width;
		}
		t->columns[i].width = width;
	}
}

/* What the table takes if names are cut to @least columns. */
static size_t needed(const struct text_table *t, size_t least)
{
	size_t sum = 0, n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct text_column *c = &t->columns[i];

		if (c->left_out)
			continue;
		sum += c->kind == TEXT_NAME && c->width > least ? least : c->width;
		n++;
	}
	return n ? sum + BETWEEN * (n - 1) : 0;
}

/* The column that is to be left out next; NULL: none may be. */
static struct text_column *dearest(struct text_table *t)
{
	struct text_column *found = NULL;

	for (size_t i = 0; i < t->n; i++)
		if (!t->columns[i].left_out && t->columns[i].leaves &&
		    (!found || t->columns[i].leaves > found->leaves))
			found = &t->columns[i];
	return found;
}

/* The widest column of that kind that can be narrower; NULL: there is none. */
static struct text_column *widest(struct text_table *t, enum text_column_kind kind)
{
	struct text_column *found = NULL;

	for (size_t i = 0; i < t->n; i++) {
		struct text_column *c = &t->columns[i];

		if (!c->left_out && c->kind == kind && c->width > c->title &&
		    c->width > LEAST_TEXT && (!found || c->width > found->width))
			found = c;
	}
	return found;
}

/* Decides which columns are printed, and how wide each may be. Where numbers alone are too wide,
 * the last ones are left out. */
static void fit(struct text_table *t)
{
	size_t room = (size_t)t->r->width;
	struct text_column *c;

	while (needed(t, LEAST_NAME) > room && (c = dearest(t)))
		c->left_out = true;
	/* The longest name gives first, and other words only where there are no names. */
	while (needed(t, SIZE_MAX) > room &&
	       ((c = widest(t, TEXT_NAME)) || (c = widest(t, TEXT_WORDS))))
		c->width--;
	for (size_t i = t->n; i-- > 1 && needed(t, SIZE_MAX) > room;)
		t->columns[i].left_out = true;
}

static void cut_cells(const struct text_table *t, size_t column)
{
	for (size_t k = 0; k < scols_table_get_nlines(t->scols); k++) {
		struct libscols_cell *cell = cell_at(t, k, column);
		const char *data = scols_cell_get_data(cell);

		if (data && utf8_columns(data) > t->columns[column].width)
			if (scols_cell_refer_data(
				    cell, text_cut(t->r, data, t->columns[column].width)) < 0)
				out_of_memory();
	}
}

void text_table_end(struct text_table *t)
{
	measure(t);
	fit(t);
	for (size_t i = 0; i < t->n; i++) {
		struct libscols_column *column = scols_table_get_column(t->scols, i);

		if (t->columns[i].left_out)
			(void)scols_column_set_flags(column, scols_column_get_flags(column) |
								     SCOLS_FL_HIDDEN);
		else
			cut_cells(t, i);
	}
	(void)scols_table_set_termwidth(t->scols, (size_t)t->r->width);
	if (scols_print_table(t->scols) < 0)
		out_of_memory();
	scols_unref_table(t->scols);
}
