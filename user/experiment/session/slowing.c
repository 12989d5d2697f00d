// SPDX-License-Identifier: BSD-2-Clause
/* Slowing the line at its visits, by probes that spin: how long a visit takes is known from the
 * samples in the line and the visits of all experiments so far. */
#include "experiment/session/internal.h"

#include "base/error.h"
#include "cozbpf.skel.h"
#include "experiment/slowing.h"

#include <errno.h>
#include <string.h>

static bool by_probes(const struct session *s)
{
	return s->slow_probes.n_links || s->slow_probes.n_fds;
}

int session_slow_at(struct session *s, const struct point_site *sites, size_t n, struct error *e)
{
	const struct point_probes u = {
		.program = s->skel->progs.slow_visit,
		.pid = s->points.pid,
		.what = "the line to be slowed",
	};
	int r;

	if (!s->options.points.slow_probes || by_probes(s))
		return fail(e, EINVAL,
			    "the line cannot be slowed by probes in this session, or is already");
	r = session_totals(s, &s->slow_begin);
	if (r < 0)
		return fail(e, -r, "cannot read the counters: %s", strerror(-r));
	memset(s->skel->bss->slowed, 0, sizeof(s->skel->bss->slowed));
	r = points_attach_probes(&s->points, &s->slow_probes, &u, sites, n, e);
	if (r < 0) {
		point_free(&s->slow_probes);
		return r;
	}
	s->slow_probes.cost_ns = points_sites_cost(&s->points, sites, n);
	return 0;
}

void session_slow_by_samples(struct session *s)
{
	point_free(&s->slow_probes);
}

int session_slowed(struct session *s, struct slowing_seen *ret)
{
	struct slowing_seen x = {.cost_ns = s->slow_probes.cost_ns};
	struct abi_totals t;
	int r = session_totals(s, &t);

	if (r < 0)
		return r;
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++) {
		x.visits += __atomic_load_n(&s->skel->bss->slowed[cpu].visits, __ATOMIC_RELAXED);
		x.spun_ns += __atomic_load_n(&s->skel->bss->slowed[cpu].spun_ns, __ATOMIC_RELAXED);
	}
	x.samples = t.selected_samples - s->slow_begin.selected_samples;
	x.line_ns = t.selected_ns - s->slow_begin.selected_ns;
	*ret = x;
	return 0;
}

void slowing_begin(struct session *s, double share, uint64_t epoch)
{
	size_t i = (epoch >> 1) & 1;
	struct slowing_seen x;

	s->skel->bss->slow_spin_ns[i] = 0;
	if (share <= 0 || !by_probes(s) || session_slowed(s, &x) < 0 || !x.visits)
		return;
	s->skel->bss->slow_spin_ns[i] =
		(uint64_t)(share * (double)x.line_ns / (double)x.visits + 0.5);
	s->skel->bss->control.setups[i].slow_q16 = 0;
}
