// SPDX-License-Identifier: BSD-2-Clause
/* What a latency point measured, as part of its record. */
#include "base/memory.h"
#include "profile/record.h"
#include "shared/histogram.h"

#include <errno.h>
#include <stdlib.h>

void profile_latency_free(struct profile_latency *l)
{
	if (l)
		free(l->buckets);
	free(l);
}

struct profile_latency *profile_latency_copy(const struct profile_latency *l)
{
	struct profile_latency *copy;

	if (!l)
		return NULL;
	copy = xmemdup(l, 1, sizeof(*l));
	copy->buckets = xmemdup(l->buckets, l->n_buckets, sizeof(*l->buckets));
	return copy;
}

static int by_bucket(const void *a, const void *b)
{
	const struct profile_bucket *x = a, *y = b;

	return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

/* Files were written with 32 buckets to a power of two before: each is put in the middle of where
 * it was. */
#define COARSE_SUB 32U
#define COARSE_BUCKETS ((HISTOGRAM_BITS - 5 + 1) * COARSE_SUB)

static uint32_t refine(uint32_t coarse)
{
	uint32_t e = coarse / COARSE_SUB;
	uint64_t low = e < 2 ? coarse : (uint64_t)(COARSE_SUB + coarse % COARSE_SUB) << (e - 1);
	uint64_t width = e < 2 ? 1 : 1ULL << (e - 1);

	return histogram_bucket(low + width / 2);
}

static int parse_buckets(const struct source *src, struct profile_latency *l)
{
	int r = source_counts(src, HISTOGRAM_KEY, HISTOGRAM_BUCKETS, &l->buckets, &l->n_buckets);

	if (r != -ENOENT)
		return r;
	r = source_counts(src, "histogram", COARSE_BUCKETS, &l->buckets, &l->n_buckets);
	for (size_t i = 0; r == 0 && i < l->n_buckets; i++)
		l->buckets[i].bucket = refine(l->buckets[i].bucket);
	return r;
}

struct profile_latency *latency_parse(const struct source *src)
{
	struct profile_latency *l = xcalloc(1, sizeof(*l));

	if (parse_buckets(src, l) < 0 || source_fill(src, &latency_measured_fields, l) < 0) {
		profile_latency_free(l);
		return NULL;
	}
	if (l->n_buckets)
		qsort(l->buckets, l->n_buckets, sizeof(*l->buckets), by_bucket);
	return l;
}
