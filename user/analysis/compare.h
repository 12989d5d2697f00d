/* SPDX-License-Identifier: BSD-2-Clause */
/* Two profiles of a program: before a change of it, and after. Pure. */
#pragma once

#include "analysis/analysis.h"

/* A line that was tried in both. */
struct compare_line {
	const struct analysis_line *before, *after;
	/* The effect after the change less that before it. Intervals hold for all lines of the
	 * point together in 95 of 100 comparisons. NaN: one of the two is not known. */
	struct analysis_change difference[ANALYSIS_CURVE_POINTS];
	struct analysis_change slope; /* the same of the slopes of points that were not tried */
	bool differs;		      /* surely, at some speedup, or in its slope */
};

/* A point that both profiles have. */
struct compare_point {
	const struct analysis_point *before, *after;
	double before_ns,
		after_ns; /* of a visit, or the mean latency, without any speedup; NaN: not known */
	struct analysis_change
		gain; /* by how much less time it takes after the change, with its 95 % interval */
	struct analysis_change
		steady;	  /* the same, if the machine kept its speed from one run to the other */
	bool slopes_only; /* neither has experiments */
	const struct profile *old, *new; /* what is compared */
	struct compare_line *lines;	 /* owned; in the order of @after's */
	size_t n_lines;
};

struct comparison {
	struct compare_point *points; /* owned */
	size_t n_points;
};

/* Lines are the same if they have one name; or, where numbers moved, if they are in one function
 * and file and have the same text, which profiles know that were made --with-source, and no other
 * line has it. The contents of *ret are the caller's (compare_free) and point into the four. */
void compare(const struct profile *before, const struct analysis *a, const struct profile *after,
	     const struct analysis *b, struct comparison *ret);
void compare_free(struct comparison *c);

/* promise.c. What was predicted of a change that has been made, and what came of it. */
enum promise_outcome {
	PROMISE_UNKNOWN,   /* the line was not tried before the change, or the gain is not known */
	PROMISE_CAME_TRUE, /* the two agree within their intervals */
	PROMISE_OPEN,	   /* ... but these are so wide that nearly anything would */
	PROMISE_BROKEN,	   /* they do not */
};

struct promise {
	enum promise_outcome outcome;
	struct analysis_change predicted; /* of the line, before the change, at @speedup */
	struct analysis_change gained;	  /* what came of it, without what the machine's speed did
					     meanwhile, if @corrected */
	bool corrected; /* by the CPU time of a visit in all other lines, which the change left
			   alone */
	double gap, gap_half; /* what was gained less what was predicted, and the half-width of its
				 95 % interval */
};

/* The line of that name, or the only one whose name ends so behind a '/'; NULL: none, or several.
 */
const struct analysis_line *compare_called(const struct analysis_point *point, const char *name);
/* @line, "FILE:LINE" or the end of it behind a '/', was made @speedup (0..1] faster. */
struct promise compare_promise(const struct compare_point *p, const char *line, double speedup);
