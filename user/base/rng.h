/* SPDX-License-Identifier: BSD-2-Clause */
/* A small seeded generator (splitmix64: Steele, Lea, Flood, OOPSLA 2014), so that a run's draws can
 * be repeated from the seed in its file. Not for secrets. */
#pragma once

#include <stdint.h>

struct rng {
	uint64_t state;
};

void rng_seed(struct rng *r, uint64_t seed);
/* Uniform over all 64-bit values. */
uint64_t rng_next(struct rng *r);
/* Uniform in [0, n); n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);
/* Uniform in [0, 1). */
double rng_unit(struct rng *r);
/* A seed nobody chose (getrandom, clock as fallback). */
uint64_t rng_fresh_seed(void);
