/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments' histograms, weighted and added up. Internal to the package. */
#pragma once

#include "analysis/collect.h"

#include "shared/histogram.h"

/* An experiment's intervals as mean = num / den. */
struct latency_mean {
	double num, den;
	double count; /* of intervals that were seen */
};
struct latency_mean latency_mean(const struct profile_latency *l, double window);

/* The mean of the logarithms of the lengths, in ns, without the shortest and the longest tenth; NaN
 * where there are none. */
double histogram_middle(const struct profile_latency *l, double window);

/* The intervals of some experiments together. */
struct histogram_sums {
	double weight[HISTOGRAM_BUCKETS];
	uint32_t from, to; /* buckets outside of [from, to) are empty */
	double total;	   /* of the weights */
	double count;	   /* intervals that were seen */
	double num, den;   /* the mean is num / den */
	double flight,
		departures; /* under way on average, times time; and what left in that time */
};

struct histogram_pair {
	uint32_t bucket;
	double weight;
};

/* An experiment, or some of one speedup where there are very many. */
struct histogram_block {
	uint16_t key;	 /* as observation.key */
	size_t first, n; /* its pairs */
	double count, num, den, flight, departures;
};

struct histogram_blocks {
	struct histogram_block *list;
	size_t n;
	struct histogram_pair *pairs;
	size_t n_pairs;
};

/* The caller's (histogram_blocks_free). @obs are measured and in the order of their keys. */
struct histogram_blocks histogram_blocks_make(const struct observation *obs, size_t n);
void histogram_blocks_free(struct histogram_blocks *b);

/* Zeroed memory is a sum of nothing, and so is a sum after this. */
void histogram_clear(struct histogram_sums *s);
/* Adds block @i once more. */
void histogram_add(struct histogram_sums *s, const struct histogram_blocks *b, size_t i);
/* The length, in ns, that the share @q of the intervals does not exceed, as if those of a bucket
 * were spread evenly over it. NaN where less than one interval lies beyond it. */
double histogram_quantile(const struct histogram_sums *s, double q);
