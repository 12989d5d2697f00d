/* SPDX-License-Identifier: BSD-2-Clause */
/* How long until a line is decided? Internal to the package. */
#pragma once

#include "analysis/line.h"

/* What a verdict asks of an effect (analysis/verdict.c). */
struct forecast_bars {
	double limit;	/* p-value that an effect needs, two-sided */
	double least;	/* of an effect that is told, relative */
	double none;	/* how probable it is, before, that a line has no effect */
	double nothing; /* an effect is none if its intervals lie within this */
};

/* By which factor the line's experiments must become more, the present ones included, until it is
 * decided with a probability of four fifths. What the experiments have shown is what is known of
 * the effect; those to come scatter as those before. NaN: not with 1000 times as many. */
double forecast_factor(const struct analysis_line *line, const struct evidence *ev,
		       const struct forecast_bars *bars);
