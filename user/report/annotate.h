/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of a function, with its source and what is known of the worth of its lines:
 * text, HTML and JSON. */
#pragma once

#include "analysis/analysis.h"
#include "annotate/annotation.h"
#include "collect/shares/code.h"

#include <stdio.h>

struct annotate_page {
	const struct annotation *a;
	const struct shares_code *of;
	const struct analysis_point
		*point; /* of a causal profile of the program; NULL: there is none */
	bool all;	/* not only blocks that have samples worth mentioning */
	int width;	/* columns; 0: 100 */
};

int annotate_print(FILE *out, const struct annotate_page *p); /* negative errno */
void annotate_json(FILE *out, const struct annotate_page *p);
/* All blocks, as a file of its own, like report_html. Negative errno. */
int annotate_html(FILE *out, const struct annotate_page *p);
