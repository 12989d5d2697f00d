/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the HTML report. Internal to the package. Whatever comes from a profile goes through
 * html_text(). */
#pragma once

#include "report/text.h"

/* The page up to its header, and what stands after all else. */
void html_begin(const struct report *r, const char *title);
void html_end(const struct report *r);
/* Writes @s, which others chose, so that it is text and nothing else: as text_clean makes it, and
 * with &, <, >, " and ' as character references. */
void html_text(const struct report *r, const char *s);
/* Writes markup in which each %s is a place of such a text. Other conversions are not known. */
void html_put(const struct report *r, const char *markup, ...)
	__attribute__((format(printf, 2, 3)));
/* A cell of a table, as text_effect. */
void html_effect(const struct report *r, struct analysis_change c);
/* The notes that were collected, which are none afterwards. */
void html_notes(const struct report *r);

/* The table of a point's lines, and a figure for each of them with its details. @at: the point's
 * place in the analysis. */
void html_lines(const struct report *r, size_t at);
/* The table of what intervals are made of. */
void html_classes(const struct report *r, const struct analysis_point *point);
/* A line's curve, on the scale of all curves of its point. */
struct html_scale {
	double low, high; /* effects at the lower and the upper edge */
};
struct html_scale html_scale(const struct analysis_point *point);
void html_curve(const struct report *r, const struct html_scale *scale,
		const struct analysis_line *line);
/* Visits a second over the time of the last run, and a line's latencies at 0 % and at the speedup
 * nearest to 50 %. Nothing where they are not known.
 */
void html_rate(const struct report *r, const struct analysis_point *point);
void html_latencies(const struct report *r, const struct analysis_point *point,
		    const struct analysis_line *line);
