/* SPDX-License-Identifier: BSD-2-Clause */
/* What arithmetic allows an effect to be. Internal to the package. */
#pragma once

#include "analysis/line.h"

/* A faster line cannot save more time for each visit than all threads together execute it between
 * two visits. Sets line->most to that, for each unit of speedup, from the @n observations of a
 * throughput point's line at all speedups. Intervals that reach beyond it in either direction, by
 * more than the method's own error, are cut there; one that lies beyond it as a whole stays as it
 * is. Waits have no such bound, nor has a line whose samples the profile does not tell. */
void bound_line(const struct observation *obs, size_t n, struct analysis_line *line);
/* Is the effect at @speedup no larger than @least by that bound, and does @e not contradict it? */
bool bound_within(const struct analysis_line *line, const struct effect *e, double speedup,
		  double least);
