// SPDX-License-Identifier: BSD-2-Clause
/* What a latency point measured, as part of its record. */
#include "profile/fields.h"
#include "profile/record.h"
#include "profile/source.h"
#include "shared/histogram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void profile_latency_free(struct profile_latency *l)
{
	if (l)
		free(l->buckets);
	free(l);
}

struct profile_latency *profile_latency_copy(const struct profile_latency *l)
{
	struct profile_latency *copy = l ? malloc(sizeof(*copy)) : NULL;

	if (!copy)
		return NULL;
	*copy = *l;
	copy->buckets = calloc(l->n_buckets ? l->n_buckets : 1, sizeof(*copy->buckets));
	if (!copy->buckets) {
		free(copy);
		return NULL;
	}
	memcpy(copy->buckets, l->buckets, l->n_buckets * sizeof(*copy->buckets));
	return copy;
}

static int by_bucket(const void *a, const void *b)
{
	const struct profile_bucket *x = a, *y = b;

	return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

int latency_parse(const struct source *src, struct profile_latency **ret)
{
	struct profile_latency *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	r = source_counts(src, "histogram", HISTOGRAM_BUCKETS, &l->buckets, &l->n_buckets);
	if (r == 0)
		r = source_fill(src, &latency_measured_fields, l);
	if (r < 0) {
		profile_latency_free(l);
		return r == -ENOMEM ? r : -ENOENT;
	}
	if (l->n_buckets)
		qsort(l->buckets, l->n_buckets, sizeof(*l->buckets), by_bucket);
	*ret = l;
	return 0;
}
