// SPDX-License-Identifier: BSD-2-Clause
/* What a visit of a point takes, measured on ourselves with the very programs that will count: most
 * of it lies outside of them, in the exceptions that a probe takes, and differs tenfold between
 * machines and between instructions. Each figure is the least of some rounds, since whatever else
 * the machine does only adds. */
#include "points/private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "cozbpf.skel.h"
#include "elf/object.h"

#include <bpf/bpf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define VISITS 64
#define ROUNDS 5
#define PLACES CODE_NOP5	   /* no point stands on those, nor on what comes after them */
#define POINT (ABI_MAX_POINTS - 1) /* whose counts are cleared behind us */

/* One place of each cost that a probe has. */
void point_costs_emulated(void);
void point_costs_stepped(void);
#define PLACE(name, code)                                            \
	".type " name ", @function\n" name ": .cfi_startproc\n" code \
	"; ret\n.cfi_endproc\n.size " name ", . - " name "\n"
__asm__(".text\n" PLACE("point_costs_emulated", "nop")
		PLACE("point_costs_stepped", "mov %eax, %eax"));

static void nothing(void)
{
	__asm__ volatile("");
}

static void one_syscall(void)
{
	(void)syscall(SYS_getppid);
}

/* The mean time of a call, in the best round. */
static uint64_t time_of(void (*call)(void))
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = clock_monotonic_ns(), took;

		for (int j = 0; j < VISITS; j++)
			call();
		took = (clock_monotonic_ns() - start) / VISITS;
		if (took < best)
			best = took;
	}
	return best;
}

static uint64_t beyond(uint64_t with, uint64_t without)
{
	return with > without ? with - without : 0;
}

/* The first object is the executable. */
static int take_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1;
}

static void measure_sites(struct points *ps)
{
	void (*const calls[])(void) = {
		[CODE_EMULATED] = point_costs_emulated,
		[CODE_STEPPED] = point_costs_stepped,
	};
	const struct point_probes probes = points_probes_of(ps, POINT, getpid(), "self");
	_cleanup_elf_object_ struct elf_object *self = NULL;
	struct point_site sites[PLACES];
	uint64_t base = 0, idle = time_of(nothing);

	(void)dl_iterate_phdr(take_base, &base);
	if (elf_object_open("/proc/self/exe", &self, NULL) < 0)
		return;
	for (size_t i = 0; i < PLACES; i++)
		sites[i] = (struct point_site){.object = self,
					       .vaddr = (uint64_t)(uintptr_t)calls[i] - base};
	if (points_attach_probes(ps, &ps->measured, &probes, sites, PLACES, NULL) < 0)
		return;
	for (size_t i = 0; i < PLACES; i++)
		ps->costs.site[i] = beyond(time_of(calls[i]), idle);
}

static void measure_syscall(struct points *ps, unsigned int end)
{
	struct abi_syscalls *a = &ps->skel->bss->syscalls;
	unsigned char *slot = end ? &a->leave[SYS_getppid] : &a->enter[SYS_getppid];
	uint64_t idle = time_of(one_syscall);

	if (syscalls_trace(ps, end, NULL) < 0)
		return;
	ps->costs.look[end] = beyond(time_of(one_syscall), idle);
	*slot = POINT + 1;
	ps->costs.syscall[end] = beyond(time_of(one_syscall), idle);
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
	idle = time_of(rename_to_same);
	link = tracepoint_link(ps, POINT, "task", "task_rename", &copy, NULL);
	if (link)
		ps->costs.tracepoint = beyond(time_of(rename_to_same), idle);
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
		measure_sites(ps);
	if (ps->options.needs & POINTS_NEED_SYSCALL_ENTER)
		measure_syscall(ps, 0);
	if (ps->options.needs & POINTS_NEED_SYSCALL_LEAVE)
		measure_syscall(ps, 1);
	if (ps->options.needs & POINTS_NEED_TRACEPOINTS)
		measure_tracepoint(ps);
	c->epoch = (c->epoch + 1) & ~1ULL;
	c->tgid = 0;
	clear_counts(ps);
}
