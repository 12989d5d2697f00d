// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/counting/choice.h"

#include "base/clock.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

/* Per second. With fewer passes an experiment takes long. */
#define LEAST_PER_S 5
/* From here to there a rate is as good as any other. Work of timers and logs is passed less often,
 * and most evenly of all, but no faster when the program is. More passes than these cost more to
 * count, and are as good otherwise: many to a unit of work. */
#define GOOD_FROM_PER_S 100
#define GOOD_TO_PER_S 2000
#define LEAST_PASSES 8 /* fewer may be chance */
#define EVEN 0.25
#define UNEVEN 1.5
/* A system call takes 0.2 us to count, a probe two or more. */
static const double bearable_per_s[CANDIDATE_KINDS] = {
	[CANDIDATE_CALL] = 100000, [CANDIDATE_PROBE] = 10000, [CANDIDATE_FUNCTION] = 10000};

/* How many decades of a rate that is too low a rank, a decade of one that is high, and a scatter of
 * 1 are worth. */
#define RANK_DECADES 0.25
#define HIGH_DECADES 0.25
#define SCATTER_DECADES 1
/* Of system calls of one rank, a rarer one wakes a thread or writes a log, for instance: each
 * decade that it is passed less often than the most frequent one counts. */
#define BESIDE_DECADES 0.5

void choice_add_window(struct choice_windows *w, uint64_t passes, uint64_t ns)
{
	double seconds = (double)ns / (double)NSEC_PER_SEC;

	if (!ns)
		return;
	w->passes += passes;
	w->squares += (double)passes * (double)passes / seconds;
	w->seconds += seconds;
	w->n++;
}

/* Passes at random, as they are of many independent clients, have a variance of their number: what
 * is beyond that, and beyond what so few windows say of a variance, is scatter. */
static double scatter_of(const struct choice_windows *w)
{
	double passes = (double)w->passes, mean = passes / w->n, excess;

	if (w->n < 2 || !w->passes)
		return 0;
	excess = (w->squares - passes * passes / w->seconds) / (passes / w->seconds) / (w->n - 1);
	excess -= 1 + 2 * sqrt(2.0 / (w->n - 1));
	return excess > 0 ? sqrt(excess / mean) : 0;
}

void choice_judge(struct candidate *c, const struct choice_windows *w)
{
	c->passes = w->passes;
	c->per_s = w->seconds > 0 ? (double)w->passes / w->seconds : 0;
	c->scatter = scatter_of(w);
}

const char *choice_evenness(const struct candidate *c)
{
	return c->scatter <= EVEN ? "even" : c->scatter <= UNEVEN ? "uneven" : "in bursts";
}

bool choice_serves(const struct candidate *c)
{
	return !c->at_least && c->passes >= LEAST_PASSES && c->per_s >= LEAST_PER_S &&
	       c->per_s <= choice_bearable(c->kind) && c->scatter <= UNEVEN;
}

double choice_bearable(enum candidate_kind kind)
{
	return bearable_per_s[kind];
}

static double most_of_rank(const struct candidate *c, const struct candidate *all, size_t n)
{
	double most = c->per_s;

	for (size_t i = 0; i < n; i++)
		if (all[i].kind == CANDIDATE_CALL && all[i].rank == c->rank &&
		    choice_serves(&all[i]))
			most = fmax(most, all[i].per_s);
	return most;
}

static double penalty(const struct candidate *c, const struct candidate *all, size_t n)
{
	double low = fmax(log10(GOOD_FROM_PER_S / fmax(c->per_s, 1e-3)), 0),
	       high = fmax(log10(fmax(c->per_s, 1e-3) / GOOD_TO_PER_S), 0);

	if (c->kind == CANDIDATE_CALL && c->per_s > 0)
		low += BESIDE_DECADES * log10(most_of_rank(c, all, n) / c->per_s);
	return low + HIGH_DECADES * high + RANK_DECADES * c->rank + SCATTER_DECADES * c->scatter;
}

static int by_suitability(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return sort_order(choice_serves(y), choice_serves(x))
		       ?: sort_order(x->penalty, y->penalty) ?: strcmp(x->point, y->point);
}

void choice_sort(struct candidate *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		all[i].penalty = penalty(&all[i], all, n);
	sort_array(all, n, by_suitability);
}
