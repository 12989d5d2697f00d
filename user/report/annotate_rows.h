/* SPDX-License-Identifier: BSD-2-Clause */
/* What an annotated function's forms have in common: its source lines, what they are worth, and
 * what is said of all of it. Internal to the package.
 */
#pragma once

#include "program/dwarf/lines.h"
#include "report/annotate.h"
#include "report/text.h"

/* A block, or an instruction's causes, are shown from this share of the function's samples on. */
#define ANNOTATE_WORTH_SHOWING 0.01
#define ANNOTATE_MOST_FILES 16

struct annotate_rows {
	struct report r;
	const struct annotate_page *p;
	struct line_location at; /* of the line that began last */
	/* Source files that were read. */
	struct annotate_source {
		const char *name;
		char *text; /* owned; NULL: it cannot be read */
	} sources[ANNOTATE_MOST_FILES];
	size_t n_sources;
};

void annotate_rows_end(struct annotate_rows *x); /* frees what it has, not @x */

/* A source line that code is of. Both strings are owned and printable; @text is "" if the file
 * cannot be read. */
struct annotate_line {
	char *name, *text;
	const struct analysis_line *effect; /* NULL: it is not known */
};
/* Does another line than the last one begin at an instruction? Then *ret is the caller's
 * (annotate_line_free). */
bool annotate_line_begins(struct annotate_rows *x, size_t instruction, struct annotate_line *ret);
void annotate_line_free(struct annotate_line *l);

/* What is known of a line. NULL: nothing. */
const struct analysis_line *annotate_effect(const struct annotate_page *p,
					    const struct line_location *at);

/* Of the function's samples. */
double annotate_share(const struct annotation *a, double samples);
double annotate_block(const struct annotation *a, const struct flow_block *b);
/* Is @instruction of @b shown? All of a short block are; of a long one those with samples, and a
 * few before each. */
bool annotate_is_shown(const struct annotation *a, const struct flow_block *b,
		       uint32_t instruction);
/* "executed 1.21 M times a second, ±3 %", the caller's; NULL: nothing was counted. */
char *annotate_executed(const struct annotate_rows *x, const struct flow_block *b);
/* How many cycles each execution of @instruction of @b took, by its samples; NAN: that is not
 * known. */
double annotate_cycles(const struct annotate_page *p, const struct flow_block *b,
		       uint32_t instruction);
/* "data cache, DTLB", the caller's; "" if nothing is possible. */
char *annotate_causes(uint16_t possible);
/* "worth 11.8 ±1.2 % if 50 % faster (helps)", the caller's. */
char *annotate_worth(const struct annotate_rows *x, const struct analysis_line *l);
/* "main", readable and printable, the caller's. */
char *annotate_function(const struct annotate_rows *x);
/* Notes on the whole function. */
void annotate_notes(const struct annotate_rows *x);
