/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables for other programs: each row as an object of JSON on a line of its own, or as CSV.
 * Internal to the package. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cell {
	const char *column;
	const char *text; /* NULL: a number */
	uint64_t number;
	bool is_share; /* ... with six digits after the point: of 0..1 */
	double share;
};

/* The names of the columns: of CSV alone. */
void rows_head(FILE *out, bool csv, const struct cell *cells, size_t n);
void rows_put(FILE *out, bool csv, const struct cell *cells, size_t n);
