/* SPDX-License-Identifier: BSD-2-Clause */
/* What all points of an analysis share: lines' functions, shares and times, and what is true of the
 * runs as a whole. Internal to the package. */
#pragma once

#include "analysis/presence.h"

/* Of a line, in all runs. */
struct line_info {
	const char *function;
	double share;
	double seen;	      /* samples in all experiments that watched it */
	double held;	      /* analysis_held of its experiments */
	enum undecided waits; /* of a wait: is it ABSENT, or does it DEPEND? */
};

/* What is known of all points' lines. */
struct run_info {
	struct line_info *lines;
	struct run_presence presence; /* its list is owned */
	size_t max_lines;	      /* of a point */
	enum undecided undecided;     /* of any point */
	enum undecided held;	      /* what held says of the lines concerned */
	double elapsed_s;	      /* of all experiments */
	bool alone; /* next to nobody was there to be paused, or to execute beside another */
};

/* Of @p's runs, for at most @n_points points; @elapsed_s: of all experiments. Points into @p. The
 * contents of *run are the caller's (run_info_free). */
void run_info_make(const struct profile *p, const struct collection *c, size_t n_points,
		   double elapsed_s, struct run_info *run);
void run_info_free(struct run_info *run);
