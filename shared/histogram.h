/* SPDX-License-Identifier: BSD-2-Clause */
/* Buckets of durations: what BPF counts into, what a profile file holds and what the analysis
 * reads. As in HdrHistogram (Gil Tene): the powers of two, each in HISTOGRAM_SUB equal parts, so
 * that a bucket is never wider than 1/128 of what falls into it and two percentiles compare to some
 * tenths of a percent, whatever their size. Below 2 * HISTOGRAM_SUB ns each bucket is one
 * nanosecond. The layout is part of the file format: it does not change but under another name
 * (HISTOGRAM_KEY). */
#pragma once

#define HISTOGRAM_SUB_BITS 7
#define HISTOGRAM_KEY "histogram128" /* of a profile file's records; "histogram" had 32 parts */
#define HISTOGRAM_SUB (1U << HISTOGRAM_SUB_BITS)
#define HISTOGRAM_BITS 42 /* 2^42 ns are 73 minutes; what is longer falls into the last bucket */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_BITS - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB)

#define HISTOGRAM_INLINE static inline __attribute__((always_inline, unused))

/* The position of the highest bit that is set; @v > 0. BPF has no instruction for it. */
HISTOGRAM_INLINE unsigned int histogram_log2(unsigned long long v)
{
	unsigned int e = 0;

	if (v >> 32) {
		e += 32;
		v >>= 32;
	}
	if (v >> 16) {
		e += 16;
		v >>= 16;
	}
	if (v >> 8) {
		e += 8;
		v >>= 8;
	}
	if (v >> 4) {
		e += 4;
		v >>= 4;
	}
	if (v >> 2) {
		e += 2;
		v >>= 2;
	}
	return e + (unsigned int)(v >> 1);
}

/* The bucket of @ns: less than HISTOGRAM_BUCKETS. */
HISTOGRAM_INLINE unsigned int histogram_bucket(unsigned long long ns)
{
	unsigned int e;

	if (ns < HISTOGRAM_SUB)
		return (unsigned int)ns;
	if (ns >> HISTOGRAM_BITS)
		return HISTOGRAM_BUCKETS - 1;
	e = histogram_log2(ns) - HISTOGRAM_SUB_BITS;
	return e * HISTOGRAM_SUB + (unsigned int)(ns >> e);
}

/* The least duration of a bucket, and how many there are in it. */
HISTOGRAM_INLINE unsigned long long histogram_low(unsigned int bucket)
{
	unsigned int e = bucket / HISTOGRAM_SUB;

	return e < 2 ? bucket
		     : (unsigned long long)(HISTOGRAM_SUB + bucket % HISTOGRAM_SUB) << (e - 1);
}

HISTOGRAM_INLINE unsigned long long histogram_width(unsigned int bucket)
{
	unsigned int e = bucket / HISTOGRAM_SUB;

	return e < 2 ? 1 : 1ULL << (e - 1);
}
