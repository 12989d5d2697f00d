/* SPDX-License-Identifier: BSD-2-Clause */
/* From evidence to what a reader is told. Internal to the package. */
#pragma once

#include "analysis/line.h"

/* Sets verdict, best_effect, best_speedup, missing_s and undecided of the lines of one point, and
 * sorts the lines. @run_s: time spent on experiments so far. @why: nothing is decided of any line,
 * and why; a line's own reason comes first. @evidence has one entry for each line. */
void verdicts(struct analysis_line *lines, const struct evidence *evidence, size_t n,
	      enum undecided why, double run_s);
