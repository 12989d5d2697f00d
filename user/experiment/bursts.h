/* SPDX-License-Identifier: BSD-2-Clause */
/* When there are experiments where they take a part of the time only: bursts at random distances,
 * with rests between them. Pure: times are the caller's. */
#pragma once

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bursts {
	double duty, most_slowdown, zero_share; /* as in runner_options */
	struct rng rng;
	uint64_t n;	     /* before this one */
	size_t experiments;  /* of this one, so far */
	uint64_t ns, growth; /* of these, together: how long they were, and what the global delay
				grew by */
	uint64_t warm_up_ns; /* how long the next warm-up is to be */
	bool resting;	     /* since rest_since */
	uint64_t rest_since, rested_ns; /* rested_ns: in all rests that are over */
};

void bursts_init(struct bursts *b, double duty, double most_slowdown, double zero_share,
		 uint64_t seed);
/* Else it is one experiment after another. */
bool bursts_wanted(const struct bursts *b);
/* An experiment has ended. True: it was the last of its burst. */
bool bursts_add(struct bursts *b, uint64_t elapsed_ns, uint64_t growth_ns);
/* After a burst, at @now: for how long nothing is to be done, ns, before the next warm-up: until
 * experiments had their share of the time, half more or less, and the program has lost no more of
 * the time than it may. 0: no rest. Else it has begun. */
uint64_t bursts_rest(struct bursts *b, uint64_t now);
/* The rest is over; how long it was, ns. 0 without a rest. */
uint64_t bursts_end_rest(struct bursts *b, uint64_t now);
