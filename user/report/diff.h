/* SPDX-License-Identifier: BSD-2-Clause */
/* Two profiles of a program beside each other: text, JSON, HTML. */
#pragma once

#include "analysis/compare.h"

#include <stdio.h>

/* What is compared. Names are those of files, for messages. */
struct diff {
	const struct profile *before, *after;
	const struct analysis *a, *b;
	const struct comparison *c;
	const char *changed; /* a line that was made @speedup faster in between; NULL: not said */
	double speedup;
};

/* Columns: 0: 100. */
void diff_print(FILE *out, const struct diff *d, int width);
void diff_json(FILE *out, const struct diff *d);
/* Negative errno. */
int diff_html(FILE *out, const struct diff *d);
