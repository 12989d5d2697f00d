// SPDX-License-Identifier: BSD-2-Clause
/* What has been counted so far. */
#include "points/private.h"

#include "cozbpf.skel.h"
#include "kernel/map_call.h"

/* Where fewer visits come after the program has settled, all of the experiment's are timed. */
#define SETTLED_ENOUGH 8

static int read_probed(struct points *ps, unsigned int index, uint64_t epoch,
		       struct backend_point *p)
{
	const struct abi_point *at =
		NULL; /* the first visit of the time that counts, if that is known */
	uint64_t settled = 0;
	_map_call_ bool raised = map_call_begin();
	int r = bpf_map__lookup_elem(ps->skel->maps.points, &index, sizeof(index), ps->percpu,
				     sizeof(*ps->percpu) * ps->nr_cpus, 0);

	if (r < 0)
		return r;
	for (unsigned int cpu = 0; cpu < ps->nr_cpus; cpu++) {
		const struct abi_point *v = &ps->percpu[cpu];

		p->visits += v->visits;
		if (v->settled_epoch == epoch) {
			settled += v->visits - v->settled_visits + 1;
			if (!at || v->settled_ns < at->settled_ns)
				at = v;
		}
		if (v->epoch != epoch)
			continue;
		if (!p->first_ns || v->first_ns < p->first_ns) {
			p->first_ns = v->first_ns;
			p->first_local = v->first_local;
		}
		if (v->last_ns > p->last_ns) {
			p->last_ns = v->last_ns;
			p->last_local = v->last_local;
		}
	}
	if (at && settled >= SETTLED_ENOUGH) {
		p->first_ns = at->settled_ns;
		p->first_local = at->settled_local;
		p->timed_visits = settled;
	}
	return 0;
}

static void read_counters(const struct points *ps, const struct point *p, struct backend_point *ret)
{
	if (p->has_begin)
		ret->visits =
			__atomic_load_n(&ps->page->counters[p->begin].count, __ATOMIC_RELAXED);
	if (p->latency && p->has_end)
		ret->departures =
			__atomic_load_n(&ps->page->counters[p->end].count, __ATOMIC_RELAXED);
}

static int read_point(struct points *ps, size_t i, uint64_t epoch, struct backend_point *ret)
{
	struct backend_point end = {0};
	int r;

	if (!ps->all[i].probed) {
		read_counters(ps, &ps->all[i], ret);
		return 0;
	}
	r = read_probed(ps, (unsigned int)i, epoch, ret);
	if (r < 0 || !ps->all[i].pair)
		return r;
	r = read_probed(ps, (unsigned int)ps->all[i].end, epoch, &end);
	ret->departures = end.visits;
	return r;
}

/* All calls are looked at, whichever the points are: the visits of the points share that. */
static void add_looks(struct points *ps, struct backend_totals *t)
{
	const struct point *p;

	for (unsigned int end = 0; end < 2; end++) {
		uint64_t visits = 0, each;

		for (size_t i = 0; i < t->n_points; i++)
			if (points_shown(ps, i)->call == end + 1)
				visits += t->points[i].visits;
		each = syscalls_looks(ps, end, visits);
		for (size_t i = 0; i < t->n_points; i++) {
			p = points_shown(ps, i);
			if (p->call == end + 1 && p->cost_ns)
				t->points[i].cost_ns += each;
		}
	}
}

int points_read(struct points *ps, uint64_t epoch, struct backend_totals *ret)
{
	for (size_t i = 0; i < ps->n; i++) {
		struct backend_point *p = &ret->points[ret->n_points];
		int r;

		if (ps->all[i].hidden)
			continue;
		ret->n_points++;
		r = read_point(ps, i, epoch, p);
		if (r < 0)
			return r;
		p->cost_ns = ps->all[i].cost_ns;
		if (ps->all[i].is_sampled)
			p->visits /= ps->options.sample_ns;
	}
	add_looks(ps, ret);
	return 0;
}
