/* SPDX-License-Identifier: BSD-2-Clause */
/* What a database of samples says: text, HTML, JSON, CSV. */
#pragma once

#include "analysis/analysis.h"
#include "collect/shares/shares.h"

#include <stdio.h>

struct shares_table {
	const struct shares *s;
	enum shares_by by;
	const char *database; /* its path */
	size_t top;	      /* rows at most; 0: all */
	int width;	      /* columns; 0: 100 */
	/* What a little of each row is worth at @point; NULL: that is not known. An effect may be
	 * NAN. */
	const struct analysis_change *slopes;
	const char *point;
};

void shares_print(FILE *out, const struct shares_table *t);
int shares_html(FILE *out, const struct shares_table *t); /* negative errno */
void shares_json(FILE *out, const struct shares_table *t);
void shares_csv(FILE *out, const struct shares_table *t);

/* Two of them beside each other, and which shares have surely changed: by more than what chance
 * does to so many samples in 19 of 20 cases, all rows taken together (Bonferroni). */
void shares_print_diff(FILE *out, const struct shares_table *before,
		       const struct shares_table *after);
void shares_json_diff(FILE *out, const struct shares_table *before,
		      const struct shares_table *after);
