/* SPDX-License-Identifier: BSD-2-Clause */
/* From evidence to what a reader is told. Internal to the package. */
#pragma once

#include "analysis/line.h"

/* Sets verdict, best_effect, best_speedup, missing_s and undecided of the lines of one point.
 * @run_s: time spent on experiments so far. @why: nothing is decided of any line, and why; a line's
 * own reason comes first. @evidence has one entry for each line. */
void verdicts(struct analysis_line *lines, const struct evidence *evidence, size_t n,
	      enum undecided why, double run_s);
/* The surest gain first, of lines that experiments have decided by them, of others by their slope
 * as well; then the surest loss; and where nothing is sure, the likeliest gain. */
void verdicts_sort(struct analysis_line *lines, size_t n);
