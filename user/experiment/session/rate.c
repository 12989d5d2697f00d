// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/session/rate.h"

#include "base/clock.h"

/* Samples in a round, at least. */
#define SAMPLES_PER_VISIT 6
/* Few edges are enough: threads that share a lock may meet only now and then, and all the time once
 * one of them is paused. That is so past the knee of a lock that nobody waits for otherwise; some
 * tens of edges a second are seen there. */
#define SAMPLES_PER_EDGE 400
/* But where next to all samples are one thread's, others are no competitors for a lock. What such a
 * thread and its helpers have to do with each other is less than this: some 50 ms lie between two
 * wake-ups, and a pause at SESSION_RATE_ALONE is 2 ms. */
#define WAKES_PER_SECOND 20
#define TURNS_SHARE 0.05
/* Samples that take longer make the intervals wider, not narrower: they are as uneven as the
 * machine. */
#define MOST_TICKS 0.05
/* Slopes of a server may come a little later, but nobody should notice that they are measured. */
#define MOST_TICKS_LIGHT 0.015

/* As often as ticks of @tick_ns may come that take @share of the time, within bounds. */
static unsigned int rate_of(uint64_t tick_ns, double share, unsigned int least, unsigned int most)
{
	double rate = tick_ns ? share * (double)NSEC_PER_SEC / (double)tick_ns : most;

	return rate > most ? most : rate < least ? least : (unsigned int)rate;
}

unsigned int rate_low(uint64_t tick_ns)
{
	return rate_of(tick_ns, MOST_TICKS, SESSION_RATE_LEAST, SESSION_RATE_LOW);
}

unsigned int rate_light(uint64_t tick_ns)
{
	return rate_of(tick_ns, MOST_TICKS_LIGHT, SESSION_RATE_LIGHT, SESSION_RATE_LEAST);
}

bool rate_alone(const struct rate_seen *x)
{
	if (x->samples < RATE_ENOUGH_SAMPLES)
		return false;
	return (double)x->turns <= TURNS_SHARE * (double)x->samples &&
	       clock_per_second(x->wakes, x->run_ns) < WAKES_PER_SECOND;
}

unsigned int rate_next(unsigned int rate, bool first, const struct rate_seen *x)
{
	double visits = SAMPLES_PER_VISIT * clock_per_second(x->visits, x->ns);
	double edges = SAMPLES_PER_EDGE * clock_per_second(x->wakes + x->cpu_waits, x->run_ns);
	/* Both: where there are no edges nobody waits, and many of them to a visit leave it an
	 * average of large steps. */
	double wanted = visits < edges ? visits : edges, low = rate_low(x->tick_ns);

	if (rate_alone(x))
		return first && rate > SESSION_RATE_ALONE ? SESSION_RATE_ALONE : rate;
	if (wanted > SESSION_RATE_HIGH)
		wanted = SESSION_RATE_HIGH;
	/* Too few samples to tell say nothing against the rate that is. */
	if (wanted < SESSION_RATE_LOW && x->samples >= RATE_ENOUGH_SAMPLES)
		wanted = wanted > low ? SESSION_RATE_LOW : low;
	return wanted > rate * 1.05 ? (unsigned int)wanted : rate;
}
