// SPDX-License-Identifier: BSD-2-Clause
/* Windows in which slopes are measured (bpf/slopes.h). */
#include "experiment/session/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "cozbpf.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PLACES_SIZE (2 * ABI_MAX_PLACES * sizeof(struct abi_place))

_Static_assert((int)WAIT_KINDS == (int)ABI_WAITS, "an entry for each kind of wait");
_Static_assert(PROFILE_CLASSES == ABI_CLASSES, "sums for each class");

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
	int r = session_totals(s, &t);

	*ret_run = t.run_ns;
	*ret_ticked = 0;
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		*ret_ticked += s->skel->bss->slope_ticked[cpu * ABI_TICKED_STEP];
	return r;
}

static double scale_of(uint64_t run, uint64_t ticked)
{
	return ticked ? fmin(fmax((double)run / (double)ticked, 0.5), 2) : 1;
}

/* Which point BPF takes it for. */
static uint32_t number_of(const struct session *s, const struct point *p)
{
	return (uint32_t)(p - s->points.all);
}

int session_slopes_follow(void *session, const struct abi_place *places, size_t n)
{
	struct session *s = session;
	struct abi_slopes_control *c = &s->skel->bss->slopes_control;
	unsigned int half = !c->half;

	if (!s->places)
		return -EOPNOTSUPP;
	if (n > ABI_MAX_PLACES)
		return -E2BIG;
	/* The half that no sample looks into. */
	memcpy(s->places + (half ? ABI_MAX_PLACES : 0), places, n * sizeof(*places));
	s->window_waits = 0;
	for (size_t i = 0; i < n; i++)
		if (ABI_CODE_WAIT(places[i].lo))
			s->window_waits |= 1ULL << places[i].entry;
	c->n_places[half] = (unsigned int)n;
	__atomic_store_n(&c->half, half, __ATOMIC_SEQ_CST);
	return 0;
}

void session_slopes_end_point(struct session *s, size_t point)
{
	s->skel->bss->slopes_control.end_point = (unsigned int)point + 1;
}

int session_slopes_begin(void *session, const struct abi_place *places, size_t n, uint64_t since_ns)
{
	struct session *s = session;
	struct abi_slopes_control *c = &s->skel->bss->slopes_control;
	uint64_t window = ++s->window;
	int r = session_slopes_follow(s, places, n);

	if (r < 0)
		return r;
	points_update_sampled(&s->points);
	events_in_step(s, true);
	r = read_run(s, &s->window_run_ns, &s->window_ticked_ns);
	if (r == 0)
		r = points_window_begin(&s->points);
	if (r < 0)
		return r;
	for (size_t i = 0; i < points_count(&s->points); i++) {
		const struct point *p = points_shown(&s->points, i);

		if (p->probed)
			c->visit_ns[number_of(s, p)] = (unsigned int)p->cost_ns;
	}
	c->own_q16 = s->intervals_ns > 0
			     ? (uint64_t)(65536 * fmin(s->intervals_own / s->intervals_ns, 1))
			     : 0;
	s->window_scale = scale_of(s->run_ns_so_far, s->ticked_ns_so_far);
	c->scale_q16 = (uint64_t)(65536 * s->window_scale);
	c->begun_ns = s->begin_ns = since_ns ? since_ns : clock_monotonic_ns();
	__atomic_store_n(&c->window, window, __ATOMIC_SEQ_CST);
	return 0;
}

/* A hypervisor that takes a CPU away takes ticks along, and a thread's next one stands for too
 * little: what the scheduler says that threads executed is spread over the ticks that came. */
int session_slopes_end(void *session)
{
	struct session *s = session;
	uint64_t run, ticked;
	int r = read_run(s, &run, &ticked);

	__atomic_store_n(&s->skel->bss->slopes_control.window, 0, __ATOMIC_SEQ_CST);
	if (r == 0)
		r = points_window_end(&s->points);
	/* As between experiments. */
	clocks_maintain(s);
	loopback_maintain(s);
	events_redraw(s, clock_monotonic_ns());
	s->window_ns = clock_monotonic_ns() - s->skel->bss->slopes_control.begun_ns;
	run -= s->window_run_ns;
	ticked -= s->window_ticked_ns;
	s->run_ns_so_far += r == 0 ? run : 0;
	s->ticked_ns_so_far += r == 0 ? ticked : 0;
	/* An entry with waits cannot be multiplied afterwards: BPF has seen to it. */
	if (!s->skel->rodata->config.inclusive)
		s->window_scale = scale_of(run, ticked);
	return r;
}

/* What visits found, of all CPUs. */
struct sums {
	double visits, coarse, time, time2;
	double sum[ABI_ENTRIES], product[ABI_ENTRIES];
};

static void add_sums(struct sums *x, const struct abi_slopes *a)
{
	x->visits += (double)a->visits;
	x->coarse += (double)a->coarse;
	x->time += (double)a->time;
	x->time2 += (double)a->time2;
	for (size_t i = 0; i < ABI_ENTRIES; i++) {
		x->sum[i] += (double)a->sum[i];
		x->product[i] += (double)a->product[i];
	}
}

/* Of fewer visits a line through the window's begin says more. */
#define LEAST_FITTED 8

/* By how much the visits are later than their mean, times what @product and @sum say of them: what
 * the slope of a least squares line through D and the time is the ratio of. A round that the
 * window's begin cuts lacks its first part in all D of its chain alike, which the line's height
 * takes, and not its slope. */
static double fitted(const struct sums *x, double product, double sum)
{
	return x->visits < LEAST_FITTED ? product : product - sum * x->coarse / x->visits;
}

/* Entry @i, in ns: of intervals, or as struct backend_slopes has it. */
static double entry_ns(const struct session *s, const struct sums *x, size_t i, bool intervals)
{
	const double d_coarse = 1 << ABI_D_SHIFT, time_coarse = 1 << ABI_TIME_SHIFT;

	if (intervals)
		return x->sum[i] * ABI_D_UNIT;
	return fitted(x, x->product[i], x->sum[i] / d_coarse) * d_coarse * ABI_D_UNIT *
	       time_coarse / (double)s->window_ns;
}

static double time_ns(const struct session *s, const struct sums *x, bool intervals)
{
	const double time_coarse = 1 << ABI_TIME_SHIFT;

	if (intervals)
		return x->time;
	return fitted(x, x->time2, x->coarse) * time_coarse * time_coarse / (double)s->window_ns;
}

static void tell(struct session *s, const struct sums *x, bool intervals,
		 struct backend_slopes *ret)
{
	double scale = s->window_scale;
	double own = scale * entry_ns(s, x, ABI_ENTRY_OWN, intervals);
	/* The machine was another program's meanwhile (R4). */
	double time = time_ns(s, x, intervals) - entry_ns(s, x, ABI_ENTRY_BESIDE, intervals);

	if (intervals) {
		s->intervals_own += fmax(own, 0);
		s->intervals_ns += fmax(time, 0);
	}
	ret->time_ns = (uint64_t)fmax(time, 0);
	ret->own_ns = (uint64_t)fmax(own, 0);
	for (size_t i = 1; i < ABI_WAITS; i++)
		ret->wait_ns[i] = llround(entry_ns(s, x, ABI_ENTRY_WAITS + i, intervals));
	/* Who had the CPU meanwhile was lengthened as everything is. */
	if (time > 0)
		ret->wait_ns[ABI_WAIT_CPU] =
			llround((double)ret->wait_ns[ABI_WAIT_CPU] * (1 - fmin(own / time, 1)));
	for (size_t i = 0; i < ABI_MAX_FOLLOWED; i++) {
		size_t entry = ABI_ENTRY_FIRST + i;

		ret->place_ns[i] = llround((s->window_waits >> entry & 1 ? 1 : scale) *
					   entry_ns(s, x, entry, intervals));
	}
}

int session_slopes(void *session, size_t point, unsigned int class, struct backend_slopes *ret)
{
	struct session *s = session;
	_cleanup_free_ struct abi_slopes *all = xcalloc(s->nr_cpus, sizeof(*all));
	const struct point *p = points_shown(&s->points, point);
	const struct bpf_map *map = s->skel->maps.slopes;
	uint32_t key = number_of(s, p);
	struct sums x = {0};

	*ret = (struct backend_slopes){0};
	if (p->pair) {
		map = s->skel->maps.interval_slopes;
		key = (p->pair - 1) * ABI_CLASSES + class;
		ret->classed = points_classed(&s->points, p, &ret->slow_ns);
	} else if (!p->probed || p->latency) {
		return 0; /* counters of coz.h: their visits cause no event */
	}
	if (bpf_map_lookup_elem(bpf_map__fd(map), &key, all) < 0)
		return -errno;
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		if (all[cpu].window == s->window) {
			ret->seen += all[cpu].seen;
			if (all[cpu].visits)
				add_sums(&x, &all[cpu]);
		}
	ret->visits = (uint64_t)x.visits;
	if (ret->visits)
		tell(s, &x, p->pair, ret);
	return 0;
}
