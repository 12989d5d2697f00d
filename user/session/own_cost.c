// SPDX-License-Identifier: BSD-2-Clause
/* What our programs in the kernel take of the CPUs. The kernel takes the time of each call only while somebody asks for it, and each call is
 * a little longer then: so it is asked between experiments, once a second at most, and stands for the whole run. */
#include "session/internal.h"

#include "base/clock.h"
#include "cozbpf.skel.h"

#include <bpf/bpf.h>
#include <math.h>
#include <unistd.h>

#define APART_NS NSEC_PER_SEC

static uint64_t run_time_of(const struct cozbpf_bpf *skel)
{
	struct bpf_program *prog;
	uint64_t sum = 0;

	bpf_object__for_each_program (prog, skel->obj) {
		struct bpf_prog_info info = {0};
		unsigned int size = sizeof(info);
		int fd = bpf_program__fd(prog);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
			sum += info.run_time_ns;
	}
	return sum;
}

/* Tracepoints have programs of their own. */
static uint64_t run_time(const struct session *s)
{
	uint64_t sum = run_time_of(s->skel);

	for (size_t i = 0; i < s->points.n; i++)
		if (s->points.all[i].event)
			sum += run_time_of(s->points.all[i].event);
	return sum;
}

void own_cost_begin(struct session *s)
{
	struct own_cost *c = &s->own_cost;
	uint64_t now = clock_monotonic_ns();

	if (!c->wanted || c->counting || (c->last_ns && now < c->last_ns + APART_NS))
		return;
	c->fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	c->last_ns = now;
	if (c->fd < 0) {
		c->wanted = false; /* nor the next time */
		return;
	}
	c->counting = true;
	c->run_ns_before = run_time(s);
	c->begun_ns = clock_monotonic_ns();
}

void own_cost_end(struct session *s)
{
	struct own_cost *c = &s->own_cost;

	if (!c->counting)
		return;
	c->over_ns += clock_monotonic_ns() - c->begun_ns;
	c->run_ns += run_time(s) - c->run_ns_before;
	c->counting = false;
	(void)close(c->fd);
}

void session_measure_own(struct session *s)
{
	s->own_cost.wanted = true;
	own_cost_begin(s);
}

double session_own_share(struct session *s)
{
	const struct own_cost *c = &s->own_cost;

	own_cost_end(s);
	return c->over_ns ? (double)c->run_ns / (double)c->over_ns : NAN;
}
