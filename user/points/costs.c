// SPDX-License-Identifier: BSD-2-Clause
/* What a visit of a point takes, measured on ourselves with the very programs that will count. */
#include "points/private.h"

#include "cozbpf.skel.h"
#include "kernel/costs.h"

#include <bpf/bpf.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POINT (ABI_MAX_POINTS - 1) /* whose counts are cleared behind us */

static void one_syscall(void)
{
	(void)syscall(SYS_getppid);
}

static int attach_sites(const struct elf_object *self, const uint64_t vaddrs[COSTS_PLACES],
			void *arg)
{
	struct points *ps = arg;
	const struct point_probes probes = points_probes_of(ps, POINT, getpid(), "self");
	struct point_site sites[COSTS_PLACES];

	for (size_t i = 0; i < COSTS_PLACES; i++)
		sites[i] = (struct point_site){.object = self, .vaddr = vaddrs[i]};
	return points_attach_probes(ps, &ps->measured, &probes, sites, COSTS_PLACES, NULL);
}

static void measure_syscall(struct points *ps, unsigned int end)
{
	struct abi_syscalls *a = &ps->skel->bss->syscalls;
	unsigned char *slot = end ? &a->leave[SYS_getppid] : &a->enter[SYS_getppid];
	uint64_t idle = costs_of_call(one_syscall);

	if (syscalls_trace(ps, end, NULL) < 0)
		return;
	ps->costs.look[end] = costs_beyond(costs_of_call(one_syscall), idle);
	*slot = POINT + 1;
	ps->costs.syscall[end] = costs_beyond(costs_of_call(one_syscall), idle);
	*slot = 0;
}

static char own_name[16];

static void rename_to_same(void)
{
	(void)prctl(PR_SET_NAME, own_name);
}

/* A thread that takes a name passes one. */
static void measure_tracepoint(struct points *ps)
{
	struct cozbpf_bpf *copy;
	struct bpf_link *link;
	uint64_t idle;

	if (prctl(PR_GET_NAME, own_name) < 0)
		return;
	idle = costs_of_call(rename_to_same);
	link = tracepoint_link(ps, POINT, "task", "task_rename", &copy, NULL);
	if (link)
		ps->costs.tracepoint = costs_beyond(costs_of_call(rename_to_same), idle);
	(void)bpf_link__destroy(link);
	cozbpf_bpf__destroy(copy);
}

static void clear_counts(struct points *ps)
{
	unsigned int point = POINT;

	memset(ps->percpu, 0, sizeof(*ps->percpu) * ps->nr_cpus);
	(void)bpf_map__update_elem(ps->skel->maps.points, &point, sizeof(point), ps->percpu,
				   sizeof(*ps->percpu) * ps->nr_cpus, 0);
}

void points_measure_costs(struct points *ps)
{
	struct abi_control *c = &ps->skel->bss->control;

	/* As in an experiment of a process that is us. */
	c->tgid = (unsigned long long)getpid();
	c->epoch |= 1;
	if (ps->options.needs & POINTS_NEED_PROBES)
		costs_of_probes(attach_sites, ps, ps->costs.site);
	if (ps->options.needs & POINTS_NEED_SYSCALL_ENTER)
		measure_syscall(ps, 0);
	if (ps->options.needs & POINTS_NEED_SYSCALL_LEAVE)
		measure_syscall(ps, 1);
	if (ps->options.needs & POINTS_NEED_TRACEPOINTS)
		measure_tracepoint(ps);
	/* All processes would pay for reports that no point asks for yet. */
	for (size_t i = 0; ps->options.later && i < 2; i++) {
		(void)bpf_link__destroy(ps->syscalls[i]);
		ps->syscalls[i] = NULL;
	}
	c->epoch = (c->epoch + 1) & ~1ULL;
	c->tgid = 0;
	clear_counts(ps);
}
