/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a run certain enough to be ended? Pure. */
#pragma once

#include "analysis/analysis.h"

/* Lines of a point whose certainty is asked for: the first so many, ... */
#define CERTAINTY_TOP 3
/* ... of those with at least this share of the samples: others are tried too rarely, and can gain
 * too little, to wait for. */
#define CERTAINTY_SHARE 0.05

/* Lines to be shown while a run goes on. */
#define CERTAINTY_SHOWN 5
#define CERTAINTY_NAME 512 /* bytes of a line's name */

struct certainty_line {
	char selected[CERTAINTY_NAME]; /* of a longer one the end */
	double effect, low, high;      /* the slope; the share of the slowest intervals; or at 50 %,
					  by the curve */
	const char *verdict;	       /* as the report has it; "": it was not tried */
};

struct certainty {
	bool reached;
	bool at_floor; /* reached though wider than asked: what is left is the method's own error,
			  which no more time takes away */
	double missing_s; /* until reached: an estimate; NaN: not known yet */
	bool slopes;	  /* known; and so `top` has them */
	bool shares; /* no slopes, but what the slowest intervals are made of: `top` has that */
	/* The lines on top of the first point with visits, those with an interval. */
	struct certainty_line top[CERTAINTY_SHOWN];
	size_t n_top;
};

/* Are the intervals of the top lines' effects at 50 % no wider than +-@half (0.02: two points)? Of
 * a point that has slopes alone, those of the slopes: the caller sees to it that there are some
 * windows, of few of which an interval is a guess. @elapsed_s: how long the run took so far. Noise
 * shrinks with the root of the time. A line without an interval keeps the run going. @half of 0
 * asks for the best line only. */
struct certainty certainty_of(const struct analysis *a, double half, double elapsed_s);
