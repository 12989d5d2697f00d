// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/histogram.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* With more experiments than this, neighbours of one speedup are joined: bounded work. */
#define MAX_BLOCKS 400
/* An interval counts this many times at most: one as long as its experiment says little of how many
 * such there are. */
#define MAX_WEIGHT 10.0

static double middle(uint32_t bucket)
{
	return (double)histogram_low(bucket) + ((double)histogram_width(bucket) - 1) / 2;
}

static double weight_of(uint32_t bucket, double window)
{
	double seen = window > 0 ? 1 - middle(bucket) / window : 1;

	return seen > 1 / MAX_WEIGHT ? 1 / seen : MAX_WEIGHT;
}

struct latency_mean latency_mean(const struct profile_latency *l, double window)
{
	struct latency_mean m = {0};
	double seen = 0, all = 0;

	for (size_t i = 0; i < l->n_buckets; i++) {
		double count = (double)l->buckets[i].count,
		       weight = weight_of(l->buckets[i].bucket, window);

		m.count += count;
		m.den += count * weight;
		seen += count * middle(l->buckets[i].bucket);
		all += count * weight * middle(l->buckets[i].bucket);
	}
	/* The sum is exact, the buckets say by how much the unseen intervals would raise it. */
	m.num = seen > 0 ? (double)l->sum_ns * (all / seen) : (double)l->sum_ns;
	return m;
}

/* The shortest and the longest tenth say little of a pace. */
#define EDGE 0.1

double histogram_middle(const struct profile_latency *l, double window)
{
	double total = 0, before = 0, sum = 0, used = 0;

	for (size_t i = 0; i < l->n_buckets; i++)
		total += (double)l->buckets[i].count * weight_of(l->buckets[i].bucket, window);
	for (size_t i = 0; i < l->n_buckets; i++) {
		double w = (double)l->buckets[i].count * weight_of(l->buckets[i].bucket, window),
		       inside = fmin(before + w, (1 - EDGE) * total) - fmax(before, EDGE * total);

		if (inside > 0) {
			sum += inside * log(middle(l->buckets[i].bucket) + 1);
			used += inside;
		}
		before += w;
	}
	return used > 0 ? sum / used : NAN;
}

/* A bucket that is scaled lies in so many at most: no bucket is wider than 1/128 of what is in it,
 * and none narrower than 1/256. */
#define SPREAD 4

/* Adds intervals of @bucket, as if they were spread evenly over it, to where they are when their
 * times are scaled. */
static void add_at_pace(double weight[HISTOGRAM_BUCKETS], uint32_t bucket, double count,
			double scale)
{
	double width = (double)histogram_width(bucket) * scale,
	       low = (double)histogram_low(bucket) * scale;
	uint32_t to;

	if (scale == 1) {
		weight[bucket] += count;
		return;
	}
	if (!(low + width < 0x1p62)) {
		weight[HISTOGRAM_BUCKETS - 1] += count;
		return;
	}
	to = histogram_bucket((uint64_t)low);
	for (int i = 1; i < SPREAD && to + 1 < HISTOGRAM_BUCKETS && histogram_width(bucket) > 1;
	     i++) {
		double here = fmin((double)histogram_low(to + 1) - low, width);

		if (here >= width)
			break;
		weight[to++] += count * here / width;
		count -= count * here / width;
		low += here;
		width -= here;
	}
	weight[to] += count;
}

static void add_block(struct histogram_blocks *b, const struct observation *obs, size_t n,
		      double weight[HISTOGRAM_BUCKETS])
{
	struct histogram_block *block = &b->list[b->n];

	*block = (struct histogram_block){.key = obs[0].key, .first = b->n_pairs};
	memset(weight, 0, HISTOGRAM_BUCKETS * sizeof(*weight));
	for (size_t i = 0; i < n; i++) {
		const struct profile_latency *l = obs[i].latency;

		for (size_t j = 0; j < l->n_buckets; j++)
			add_at_pace(weight, l->buckets[j].bucket,
				    obs[i].weight * (double)l->buckets[j].count *
					    weight_of(l->buckets[j].bucket, obs[i].duration),
				    obs[i].length_scale);
		block->count += obs[i].visits;
		block->num += obs[i].num[READ_WHOLE];
		block->den += obs[i].den[READ_WHOLE];
		block->flight += obs[i].flight * obs[i].duration * obs[i].scale * obs[i].weight;
		block->departures += obs[i].passed * obs[i].weight;
	}
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (weight[i] > 0)
			b->pairs[b->n_pairs++] = (struct histogram_pair){i, weight[i]};
	block->n = b->n_pairs - block->first;
	b->n++;
}

struct histogram_blocks histogram_blocks_make(const struct observation *obs, size_t n)
{
	struct histogram_blocks b = {0};
	_cleanup_free_ double *weight = xcalloc(HISTOGRAM_BUCKETS, sizeof(*weight));
	size_t join = 1 + n / MAX_BLOCKS, pairs = 0;

	for (size_t i = 0; i < n; i++)
		pairs += obs[i].latency->n_buckets;
	b.list = xcalloc(n + 1, sizeof(*b.list));
	b.pairs = xcalloc(pairs + 1, SPREAD * sizeof(*b.pairs));
	for (size_t i = 0, len; i < n; i += len) {
		for (len = 1; len < join && i + len < n && obs[i + len].key == obs[i].key; len++)
			;
		add_block(&b, obs + i, len, weight);
	}
	return b;
}

void histogram_blocks_free(struct histogram_blocks *b)
{
	free(b->list);
	free(b->pairs);
	*b = (struct histogram_blocks){0};
}

void histogram_clear(struct histogram_sums *s)
{
	for (uint32_t i = s->from; i < s->to; i++)
		s->weight[i] = 0;
	s->from = s->to = 0;
	s->total = s->count = s->num = s->den = s->flight = s->departures = 0;
}

void histogram_add(struct histogram_sums *s, const struct histogram_blocks *b, size_t i)
{
	const struct histogram_block *block = &b->list[i];
	uint32_t from, to;

	if (block->n) {
		from = b->pairs[block->first].bucket;
		to = b->pairs[block->first + block->n - 1].bucket + 1;
		s->from = s->to == 0 || from < s->from ? from : s->from;
		s->to = to > s->to ? to : s->to;
	}
	for (size_t j = block->first; j < block->first + block->n; j++) {
		s->weight[b->pairs[j].bucket] += b->pairs[j].weight;
		s->total += b->pairs[j].weight;
	}
	s->count += block->count;
	s->num += block->num;
	s->den += block->den;
	s->flight += block->flight;
	s->departures += block->departures;
}

double histogram_quantile(const struct histogram_sums *s, double q)
{
	double wanted = q * s->total, before = 0, last = NAN;

	if (!(s->count * (1 - q) >= 1))
		return NAN;
	for (uint32_t i = s->from; i < s->to; i++) {
		double w = s->weight[i], width = (double)histogram_width(i);

		if (!(w > 0))
			continue;
		/* A bucket of one nanosecond is that nanosecond. */
		last = (double)histogram_low(i) + (width > 1 ? width : 0);
		if (before + w >= wanted)
			return (double)histogram_low(i) +
			       (width > 1 ? width * (wanted - before) / w : 0);
		before += w;
	}
	return last; /* by rounding */
}
