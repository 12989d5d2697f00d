/* SPDX-License-Identifier: BSD-2-Clause */
/* The report for a terminal: text only, to a stream. */
#pragma once

#include "analysis/analysis.h"

#include <stdbool.h>
#include <stdio.h>

struct report_options {
	bool color;
	bool inlined;  /* show into what lines were inlined */
	bool verbose;  /* how it was measured as well: the books, and all notes */
	bool all;      /* a row for each line, however little is known of it */
	int width;     /* columns; 0: 100 */
	size_t top;    /* lines per point; 0: 10 */
	size_t curves; /* text curves for the top lines; (size_t)-1: none, 0: 1, verbose 3 */
};

/* What the run knows about itself that a profile may not say; all optional. For the explanation of
 * an empty profile. */
struct report_hints {
	const char *const *silent_points; /* names of points that never fired */
	size_t n_silent_points;
	const char *const *seen_objects; /* files that samples fell into, out of scope ones too,
					    with shares in words */
	size_t n_seen_objects;
	const char *no_debug_info; /* the object that lacks it (symbols, by_function), or NULL */
	bool by_function;	   /* functions were tried, not lines */
	uint64_t samples_in_scope, samples_out_of_scope, samples_without_line;
	double run_s;
	const char *profile;	      /* the file that it is all from, or NULL */
	const char *const *proposals; /* options that name a point, of a run without one */
	size_t n_proposals;
	const char *again; /* a command that runs the program until enough is known, where it was
			      too short for that; or NULL */
	const char
		*kernel_counters; /* several lines: non-zero outcome counters in words, or NULL */
};

/* Prints per progress point the answer and a table, then how far it can be trusted and what to do
 * next; for an empty profile, why it is empty. */
void report_print(FILE *out, const struct profile *p, const struct analysis *a,
		  const struct report_options *o, const struct report_hints *h);

/* The same as one HTML file that needs no other. negative errno. */
int report_html(FILE *out, const struct profile *p, const struct analysis *a,
		const struct report_hints *h);
/* How such a file begins. */
#define REPORT_HTML_BEGINS "<!doctype html>\n"
/* The tables as comma-separated values, effects and shares in percent; and as Markdown, with the
 * answer in sentences. negative errno. */
int report_csv(FILE *out, const struct profile *p, const struct analysis *a);
int report_markdown(FILE *out, const struct profile *p, const struct analysis *a);

/* The same facts as one JSON object: effects and their intervals as fractions of 1, times in ns,
 * null where nothing is known. Names are as in the profile, with bytes that are no UTF-8 replaced.
 */
void report_json(FILE *out, const struct profile *p, const struct analysis *a);
