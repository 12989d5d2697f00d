// SPDX-License-Identifier: BSD-2-Clause
/* Windows in which slopes are measured (bpf/slopes.h). */
#include "session/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cozbpf.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PLACES_SIZE (2 * ABI_MAX_PLACES * sizeof(struct abi_place))

_Static_assert(BACKEND_MAX_PLACES == ABI_ENTRIES - ABI_ENTRY_FIRST, "an entry for each place");
_Static_assert(BACKEND_MAX_PLACE_INTERVALS == ABI_MAX_PLACES, "room for their code");
_Static_assert((int)WAIT_KINDS == (int)ABI_WAITS, "an entry for each kind of wait");
_Static_assert(BACKEND_CLASSES == ABI_CLASSES, "sums for each class");

int slopes_map(struct session *s, struct error *e)
{
	void *places;

	if (!s->skel->rodata->config.slopes)
		return 0;
	places = mmap(NULL, PLACES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      bpf_map__fd(s->skel->maps.places), 0);
	if (places == MAP_FAILED)
		return fail(e, errno, "cannot map the places of slopes: %s", strerror(errno));
	s->places = places;
	return 0;
}

void slopes_unmap(struct session *s)
{
	if (s->places)
		(void)munmap(s->places, PLACES_SIZE);
	s->places = NULL;
}

/* So far: what threads in scope had the CPU for, and what their ticks stood for. */
static int read_run(struct session *s, uint64_t *ret_run, uint64_t *ret_ticked)
{
	struct abi_totals t;
	int r = totals_read(s, &t);

	*ret_run = t.run_ns;
	*ret_ticked = 0;
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		*ret_ticked += s->skel->bss->slope_ticked[cpu * ABI_TICKED_STEP];
	return r;
}

int session_slopes_begin(struct session *s, const struct backend_place *places, size_t n)
{
	struct abi_slopes_control *c = &s->skel->bss->slopes_control;
	uint64_t window = ++s->window;
	struct abi_place *to;
	int r;

	if (!s->places)
		return -EOPNOTSUPP;
	if (n > ABI_MAX_PLACES)
		return -E2BIG;
	/* The half that no sample looks into: the last window had the other one. */
	to = s->places + (window & 1 ? ABI_MAX_PLACES : 0);
	for (size_t i = 0; i < n; i++)
		to[i] = (struct abi_place){
			.lo = places[i].at.lo,
			.hi = places[i].at.hi,
			.entry = (unsigned int)(ABI_ENTRY_FIRST + places[i].place)};
	c->n_places[window & 1] = (unsigned int)n;
	points_update_sampled(&s->points);
	r = read_run(s, &s->window_run_ns, &s->window_ticked_ns);
	if (r == 0)
		r = points_window_begin(&s->points);
	if (r < 0)
		return r;
	for (size_t i = 0; i < points_count(&s->points); i++) {
		const struct point *p = points_shown(&s->points, i);

		if (p->probed && p->begin < ABI_MAX_POINTS)
			c->visit_ns[p->begin] = (unsigned int)p->cost_ns;
	}
	c->begun_ns = clock_monotonic_ns();
	__atomic_store_n(&c->window, window, __ATOMIC_SEQ_CST);
	return 0;
}

/* A hypervisor that takes a CPU away takes ticks along, and a thread's next one stands for too
 * little: what the scheduler says that threads executed is spread over the ticks that came. */
int session_slopes_end(struct session *s)
{
	uint64_t run, ticked;
	int r = read_run(s, &run, &ticked);

	__atomic_store_n(&s->skel->bss->slopes_control.window, 0, __ATOMIC_SEQ_CST);
	if (r == 0)
		r = points_window_end(&s->points);
	/* As between experiments. */
	clocks_maintain(s);
	loopback_maintain(s);
	events_redraw(s, clock_monotonic_ns());
	run -= s->window_run_ns;
	ticked -= s->window_ticked_ns;
	s->window_scale = ticked ? (double)run / (double)ticked : 1;
	s->window_scale = s->window_scale < 0.5 ? 0.5 : s->window_scale > 2 ? 2 : s->window_scale;
	return r;
}

static uint64_t scaled(const struct session *s, uint64_t sum)
{
	return (uint64_t)(s->window_scale * (double)(sum * ABI_D_UNIT));
}

int session_slopes(struct session *s, size_t point, unsigned int class, struct backend_slopes *ret)
{
	_cleanup_free_ struct abi_slopes *all = calloc(s->nr_cpus, sizeof(*all));
	const struct point *p = points_shown(&s->points, point);
	const struct bpf_map *map = s->skel->maps.slopes;
	uint32_t key = (uint32_t)p->begin;

	*ret = (struct backend_slopes){0};
	if (!all)
		return -ENOMEM;
	if (p->pair) {
		map = s->skel->maps.interval_slopes;
		key = (p->pair - 1) * ABI_CLASSES + class;
		ret->classed = points_classed(&s->points, p, &ret->slow_ns);
	} else if (!p->probed || p->latency) {
		return 0; /* counters of coz.h: their visits cause no event */
	}
	if (bpf_map_lookup_elem(bpf_map__fd(map), &key, all) < 0)
		return -errno;
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++) {
		const struct abi_slopes *a = &all[cpu];

		if (a->window != s->window)
			continue;
		ret->seen += a->seen;
		ret->visits += a->visits;
		ret->time_ns += a->time;
		ret->own_ns += scaled(s, a->sum[ABI_ENTRY_OWN]);
		for (size_t i = 1; i < ABI_WAITS; i++)
			ret->wait_ns[i] += a->sum[ABI_ENTRY_WAITS + i] * ABI_D_UNIT;
		for (size_t i = 0; i < BACKEND_MAX_PLACES; i++)
			ret->place_ns[i] += scaled(s, a->sum[ABI_ENTRY_FIRST + i]);
	}
	return 0;
}
