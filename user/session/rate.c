// SPDX-License-Identifier: BSD-2-Clause
#include "session/rate.h"

#include "base/clock.h"

/* Samples in a round, at least. */
#define SAMPLES_PER_VISIT 6
/* A round has two edges, one each way, or one edge and a wait that others' execution overlaps. */
#define SAMPLES_PER_EDGE 12
/* Threads that lie this far apart do not share pauses: what was owed is long paid. */
#define EDGES_PER_SECOND 20
#define TURNS_SHARE 0.05

static double per_second(uint64_t n, uint64_t ns)
{
	return ns ? (double)n * (double)NSEC_PER_SEC / (double)ns : 0;
}

bool rate_alone(const struct rate_seen *x)
{
	if (x->samples < RATE_ENOUGH_SAMPLES)
		return false;
	return (double)x->turns <= TURNS_SHARE * (double)x->samples && per_second(x->edges, x->run_ns) < EDGES_PER_SECOND;
}

unsigned int rate_next(unsigned int rate, bool first, const struct rate_seen *x)
{
	double visits = SAMPLES_PER_VISIT * per_second(x->visits, x->ns);
	double edges = SAMPLES_PER_EDGE * per_second(x->edges, x->run_ns);
	/* Both: rounds without an edge in them have nobody to wait, and many edges to a visit leave it an average of lumps. */
	double wanted = visits < edges ? visits : edges;

	if (rate_alone(x))
		return first && rate > SESSION_RATE_ALONE ? SESSION_RATE_ALONE : rate;
	if (wanted > SESSION_RATE_HIGH)
		wanted = SESSION_RATE_HIGH;
	/* Too few samples to tell say nothing against the rate that is. */
	if (wanted < SESSION_RATE_LOW && x->samples >= RATE_ENOUGH_SAMPLES)
		wanted = SESSION_RATE_LOW;
	return wanted > rate * 1.05 ? (unsigned int)wanted : rate;
}
