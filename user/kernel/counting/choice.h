/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of the places that a program passes is counted where nobody has named one. Pure functions
 * over what was seen in windows of time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was seen of a place. */
struct choice_windows {
	uint64_t passes;
	double squares; /* the sum of passes^2 / seconds */
	double seconds;
	unsigned int n;
};
void choice_add_window(struct choice_windows *w, uint64_t passes, uint64_t ns);

enum candidate_kind { CANDIDATE_CALL, CANDIDATE_PROBE, CANDIDATE_FUNCTION, CANDIDATE_KINDS };

struct candidate {
	enum candidate_kind kind;
	unsigned int rank; /* from 0, the likeliest to be once for each unit of work */
	char *point;	   /* as --progress takes it */
	uint64_t passes;
	double per_s;
	double scatter; /* of the rate between windows, relative, without what chance makes; 0: it
			   is even */
	bool at_least;	/* counting it slowed the program down: it is passed more often */
	double penalty; /* by choice_sort: the less, the more suitable */
};
/* Sets passes, per_s and scatter. */
void choice_judge(struct candidate *c, const struct choice_windows *w);
/* "even", "uneven", "in bursts". */
const char *choice_evenness(const struct candidate *c);
/* Does it say something, as a point, and is it passed seldom enough to be counted? */
bool choice_serves(const struct candidate *c);
/* What is passed more often in a second takes some 2 % of a CPU to count. */
double choice_bearable(enum candidate_kind kind);
/* The most suitable first: those that serve before all others. */
void choice_sort(struct candidate *all, size_t n);
