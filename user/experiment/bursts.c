// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/bursts.h"

#include "base/clock.h"

#include <math.h>

/* A burst is so many blocks of the plan, each with one experiment at 0 %: where the load changes,
 * an experiment is compared with those at 0 % of its own burst, and two of them show how well they
 * predict each other (analysis/drift.c). More experiments would only meet the same load again. The
 * first burst is one block: it comes when the program has just been found, and what that is like is
 * not to have a large part where programs are restarted often. */
#define BLOCKS_IN_BURST 2

/* Before a burst's first experiment: its lines are drawn from that too, and it says how long its
 * experiments are to be. Where there is much to do bursts are short, and come the more often. So
 * that what is sampled before them is the same share of the time always, it lasts so many times as
 * long as the burst before; the first one so long. */
#define WARM_UP_BURSTS 2
#define FIRST_WARM_UP_NS (200 * NSEC_PER_MSEC)

void bursts_init(struct bursts *b, double duty, double most_slowdown, double zero_share,
		 uint64_t seed)
{
	*b = (struct bursts){.duty = duty,
			     .most_slowdown = most_slowdown,
			     .zero_share = zero_share,
			     .warm_up_ns = FIRST_WARM_UP_NS};
	rng_seed(&b->rng, seed);
}

bool bursts_wanted(const struct bursts *b)
{
	return b->duty > 0 || b->most_slowdown > 0;
}

bool bursts_add(struct bursts *b, uint64_t elapsed_ns, uint64_t growth_ns)
{
	size_t blocks = b->n ? BLOCKS_IN_BURST : 1;

	b->ns += elapsed_ns;
	b->growth += growth_ns;
	return ++b->experiments >= (size_t)((double)blocks / b->zero_share + 0.5);
}

uint64_t bursts_rest(struct bursts *b, uint64_t now)
{
	double burst = (double)b->ns, ns = 0, warm_up;

	if (b->duty > 0)
		ns = burst / b->duty * (0.5 + rng_unit(&b->rng)) - burst;
	if (b->most_slowdown > 0)
		ns = fmax(ns, (double)b->growth / b->most_slowdown - burst);
	b->n++;
	b->experiments = 0;
	b->ns = b->growth = 0;
	warm_up = fmin(WARM_UP_BURSTS * burst, ns / 2);
	if (!(ns - warm_up >= 1))
		return 0;
	b->warm_up_ns = (uint64_t)warm_up;
	b->resting = true;
	b->rest_since = now;
	return (uint64_t)(ns - warm_up);
}

uint64_t bursts_end_rest(struct bursts *b, uint64_t now)
{
	uint64_t ns = b->resting && now > b->rest_since ? now - b->rest_since : 0;

	b->resting = false;
	b->rested_ns += ns;
	return ns;
}
