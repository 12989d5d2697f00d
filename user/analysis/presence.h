/* SPDX-License-Identifier: BSD-2-Clause */
/* Phase correction: from the time in which a line was tried to the whole run. Internal to the
 * package.
 *
 * Lines are drawn from recent samples. The experiments of a line that runs in one phase of the
 * program are therefore in that phase, and so is the effect that they show. On the whole run it is
 *
 *     effect * factor,  factor = (s / T) / (s_obs / t_obs)
 *
 * with the line's samples s in the run's time T, and s_obs in its experiments' time t_obs (Coz,
 * SOSP 2015, section 3.4). Both times are those that the program would have taken without
 * experiments. For an experiment at 0 % that is its length. For another one it is the number of its
 * visits times the time per visit at 0 %: neither the visits of some work nor the line's samples in
 * it depend on the virtual speedup. Experiments at 0 % show no effect, so s_obs and t_obs are those
 * of the others. */
#pragma once

#include "analysis/line.h"

/* Of the whole run, as far as it matters here. */
struct run_presence {
	double time_ns;	 /* T with the delays that were inserted; 0: not known */
	double *line_ns; /* for each line, execution that its samples in the whole run stand
			    for; NaN: not known */
};

/* The factors of the lines that begin at @first and have @n observations each, @n_lines of them, of
 * the point that @ctx is of. A factor is 1 where it does not differ from 1 by more than chance;
 * where it does, @obs are given other weights. */
void presence_find(const struct point_context *ctx, struct observation *obs,
		   const struct line_place *places, size_t n_places, const struct run_presence *run,
		   struct analysis_presence *ret);
