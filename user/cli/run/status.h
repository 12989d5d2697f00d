/* SPDX-License-Identifier: BSD-2-Clause */
/* How a run is going: a small view at the terminal's end that is drawn anew again and again, or a
 * plain line every ten seconds. */
#pragma once

#include "analysis/certainty.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum status_kind { STATUS_NONE, STATUS_PLAIN, STATUS_VIEW };

#define STATUS_WARNINGS 3

struct status_point {
	const char *name;
	uint64_t visits; /* so far */
};

struct status_facts {
	uint64_t elapsed_ns;  /* of the run */
	uint64_t duration_ns; /* asked for; 0: until the program ends */
	size_t run; /* number of this run of a program that is started again, from 1; 0: it is not
		     */
	size_t experiments, lines;
	const struct status_point *points;
	size_t n_points;
	const char *selected;		   /* line under experiment, or NULL */
	double speedup;			   /* of that experiment, 0..1 ... */
	bool slows;			   /* ... by which the line is slowed instead */
	bool slopes_only;		   /* there are no experiments */
	const struct certainty *certainty; /* what is known so far */
	double missing_s;		   /* until_ci is reached; NaN: not known */
	double until_ci; /* asked for: half-width of the top lines' effects, 0..1; 0: nothing */
	const char *warnings[STATUS_WARNINGS];
	size_t n_warnings;
};

struct status {
	FILE *out;
	enum status_kind kind;
	bool color;
	size_t drawn;	  /* so many lines at the terminal's end are the view */
	uint64_t next_ns; /* when the next one is due */
};

/* @out is kept. A view (@kind) is for a terminal that nobody else writes to. While it is there,
 * what log_error says is put above it. @now: monotonic ns. */
void status_init(struct status *s, FILE *out, enum status_kind kind, bool color, uint64_t now);
/* Is it due? Gathering the facts may be left out otherwise. */
bool status_due(const struct status *s, uint64_t now);
/* Prints if due. */
void status_update(struct status *s, uint64_t now, const struct status_facts *f);
/* The terminal has another size: what was drawn may be anywhere. */
void status_resized(struct status *s);
/* Takes the view off the terminal: before anything else is printed there. */
void status_clear(struct status *s);
/* ... and at the end, for good. */
void status_end(struct status *s);

/* The plain line, without newline, what would steer a terminal replaced. @size: of @buf, at
 * least 1. */
void status_format(const struct status_facts *f, char *buf, size_t size);

#define VIEW_ROWS 24
#define VIEW_BYTES 256

struct view {
	struct view_line {
		enum view_style { VIEW_PLAIN, VIEW_BOLD, VIEW_WARNING } style;
		char text[VIEW_BYTES];
	} lines[VIEW_ROWS];
	size_t n;
};

/* (view.c) The view, in at most so many columns and rows; what matters least is left out where
 * there are few. */
void view_format(const struct status_facts *f, size_t columns, size_t rows, struct view *ret);
/* "run 3, 12/60 s, 23 experiments on 4 lines", and what is tried now: ", now a.c:1 at 35 %", or "".
 * @size: of @buf. */
void view_progress(const struct status_facts *f, char *buf, size_t size);
void view_now(const struct status_facts *f, char *buf, size_t size);
/* The end of a path says more than its beginning. */
const char *view_short_name(const char *line);
