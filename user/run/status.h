/* SPDX-License-Identifier: BSD-2-Clause */
/* How a run is going: one line that is rewritten on a terminal, else a plain line every ten seconds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct status_facts {
	uint64_t elapsed_ns;  /* of the run */
	uint64_t duration_ns; /* asked for; 0: until the program ends */
	size_t experiments, lines;
	double visits_per_s;			 /* of all progress points; NaN: not known */
	const char *selected;			 /* line under experiment, or NULL */
	double speedup;				 /* of that experiment, 0..1 ... */
	bool slows;				 /* ... by which the line is slowed instead */
	const char *best;			 /* line with the best effect so far, or NULL */
	double best_effect, best_low, best_high; /* at 50 %, 0..1, 95 % interval */
	double until_ci;			 /* asked for: half-width of the top lines' effects, 0..1; 0: nothing */
	double missing_s;			 /* until that is reached; NaN: not known */
};

struct status {
	FILE *out;
	bool quiet, terminal;
	bool drawn;	  /* something stands in the terminal's last line */
	uint64_t next_ns; /* when the next line is due */
};

/* @out is kept; whether it is a terminal (and TERM is not dumb) is looked up once. @now: monotonic ns. */
void status_init(struct status *s, FILE *out, bool quiet, uint64_t now);
/* Is a line due? Gathering the facts may be left out otherwise. */
bool status_due(const struct status *s, uint64_t now);
/* Prints if due. */
void status_update(struct status *s, uint64_t now, const struct status_facts *f);
/* Takes the line off the terminal: before anything else is printed there, and at the end. */
void status_clear(struct status *s);
/* The text of a line, without newline, cut to @width bytes (0: not cut), what would steer a terminal replaced. For tests and for
 * status_update. @size: of @buf, at least 1. */
void status_format(const struct status_facts *f, size_t width, char *buf, size_t size);
