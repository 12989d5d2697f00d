/* SPDX-License-Identifier: BSD-2-Clause */
/* How long until a line is decided? Internal to the package. */
#pragma once

#include "analysis/line.h"

/* What a verdict asks of an effect (analysis/verdict.c). */
struct forecast_bars {
	double limit;	/* p-value that an effect needs, two-sided */
	double least;	/* the smallest effect that is reported, relative */
	double none;	/* how probable it is, before, that a line has no effect */
	double nothing; /* an effect is none if its intervals lie within this */
};

/* How many times as many experiments the line needs, with those that it has, to be decided with a
 * probability of four fifths. The effect is known as far as the present experiments show it; later
 * ones are taken to scatter as much. NaN: more than 1000 times as many. */
double forecast_factor(const struct analysis_line *line, const struct evidence *ev,
		       const struct forecast_bars *bars);
