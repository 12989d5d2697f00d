/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Points whose visits are samples. A line has those of which it is the first code in scope. A
 * function is looked for among that and among all that was called from there, so that one can be
 * named in a program or library that nothing else is known of. */
#pragma once

#include "bpf/slopes.h"

struct abi_sampled sampled __weak SEC(".bss") = {};

/* Which points this CPU's sample is a visit of, a bit each: one, however deep a recursion is.
 * Samples do not interrupt each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} sampled_here __weak SEC(".maps");

struct in_sampled {
	u64 code, points;
};

static long sampled_step(u32 i, struct in_sampled *in)
{
	if (i >= ABI_MAX_SAMPLED)
		return 1;
	if (in->code >= sampled.intervals[i].lo && in->code < sampled.intervals[i].hi)
		in->points |= 1ULL << (sampled.intervals[i].point % ABI_MAX_POINTS);
	return 0;
}

/* A frame at @code, looked for in the first @n intervals. */
__noinline int sampled_in(u64 code, u32 n)
{
	struct in_sampled in = {.code = code};
	u32 zero = 0;
	u64 *points = bpf_map_lookup_elem(&sampled_here, &zero);

	if (!points)
		return 0;
	bpf_loop(n, sampled_step, &in, 0);
	*points |= in.points;
	return 1;
}

static __always_inline void sampled_frame(u64 code, bool is_in_scope)
{
	u64 n;

	if (!config.has_sampled)
		return;
	n = is_in_scope ? *(volatile u64 *)&sampled.n : *(volatile u64 *)&sampled.n_functions;
	if (n)
		sampled_in(code, n);
}

static __always_inline void sampled_begin(void)
{
	u32 zero = 0;
	u64 *points = config.has_sampled ? bpf_map_lookup_elem(&sampled_here, &zero) : NULL;

	if (points)
		*points = 0;
}

struct sampled_visit {
	u64 points, weight, now;
	struct abi_vectors *vectors;
};

static long sampled_visit_step(u32 i, struct sampled_visit *v)
{
	struct abi_point *p;
	u32 point;

	if (i >= ABI_MAX_SAMPLED || !v->points)
		return 1;
	point = sampled.intervals[i].point % ABI_MAX_POINTS;
	if (!(v->points & 1ULL << point))
		return 0;
	v->points &= ~(1ULL << point);
	p = bpf_map_lookup_elem(&points, &point);
	if (p)
		ADD(p->visits, v->weight);
	if (slope_window())
		slope_visit(v->vectors, point, v->now);
	return 0;
}

/* After the walk. S6: who is found in the place, at the time of the sample, is where it is. */
static __always_inline void sampled_count(u64 weight, struct abi_vectors *vectors, u64 now)
{
	u32 zero = 0;
	u64 *points = config.has_sampled ? bpf_map_lookup_elem(&sampled_here, &zero) : NULL;

	if (points && *points) {
		struct sampled_visit v = {*points, weight, now, vectors};

		bpf_loop(*(volatile u64 *)&sampled.n, sampled_visit_step, &v, 0);
	}
}
