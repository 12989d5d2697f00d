/* SPDX-License-Identifier: BSD-2-Clause */
/* From gaps that were measured to the costs that the ledger adds. Pure functions. */
#pragma once

#include "shared/abi.h"

#include <stddef.h>
#include <stdint.h>

/* One payment or hit: what it cost unseen, and what was measured beside it. In ns. */
struct unseen_point {
	int64_t beside, ns;
};

/* The mean of @v without what is more than four times its median: the books are sums, so it is the
 * mean that counts; but not of what else came in between, which is as long as it likes. Sorts @v. 0
 * if there is nothing. */
int64_t fit_mean(int64_t *v, size_t n);

/* The line of least squares through @points without those that are far from it. Its slope is from 0
 * to 4, and 0 where the points do not tell; its level is their mean, at least 0. With no points,
 * all is 0. */
struct abi_unseen fit_unseen(const struct unseen_point *points, size_t n);

/* The median of how far @points are above @line, in ns. */
int64_t fit_distance(const struct unseen_point *points, size_t n, const struct abi_unseen *line);
