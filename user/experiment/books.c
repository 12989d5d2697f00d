// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/books.h"

/* Counters that a program can reach may run backwards: none since then, not 2^64. */
static uint64_t since(uint64_t end, uint64_t begin)
{
	return end > begin ? end - begin : 0;
}

/* Differences that may have either sign; a sum that does not fit wraps instead of being undefined.
 */
static int64_t change(int64_t end, int64_t begin)
{
	return (int64_t)((uint64_t)end - (uint64_t)begin);
}

static double share(uint64_t part, uint64_t whole)
{
	if (whole == 0)
		return 0;
	return part < whole ? (double)part / (double)whole : 1;
}

static uint64_t passed_ns(const struct backend_totals *from, const struct backend_totals *end,
			  uint64_t end_ns)
{
	return since(end_ns < end->time_ns ? end_ns : end->time_ns, from->time_ns);
}

void books_experiment(const struct backend_totals *begin, const struct backend_totals *end,
		      uint64_t end_ns, struct profile_experiment *ret)
{
	/* G cannot grow after the program's end, so only the clock is cut there. */
	ret->elapsed = passed_ns(begin, end, end_ns);
	ret->began = begin->time_ns;
	ret->growth = since(end->growth, begin->growth);
	ret->duration = since(ret->elapsed, ret->growth);
	ret->executed_ns = since(end->executed_ns, begin->executed_ns);
#define SUM_OF_U64 since
#define SUM_OF_I64 change
#define SUM(kind, name, json) ret->name = SUM_OF_##kind(end->name, begin->name);
#include "shared/sums.def"
#undef SUM
	ret->late = end->pause_latency_ns;
	ret->period_ns = begin->period_ns;
	ret->stolen =
		share(since(end->stolen_ns, begin->stolen_ns), since(end->busy_ns, begin->busy_ns));
	ret->throttled = share(since(end->quota_used_up, begin->quota_used_up),
			       since(end->quota_periods, begin->quota_periods));
	ret->foreign = share(since(end->outside_wait_ns, begin->outside_wait_ns),
			     since(end->busy_ns, begin->busy_ns));
}

/* The stamps are of the visits since begin(), which was some microseconds before @begin was read: a
 * visit in between makes the span one visit too long, an error of those microseconds over the
 * experiment's length. */
static void time_point(const struct backend_totals *begin, const struct backend_point *p,
		       struct profile_point *ret)
{
	int64_t effective;

	if (ret->delta < 2 || p->first_ns == 0 || p->last_ns <= p->first_ns)
		return;
	effective = change(change(p->last_ns, p->first_ns), change(p->last_local, p->first_local));
	if (effective <= 0)
		return;
	ret->first_ns = since(p->first_ns, begin->time_ns);
	ret->last_ns = since(p->last_ns, begin->time_ns);
	ret->effective_ns = (uint64_t)effective;
	ret->timed_visits =
		p->timed_visits >= 2 && p->timed_visits < ret->delta ? p->timed_visits : ret->delta;
	ret->timed = true;
}

/* Little's law wants the mean number in flight; two readings give the mean of both ends, a half
 * rounded away from zero. Negative where departures were seen whose arrivals were not. In 128 bits
 * because the program can write its counters. */
static int64_t mean_in_flight(const struct backend_point *b, const struct backend_point *e)
{
	__int128 sum =
		(__int128)change(b->visits, b->departures) + change(e->visits, e->departures);

	return (int64_t)((sum < 0 ? sum - 1 : sum + 1) / 2);
}

void books_point(const struct backend_totals *begin, const struct backend_totals *end, size_t index,
		 struct profile_point *ret)
{
	static const struct backend_point none;
	const struct backend_point *b = index < begin->n_points ? &begin->points[index] : &none;
	const struct backend_point *e = index < end->n_points ? &end->points[index] : &none;

	*ret = (struct profile_point){
		.kind = ret->kind, .name = ret->name, .latency = ret->latency};
	if (ret->kind == PROFILE_LATENCY) {
		ret->arrivals = since(e->visits, b->visits);
		ret->departures = since(e->departures, b->departures);
		ret->difference = mean_in_flight(b, e);
		return;
	}
	ret->delta = since(e->visits, b->visits);
	ret->cost_ns = e->cost_ns;
	time_point(begin, e, ret);
}

void books_settled(const struct backend_totals *settled, const struct backend_totals *end,
		   uint64_t end_ns, struct profile_experiment *ret)
{
	uint64_t elapsed = passed_ns(settled, end, end_ns),
		 growth = since(end->growth, settled->growth);

	if (elapsed <= growth)
		return;
	ret->settled_elapsed = elapsed;
	ret->settled_duration = elapsed - growth;
	ret->settled_executed_ns = since(end->executed_ns, settled->executed_ns);
}

void books_settled_point(const struct backend_totals *settled, const struct backend_totals *end,
			 size_t index, struct profile_point *ret)
{
	uint64_t before = index < settled->n_points ? settled->points[index].visits : 0;

	if (ret->kind == PROFILE_THROUGHPUT && index < end->n_points)
		ret->settled_delta = since(end->points[index].visits, before);
}

int books_latency(const struct backend_ops *ops, void *backend, size_t index,
		  struct profile_point *ret)
{
	profile_latency_free(ret->latency);
	ret->latency = NULL;
	return ret->kind == PROFILE_LATENCY && ops->latency
		       ? ops->latency(backend, index, &ret->latency)
		       : 0;
}

uint64_t books_visits(const struct profile_point *p)
{
	return p->kind == PROFILE_LATENCY ? p->departures : p->delta;
}

uint64_t books_least_visits(const struct profile_point *points, size_t n,
			    const struct backend_totals *from, const struct backend_totals *to)
{
	uint64_t least = 0;

	for (size_t i = 0; i < n; i++) {
		struct profile_point p = {.kind = points[i].kind};
		uint64_t visits;

		books_point(from, to, i, &p);
		visits = books_visits(&p);
		if (visits && (!least || visits < least))
			least = visits;
	}
	return least;
}
