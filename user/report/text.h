/* SPDX-License-Identifier: BSD-2-Clause */
/* What all parts of the report share: how to print names that others chose, and numbers. Internal to the package. */
#pragma once

#include "report/report.h"

struct report {
	FILE *out;
	const struct profile *p;
	const struct analysis *a;
	const struct report_hints *h; /* never NULL */
	bool utf8, color, inlined;
	int width, table_width;
	size_t top, curves;
	size_t prefix; /* so many bytes at the start of each line's name are the common directory */
};

/* A printable copy of a foreign string (the caller's): control characters, bytes that are no text and, outside UTF-8
 * locales, everything beyond ASCII become '?'; so does what would turn the direction of writing. Never NULL (aborts without
 * memory). */
char *text_clean(const struct report *r, const char *s);
/* The same for the name of a line: without the common directory, its head cut to @columns at most. */
char *text_line_name(const struct report *r, const char *selected, size_t columns);
/* Length in bytes of the directory that all lines share; 0: none. */
size_t text_common_directory(const struct analysis *a);
/* Columns that a clean string takes, taking one for each character. */
size_t text_columns(const char *s);

#define NUMBER_ROOM 48

/* "12.4 ±1.3" in points; "-" if unknown. */
void text_effect(const struct report *r, double effect, double low, double high, char text[NUMBER_ROOM]);
/* The verdict in words, with what the curve says beyond it: "helps: 40.1 % by the time it is 40 % faster, no more beyond". */
char *text_verdict_long(const struct analysis_line *line);
/* "15.0 s", "12.0 ms", "18 us", "7 ns". */
void text_duration(double ns, char text[NUMBER_ROOM]);

void heading(const struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A paragraph, wrapped at the width, each line after the first indented by @indent. */
void paragraph(const struct report *r, int indent, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

bool table_print(const struct report *r, const struct analysis_point *point);
/* Under the table: into what its lines were inlined, and what into them. */
void inlined_print(const struct report *r, const struct analysis_point *point);
void curves_print(const struct report *r, const struct analysis_point *point);
/* Of a latency point that measured. */
void latency_print_head(const struct report *r, const struct analysis_intervals *in);
bool latency_print_lines(const struct report *r, const struct analysis_point *point);
void footer_print(const struct report *r);
/* What the points cost the program. */
void costs_print(const struct report *r);
/* Why there is nothing to print a table of. */
void empty_print(const struct report *r);
/* Why a latency point with begins or ends has no intervals; whether there is one such. */
bool intervals_missing(const struct report *r);
/* Was anything seen of the point? A latency point may have had begins or ends that do not match. */
bool point_was_seen(const struct analysis_point *p);
/* Points of which nothing was seen, of the profile and of the hints, each once; NULL-terminated, the caller's to free (not the names).
 */
const char **silent_points(const struct report *r);
