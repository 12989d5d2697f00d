/* SPDX-License-Identifier: BSD-2-Clause */
/* What arithmetic allows an effect to be. Internal to the package. */
#pragma once

#include "analysis/line.h"

/* A visit cannot come earlier by more than the line's threads execute it between two visits, all of
 * them together. Sets line->most to that, from the @n observations of a throughput point's line at
 * all speedups, and draws the intervals in that reach beyond it, by more than the method's own
 * error: an interval that lies beyond it as a whole stays as it is. So does the direction in which
 * a line hurts: small pauses do little harm. Waits are not bounded, and neither is a line whose
 * samples the profile does not have. */
void bound_line(const struct observation *obs, size_t n, struct analysis_line *line);
/* Is a small enough effect all that the line can have, at that speedup? */
bool bound_within(const struct analysis_line *line, const struct effect *e, double speedup,
		  double least);
