// SPDX-License-Identifier: BSD-2-Clause
/* The calls of experiment/backend.h on BPF. */
#include "experiment/session/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "program/code/map.h"
#include "cozbpf.skel.h"
#include "kernel/map_call.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So that a quarter of these costs, which is how well they are known, makes about one part in a
 * hundred. */
#define LUMP_OVERHEADS 24
#define LUMP_BELOW 0.24
#define LEAST_STRETCH 0.01 /* less is not worth a pause of each thread that sleeps */

/* The median of quarter-octave buckets, at the middle of the median's bucket. */
static uint64_t pause_latency_median(const struct session *s, const struct abi_totals *t)
{
	uint64_t n = 0, seen = 0;

	for (size_t i = 0; i < ABI_PAUSE_LATENCY_BUCKETS; i++)
		n += t->pause_latency[i] - s->begun.pause_latency[i];
	for (size_t i = 0; n && i < ABI_PAUSE_LATENCY_BUCKETS; i++) {
		seen += t->pause_latency[i] - s->begun.pause_latency[i];
		if (2 * seen >= n) {
			uint64_t octave = i / 4, low = (1ULL << octave) + ((i % 4) << octave) / 4;

			return low + ((1ULL << octave) / 8);
		}
	}
	return 0;
}

static int snapshot(void *b, struct backend_totals *ret)
{
	struct session *s = b;
	uint64_t stolen = stolen_ns(s), quota_periods, quota_used_up;
	struct abi_totals t;
	int r = session_totals(s, &t);

	if (r < 0)
		return r;
	quotas_read(s->quotas, &quota_periods, &quota_used_up);
	*ret = (struct backend_totals){
		.time_ns = clock_monotonic_ns(),
		.growth = (uint64_t)__atomic_load_n(&s->skel->bss->global.g, __ATOMIC_SEQ_CST),
#define SUM(kind, name, json) .name = t.name,
#include "shared/sums.def"
#undef SUM
		.outside_wait_ns = t.outside_wait_ns,
		.stolen_ns = stolen,
		.quota_periods = quota_periods,
		.quota_used_up = quota_used_up,
		.busy_ns = t.run_ns + t.wait_ns,
		.executed_ns = t.run_ns > t.stopped_ns ? t.run_ns - t.stopped_ns : 0,
		.period_ns = session_period_ns(s),
		.bounded = s->skel->bss->global.bounded == s->epoch && s->epoch,
		.pause_latency_ns = pause_latency_median(s, &t),
	};
	return points_read(&s->points, s->epoch, ret);
}

static void adapt(struct session *s)
{
	const struct abi_totals *begun = &s->begun;
	struct backend_totals now = {0};
	struct rate_seen x;
	struct abi_totals t;

	if (!events_adaptable(s) || points_read(&s->points, s->epoch, &now) < 0 ||
	    session_totals(s, &t) < 0)
		return;
	x = (struct rate_seen){
		.ns = clock_monotonic_ns() - s->begin_ns,
		.run_ns = t.run_ns - begun->run_ns,
		.wakes = t.wakes - begun->wakes,
		.cpu_waits = t.cpu_waits - begun->cpu_waits,
		.samples = t.samples + t.samples_outside - begun->samples - begun->samples_outside,
		.turns = t.turns - begun->turns,
		.tick_ns = (uint64_t)s->skel->bss->control.costs.tick_ns,
	};
	for (size_t i = 0; i < now.n_points; i++) {
		uint64_t visits = now.points[i].visits, before = s->begun_points.points[i].visits;

		if (!points_shown(&s->points, i)->is_sampled && visits > before &&
		    visits - before > x.visits)
			x.visits = visits - before;
	}
	events_adapt(s, &x);
}

/* The least that a selected sample should have the others pay for, in ns; 0: as much as it earns. A
 * pause stops its thread for longer than it is asked to, and asking for it costs the thread in the
 * line: on a virtual machine 8 and 20 us, half as much again when a neighbour shares the core,
 * where 5 % of half a millisecond are 25. Booked hit by hit, G would grow by nearly twice what was
 * earned, for costs that are known from a calibration only. A quantum is at most what half a
 * speedup makes of a selected sample, and small speedups, whose effects are small, can have such
 * quanta as well. */
static uint64_t booking_quantum(double speedup, const struct abi_control *c)
{
	uint64_t least = c->costs.pay.ns > 0 ? LUMP_OVERHEADS * (uint64_t)c->costs.pay.ns : 0;

	if (least > c->spacing_ns / 2)
		least = c->spacing_ns / 2;
	return speedup > 0 && speedup < LUMP_BELOW &&
			       speedup * (double)c->spacing_ns < (double)least
		       ? least
		       : 0;
}

/* By how much samples slow down what executes. 0: nothing that matters, or not known. */
static uint64_t stretch_q16(const struct session *s, const struct abi_control *c)
{
	uint64_t tick = (uint64_t)c->costs.tick_ns;

	if (s->options.config.slows || (double)tick < LEAST_STRETCH * (double)c->spacing_ns ||
	    tick > c->spacing_ns / 2)
		return 0;
	return (tick << 16) / (c->spacing_ns - tick);
}

static int begin(void *b, const struct backend_setup *setup)
{
	struct session *s = b;
	struct abi_control *c = &s->skel->bss->control;
	uint64_t epoch = (c->epoch + 1) | 1;
	struct abi_setup *a = &c->setups[(epoch >> 1) & 1];
	int r;

	if (setup->n_intervals > ABI_MAX_INTERVALS)
		return -E2BIG;
	if (setup->slow > 0 && !s->options.config.slows)
		return -EOPNOTSUPP;
	own_cost_end(s);
	events_in_step(s, false);
	quotas_follow(s);
	r = session_totals(s, &s->begun);
	if (r < 0)
		return r;
	a->speedup_q16 = (unsigned long long)(setup->speedup * 65536 + 0.5);
	a->quantum_ns = booking_quantum(setup->speedup, c);
	a->slow_q16 = (unsigned long long)(setup->slow * 65536 + 0.5);
	a->settled_ns = setup->settling_ns ? clock_monotonic_ns() + setup->settling_ns : 0;
	a->begun_ns = clock_monotonic_ns();
	a->stretch_q16 = stretch_q16(s, c);
	a->begun_g = __atomic_load_n(&s->skel->bss->global.g, __ATOMIC_SEQ_CST);
	s->skel->bss->global.most =
		setup->most_growth_ns ? a->begun_g + (int64_t)setup->most_growth_ns : 0;
	a->n_intervals = setup->n_intervals;
	memcpy(a->intervals, setup->intervals, setup->n_intervals * sizeof(*a->intervals));
	a->for_cpu = 0;
	for (size_t i = 0; i < setup->n_intervals; i++)
		a->for_cpu |= setup->intervals[i].lo == ABI_CODE_WAITS(ABI_WAIT_CPU, 0);
	s->begun_points = (struct backend_totals){0};
	r = events_adaptable(s) ? points_read(&s->points, s->epoch, &s->begun_points) : 0;
	if (r < 0)
		return r;
	r = points_latency_begin(&s->points);
	if (r < 0)
		return r;
	/* Naming has found more of a line's code since. */
	points_update_sampled(&s->points);
	s->begin_ns = clock_monotonic_ns();
	s->epoch = epoch;
	__atomic_store_n(&c->epoch, epoch, __ATOMIC_SEQ_CST);
	sync_active(s, true);
	return 0;
}

static int end(void *b)
{
	struct session *s = b;
	struct abi_control *c = &s->skel->bss->control;

	if (c->epoch & 1) {
		sync_active(s, false);
		__atomic_store_n(&c->epoch, c->epoch + 1, __ATOMIC_SEQ_CST);
		/* A new period starts a full one from now: here, so that the next experiment does
		 * not begin with a gap. */
		clocks_maintain(s);
		trace_drain(s);
		loopback_maintain(s);
		events_redraw(s, clock_monotonic_ns());
		adapt(s);
		own_cost_begin(s);
	}
	return 0;
}

/* Of all the table's entries, key by key and value by value; *ret_n: how many. Empties it. */
static int drain(const struct bpf_map *map, void *keys, struct abi_sample_sum *sums, uint32_t max,
		 uint32_t *ret_n)
{
	unsigned char batch[sizeof(
		struct abi_chain)]; /* room for a key, whatever the kernel needs of it */
	_map_call_ bool raised = map_call_begin();

	*ret_n = max;
	if (bpf_map_lookup_and_delete_batch(bpf_map__fd(map), NULL, batch, keys, sums, ret_n,
					    NULL) < 0 &&
	    errno != ENOENT)
		return -errno;
	return 0;
}

_Static_assert(sizeof(struct abi_chain) == ABI_CHAIN_SITES * sizeof(abi_u64), "nothing but sites");

int session_elsewhere(struct session *s, struct session_elsewhere **ret, size_t *ret_n)
{
	_cleanup_free_ struct abi_elsewhere *keys = xcalloc(ABI_MAX_SAMPLES, sizeof(*keys));
	_cleanup_free_ struct abi_sample_sum *sums = xcalloc(ABI_MAX_SAMPLES, sizeof(*sums));
	uint32_t n;
	int r = drain(s->skel->maps.elsewhere, keys, sums, ABI_MAX_SAMPLES, &n);

	if (r < 0)
		return r;
	*ret = xcalloc(n, sizeof(**ret));
	for (uint32_t i = 0; i < n; i++)
		(*ret)[i] = (struct session_elsewhere){keys[i].code, keys[i].object, sums[i].count};
	*ret_n = n;
	return 0;
}

static int samples(void *b, struct backend_sample **ret, size_t *ret_n)
{
	struct session *s = b;
	bool inclusive = s->options.config.inclusive;
	const size_t sites = inclusive ? ABI_CHAIN_SITES : 1;
	uint32_t n, max = inclusive ? ABI_MAX_CHAINS : ABI_MAX_SAMPLES;
	_cleanup_free_ abi_u64 *keys = xcalloc(max * sites, sizeof(*keys));
	_cleanup_free_ struct abi_sample_sum *sums = xcalloc(max, sizeof(*sums));
	struct backend_sample *out;
	size_t used = 0;
	int r = drain(inclusive ? s->skel->maps.chains : s->skel->maps.samples, keys, sums, max,
		      &n);

	if (r < 0)
		return r;
	out = xcalloc(n * sites, sizeof(*out));
	for (uint32_t i = 0; i < n; i++) {
		const abi_u64 *chain = &keys[i * sites];

		for (size_t k = 0; k < sites && (chain[k] || !inclusive); k++)
			out[used++] = (struct backend_sample){.addr = chain[k],
							      .count = sums[i].count,
							      .ns = sums[i].ns,
							      .more = k + 1 < sites && chain[k + 1],
							      .wait = ABI_CODE_WAIT(chain[k])};
	}
	*ret = out;
	*ret_n = used;
	return 0;
}

static void add_record(const struct abi_thread_record *r, struct profile_experiment *sum)
{
	int64_t gap = r->change - (r->hits + r->paid + r->credited + r->rq_credited);

	sum->threads++;
	if (r->owed > 0)
		sum->owed += (uint64_t)r->owed;
	else
		sum->ahead -= (uint64_t)r->owed;
	if (gap < 0)
		gap = -gap;
	if (gap > sum->imbalance)
		sum->imbalance = gap;
}

static int owed(void *b, struct profile_experiment *ret)
{
	struct session *s = b;
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(s->iter));
	struct abi_thread_record records[64];
	size_t have = 0;

	if (fd < 0)
		return -errno;
	ret->owed = ret->ahead = ret->threads = 0;
	ret->imbalance = 0;
	for (;;) {
		ssize_t n = read(fd, (char *)records + have, sizeof(records) - have);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		have += (size_t)n;
		if (n == 0 || have == sizeof(records)) {
			for (size_t i = 0; i < have / sizeof(*records); i++)
				add_record(&records[i], ret);
			have = 0;
		}
		if (n == 0)
			return 0;
	}
}

static int latency(void *b, size_t i, struct profile_latency **ret)
{
	struct session *s = b;

	return points_latency(&s->points, i, ret);
}

static int name(void *b, uint64_t addr, const char **ret_line, const char **ret_function)
{
	struct session *s = b;

	return code_map_name(s->points.code, addr, ret_line, ret_function);
}

static size_t callers(void *b, uint64_t addr, const char **ret, size_t max)
{
	struct session *s = b;

	return code_map_callers(s->points.code, addr, ret, max);
}

static const char *inlined(void *b, uint64_t addr)
{
	struct session *s = b;

	return code_map_inlined(s->points.code, addr);
}

static const char *object(void *b, uint64_t addr)
{
	struct session *s = b;

	return code_map_object_of(s->points.code, addr);
}

static int intervals(void *b, const char *line, struct abi_interval *ret, size_t *ret_n)
{
	struct session *s = b;
	struct addr_range ranges[ABI_MAX_INTERVALS];
	size_t n;
	int r = code_map_intervals(s->points.code, line, ranges, ABI_MAX_INTERVALS, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		ret[i] = (struct abi_interval){ranges[i].lo, ranges[i].hi};
	*ret_n = n;
	return 0;
}

const struct backend_ops session_backend = {
	.begin = begin,
	.snapshot = snapshot,
	.end = end,
	.rest = clocks_rest,
	.samples = samples,
	.owed = owed,
	.latency = latency,
	.slopes_begin = session_slopes_begin,
	.slopes_follow = session_slopes_follow,
	.slopes_end = session_slopes_end,
	.slopes = session_slopes,
	.name = name,
	.callers = callers,
	.inlined = inlined,
	.object = object,
	.intervals = intervals,
};
