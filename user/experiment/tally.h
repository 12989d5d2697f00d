/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples per line: drained from the backend, mapped to lines, summed. */
#pragma once

#include "kernel/backend.h"
#include "experiment/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_samples;
struct tally;

struct tally_line {
	const char *name;     /* interned by the backend */
	const char *function; /* of the first address seen in the line, or NULL */
	const char *object;   /* likewise: see backend_ops */
	uint64_t total;	      /* samples since the start */
	uint64_t ns;	      /* execution that they stand for */
	uint64_t recent;      /* since tally_forget_recent; 0 of a wait */
	unsigned int wait;    /* its kind (base/waits.h); 0: execution */
	bool gone;	      /* a wait whose place is not there any more */
	bool tried;	      /* an experiment selected it */
	struct plan_line speedups;
	/* Sums over windows of slopes (analysis/slopes.c): of the line's time in the chains of
	 * events that lead to visits (y), and the length of those (x), ns. */
	struct tally_windows {
		double n, x, y, xx, xy, yy;
	} windows;
};

struct tally_sums {
	uint64_t samples;      /* of execution, drained so far */
	uint64_t without_line; /* of these */
	uint64_t recent;    /* with a line, since tally_forget_recent; one with several lines counts
			       for each */
	size_t tried;	    /* lines that an experiment selected */
	bool no_debug_info; /* an object had none */
};

struct tally *tally_new(const struct backend_ops *ops, void *backend);
void tally_free(struct tally *t); /* NULL is allowed */
/* Takes what was sampled since the last call. Each address is named once (and again only after very
 * many others). */
int tally_drain(struct tally *t);
/* The same of samples that are not to be drawn from. */
int tally_drain_apart(struct tally *t);
/* The line of the n-th recent sample, n < sums.recent. @by_gain: a line does not count by its
 * recent samples but, as long as it has some, by the upper end of the interval of its slope, or by
 * its share of the samples if that is not known yet; n < tally_gains then. */
struct tally_line *tally_nth_recent(struct tally *t, bool by_gain, uint64_t n);
/* 0 only without recent samples. */
uint64_t tally_gains(const struct tally *t);
/* What a window of slopes says of @l, ns. */
void tally_add_window(struct tally_line *l, double part, double length);
/* Which waits may be drawn, and by what. */
struct tally_waits {
	unsigned int kinds; /* a bit each */
	uint64_t run_ns; /* the run so far: a place weighs no more than that, however many threads
			    wait there */
	uint64_t longest_ns; /* not where waits take longer than that on average */
	double least_share; /* not kinds that take less of the run than that, in all places together
			     */
};
/* The time that may be drawn from, ns, and the wait at its @n-th ns. Not only from recent samples:
 * a wait is one at its end, and few end between two experiments. *ret_executed: the time for which
 * lines ran. */
uint64_t tally_waiting(const struct tally *t, const struct tally_waits *w, uint64_t *ret_executed);
struct tally_line *tally_nth_waiting(struct tally *t, const struct tally_waits *w, uint64_t n);
/* How long threads waited there, or anywhere if @l is all waits of a kind. *ret_n: in how many
 * waits. */
uint64_t tally_waited(const struct tally *t, const struct tally_line *l, uint64_t *ret_n);
/* The lines that have taken most time since the start, most first, of execution (bit 0 of @kinds)
 * or kinds of waits (base/waits.h): at most @max into @ret; returns how many. */
size_t tally_most(const struct tally *t, unsigned int kinds, struct tally_line **ret, size_t max);
/* The entry of an interned name, made if need be. */
struct tally_line *tally_line_named(struct tally *t, const char *name, const char *function);
/* An experiment selects @l. */
void tally_mark_tried(struct tally *t, struct tally_line *l);
/* Takes @l out of the draw until it is sampled again: its code is not there any more. */
void tally_drop_recent(struct tally *t, struct tally_line *l);
/* The next draw is over the samples from here on. */
void tally_forget_recent(struct tally *t);
struct tally_sums tally_get_sums(const struct tally *t);
/* Samples of execution per place since the start, where threads were and not what called it, by
 * place; *ret is the caller's (free), NULL when there are none. Not of places that were forgotten
 * for others. */
void tally_places(const struct tally *t, struct backend_sample **ret, size_t *ret_n);
/* Samples per line since the start, largest first; *ret is the caller's (free), NULL when there are
 * none; its strings are the tally's, those of inlined copies up to the next call. */
void tally_list(struct tally *t, struct profile_samples **ret, size_t *ret_n);
