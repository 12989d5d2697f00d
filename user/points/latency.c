// SPDX-License-Identifier: BSD-2-Clause
/* Latency points: two probed points that are one point of the run, and the histograms that BPF
 * keeps of them. */
#include "points/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "cozbpf.skel.h"
#include "kernel/map_call.h"
#include "shared/latency.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct latencies {
	size_t room, n;				     /* asked for; in use */
	struct abi_latency *percpu;		     /* room for one copy a CPU */
	struct abi_latency begin[ABI_MAX_LATENCIES]; /* at the begin of the experiment or window
							under way or just ended */
	uint64_t (*lengths)[HISTOGRAM_BUCKETS];	     /* of all windows that have ended */
	bool classed[ABI_MAX_LATENCIES];	     /* in the last window */
	struct abi_latency_bounds bounds[ABI_MAX_LATENCIES]; /* as known now */
};

/* Percentiles of fewer intervals than this are not told. */
#define LEAST_INTERVALS 200

int latency_configure(struct points *ps, struct error *e)
{
	size_t n = ps->options.latencies;
	int r;

	if (n > ABI_MAX_LATENCIES)
		return fail(e, E2BIG, "too many latency points; at most %d", ABI_MAX_LATENCIES);
	ps->skel->rodata->n_latencies = (unsigned int)n;
	r = bpf_map__set_max_entries(ps->skel->maps.latencies, n ? (unsigned int)n : 1);
	if (r == 0)
		r = bpf_map__set_max_entries(ps->skel->maps.interval_slopes,
					     n ? (unsigned int)n * ABI_CLASSES : 1);
	if (r == 0)
		r = bpf_map__set_max_entries(ps->skel->maps.shares, n ? (unsigned int)n : 1);
	if (r == 0 && n == 0)
		r = bpf_map__set_max_entries(ps->skel->maps.begins, 1);
	if (r < 0)
		return fail(e, -r, "cannot make room for latency points: %s", strerror(-r));
	if (n == 0)
		return 0;
	ps->latencies = xcalloc(1, sizeof(*ps->latencies));
	ps->latencies->room = n;
	ps->latencies->percpu = xcalloc(ps->nr_cpus, sizeof(*ps->latencies->percpu));
	ps->latencies->lengths = xcalloc(n, sizeof(*ps->latencies->lengths));
	return 0;
}

void latency_close(struct points *ps)
{
	if (ps->latencies) {
		free(ps->latencies->percpu);
		free(ps->latencies->lengths);
	}
	free(ps->latencies);
	ps->latencies = NULL;
}

int points_pair(struct points *ps, size_t begin, unsigned int begin_argument, size_t end,
		unsigned int end_argument, struct error *e)
{
	struct latencies *l = ps->latencies;

	if (!l || l->n == l->room || begin >= ps->n || end >= ps->n ||
	    begin_argument > ABI_MAX_ARGUMENT || end_argument > ABI_MAX_ARGUMENT)
		return fail(e, EINVAL, "no room for another latency point, or no such points");
	ps->all[begin].latency = true;
	ps->all[begin].pair = (unsigned int)++l->n;
	ps->all[begin].end = end;
	ps->all[end].hidden = true;
	ps->skel->bss->latency_roles[begin] = (struct abi_latency_role){
		.latency = (unsigned int)l->n, .argument = begin_argument};
	ps->skel->bss->latency_roles[end] = (struct abi_latency_role){
		.latency = (unsigned int)l->n, .is_end = 1, .argument = end_argument};
	return 0;
}

static int read_latency(struct points *ps, unsigned int index, struct abi_latency *ret)
{
	/* Before the buckets all is 64 bits wide, signed or not. */
	const size_t words = offsetof(struct abi_latency, buckets) / sizeof(unsigned long long);
	struct latencies *l = ps->latencies;
	_map_call_ bool raised = map_call_begin();
	int r = bpf_map__lookup_elem(ps->skel->maps.latencies, &index, sizeof(index), l->percpu,
				     sizeof(*l->percpu) * ps->nr_cpus, 0);

	_Static_assert(sizeof(struct abi_latency) % sizeof(unsigned long long) == 0,
		       "the kernel's copies follow each other at once");
	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	for (unsigned int cpu = 0; cpu < ps->nr_cpus; cpu++) {
		for (size_t i = 0; i < words; i++)
			((unsigned long long *)ret)[i] +=
				((const unsigned long long *)&l->percpu[cpu])[i];
		for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
			ret->buckets[i] += l->percpu[cpu].buckets[i];
	}
	return 0;
}

int points_latency_begin(struct points *ps)
{
	int r = 0;

	for (size_t i = 0; ps->latencies && i < ps->latencies->n && r == 0; i++)
		r = read_latency(ps, (unsigned int)i, &ps->latencies->begin[i]);
	return r;
}

/* What was counted between two readings. */
static struct profile_latency *difference(const struct abi_latency *a, const struct abi_latency *b)
{
	struct profile_latency d = {
		.sum_ns = (int64_t)((uint64_t)b->sum - (uint64_t)a->sum),
		.unmatched = b->unmatched - a->unmatched,
		.unended = b->unended - a->unended,
		.crossed = b->crossed - a->crossed,
		.lost = b->lost - a->lost,
		.in_flight_begin = (int64_t)(a->opened - a->closed),
		.in_flight_end = (int64_t)(b->opened - b->closed),
	};

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		d.n_buckets += b->buckets[i] != a->buckets[i];
	d.buckets = xcalloc(d.n_buckets, sizeof(*d.buckets));
	d.n_buckets = 0;
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (b->buckets[i] != a->buckets[i])
			d.buckets[d.n_buckets++] = (struct profile_bucket){
				i, (uint32_t)(b->buckets[i] - a->buckets[i])};
	return xmemdup(&d, 1, sizeof(d));
}

int points_latency(struct points *ps, size_t i, struct profile_latency **ret)
{
	const struct point *p = points_shown(ps, i);
	struct abi_latency now;
	int r;

	if (!p || !p->pair)
		return 0;
	r = read_latency(ps, p->pair - 1, &now);
	if (r == 0)
		*ret = difference(&ps->latencies->begin[p->pair - 1], &now);
	return r;
}

int points_window_begin(struct points *ps)
{
	struct latencies *l = ps->latencies;

	for (size_t i = 0; l && i < l->n; i++) {
		ps->skel->bss->latency_bounds[i] = l->bounds[i];
		l->classed[i] = l->bounds[i].ns[ABI_CLASSES - 2] > 0;
	}
	ps->skel->bss->slope_interval.number = 0;
	ps->skel->bss->slope_interval.busy = 0;
	return points_latency_begin(ps);
}

/* The length that the share @q of the intervals does not exceed, ns. */
static uint64_t quantile(const uint64_t *lengths, uint64_t total, double q)
{
	uint64_t below = 0;
	unsigned int i = 0;

	while (i < HISTOGRAM_BUCKETS - 1 && (double)(below + lengths[i]) < q * (double)total)
		below += lengths[i++];
	return histogram_low(i) + histogram_width(i);
}

static void take_lengths(struct latencies *l, size_t i, const struct abi_latency *now)
{
	static const double shares[ABI_CLASSES - 1] = {0.5, 0.9, 0.99};
	uint64_t total = 0;

	for (size_t k = 0; k < HISTOGRAM_BUCKETS; k++) {
		l->lengths[i][k] += (uint32_t)(now->buckets[k] - l->begin[i].buckets[k]);
		total += l->lengths[i][k];
	}
	for (size_t k = 0; total >= LEAST_INTERVALS && k < ABI_CLASSES - 1; k++)
		l->bounds[i].ns[k] = quantile(l->lengths[i], total, shares[k]);
}

int points_window_end(struct points *ps)
{
	struct latencies *l = ps->latencies;
	_cleanup_free_ struct abi_latency *now = xcalloc(1, sizeof(*now));
	int r = 0;

	for (size_t i = 0; l && r == 0 && i < l->n; i++) {
		r = read_latency(ps, (unsigned int)i, now);
		if (r == 0)
			take_lengths(l, i, now);
	}
	return r;
}

bool points_classed(const struct points *ps, const struct point *p, uint64_t *ret_slow_ns)
{
	*ret_slow_ns = ps->latencies->bounds[p->pair - 1].ns[ABI_CLASSES - 2];
	return ps->latencies->classed[p->pair - 1];
}
