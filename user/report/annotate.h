/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of a function, with its source: text and JSON. */
#pragma once

#include "annotate/annotation.h"
#include "shares/code.h"

#include <stdio.h>

struct annotate_page {
	const struct annotation *a;
	const struct shares_code *of;
	bool all;  /* not only blocks that have samples worth mentioning */
	int width; /* columns; 0: 100 */
};

/* Negative errno. */
int annotate_print(FILE *out, const struct annotate_page *p);
int annotate_json(FILE *out, const struct annotate_page *p);
