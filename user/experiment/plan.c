// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/plan.h"

#include <errno.h>
#include <stdbool.h>

/* False for NaN too. */
static bool within(double v, double low, double high)
{
	return v >= low && v <= high;
}

int plan_init(struct plan *p, uint64_t seed, double fixed_speedup, double zero_share, const double *grid, size_t n_grid)
{
	if (!within(fixed_speedup, -1, 1) || !within(zero_share, 0, 1))
		return -EINVAL;
	for (size_t i = 0; i < n_grid; i++)
		if (!within(grid[i], 0, 1) || grid[i] == 0)
			return -EINVAL;
	if (fixed_speedup < 0 && n_grid == 0 && zero_share < 1)
		return -EINVAL;
	rng_seed(&p->speedups, seed);
	rng_seed(&p->lines, rng_next(&p->speedups));
	p->grid = grid;
	p->n_grid = n_grid;
	p->zero_share = zero_share;
	p->fixed_speedup = fixed_speedup;
	return 0;
}

double plan_speedup(struct plan *p)
{
	double u;

	if (p->fixed_speedup >= 0)
		return p->fixed_speedup;
	u = rng_unit(&p->speedups);
	if (u < p->zero_share || p->n_grid == 0)
		return 0;
	return p->grid[rng_below(&p->speedups, p->n_grid)];
}

uint64_t plan_sample(struct plan *p, uint64_t n_samples)
{
	return rng_below(&p->lines, n_samples);
}
