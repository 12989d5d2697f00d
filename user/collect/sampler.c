// SPDX-License-Identifier: BSD-2-Clause
/* The sampling events of all CPUs, and the tables that the BPF program counts in. */
#include "collect/private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "collect.skel.h"
#include "kernel/namespace.h"
#include "kernel/programs.h"
#include "kernel/refusal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Ticks at one distance fall in step with what programs do. A new distance comes after so many. */
#define TICKS_OF_ONE_DISTANCE 25
#define MOST_DISTANCE_NS NSEC_PER_SEC
/* Frequencies are drawn, not periods: their mean is then the rate. */
#define LEAST_FREQUENCY 0.5
/* A program that does not end within that has not been given its CPU back by a hypervisor. */
#define WAIT_NS (100 * NSEC_PER_MSEC)

static uint64_t draw(struct collector *c, uint64_t every)
{
	uint64_t period = (uint64_t)((double)every / (LEAST_FREQUENCY + 2 * (1 - LEAST_FREQUENCY) *
										rng_unit(&c->rng)));

	return period ? period : 1;
}

/* Hardware cycles come at a rate, for which the kernel chooses periods. */
static bool by_rate(const struct collector *c, size_t event)
{
	return event == 0 && c->events[0].type == PERF_TYPE_HARDWARE;
}

static int open_event(struct collector *c, unsigned int cpu, size_t event)
{
	const struct collect_event *v = &c->events[event];
	struct perf_event_attr attr = {.type = v->type,
				       .size = sizeof(attr),
				       .config = v->config,
				       .sample_period = draw(c, v->every)};

	if (by_rate(c, event)) {
		attr.freq = 1;
		attr.sample_freq = (uint64_t)c->rate_hz;
	}
	return (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int attach(struct collector *c, struct attached *a)
{
	int fd = open_event(c, a->cpu, a->event);
	int r = programs_attach_perf(c->skel->progs.collect_tick, fd < 0 ? -errno : fd, a->event,
				     &a->link);

	a->fd = r < 0 ? -1 : fd;
	return r;
}

static void detach(struct attached *a)
{
	(void)bpf_link__destroy(a->link); /* and closes the event */
	a->link = NULL;
	a->fd = -1;
}

static int attach_all(struct collector *c, struct error *e)
{
	size_t done[COLLECT_MAX_EVENTS] = {0};
	int why[COLLECT_MAX_EVENTS] = {0};
	struct refusal refusal;

	c->attached = xcalloc(c->n_cpus * c->n_events, sizeof(*c->attached));
	c->ticks_before = xcalloc(c->n_cpus, sizeof(*c->ticks_before));
	for (unsigned int cpu = 0; cpu < c->n_cpus; cpu++)
		for (size_t i = 0; i < c->n_events; i++) {
			struct attached *a = &c->attached[c->n_attached++];
			int r;

			*a = (struct attached){.fd = -1, .cpu = cpu, .event = i};
			r = attach(c, a);
			done[i] += r == 0;
			if (r < 0 && r != -ENODEV) /* offline */
				why[i] = -r;
		}
	for (size_t i = 0; i < c->n_events; i++)
		if (!done[i] && (why[i] == EACCES || why[i] == EPERM)) {
			refusal_of(-why[i], &(struct load_log){}, NULL, &refusal);
			return fail(e, why[i], "cannot sample: %s; %s", refusal.why,
				    refusal.remedy);
		} else if (!done[i]) {
			return fail(e, why[i] ? why[i] : ENODEV,
				    "event %s cannot be counted on this machine: %s%s",
				    c->events[i].name, strerror(why[i]),
				    why[i] == ENOENT
					    ? " (there is no PMU, as in many virtual machines)"
					    : "");
		}
	return 0;
}

static int set_scope(struct collector *c, const char *cgroup, struct error *e)
{
	_cleanup_close_ int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned int first = 0;

	if (fd < 0)
		return fail(e, errno, "cannot open the control group '%s': %m", cgroup);
	if (bpf_map_update_elem(bpf_map__fd(c->skel->maps.collect_scope), &first, &fd, BPF_ANY) < 0)
		return fail(e, errno, "'%s' is no control group (of version 2): %m", cgroup);
	return 0;
}

static int load(struct collector *c, const struct collect_settings *set, struct error *e)
{
	size_t entries = (size_t)2 * c->n_cpus * COLLECT_BUCKETS;
	struct refusal why;
	int r;

	if (set->verbose)
		load_log_verbose();
	load_log_listen(NULL);
	c->skel = collect_bpf__open();
	if (!c->skel ||
	    bpf_map__set_max_entries(c->skel->maps.collect_table, (unsigned int)entries) < 0)
		return fail(e, errno, "cannot open the BPF program that counts: %s",
			    strerror(errno));
	c->skel->rodata->collect_scoped = set->cgroup != NULL;
	r = namespace_find(&c->skel->rodata->own_namespace, e);
	if (r < 0)
		return r;
	r = programs_load(c->skel->skeleton, &why);
	if (r < 0)
		return refusal_fail(e, r, "the BPF programs", &why);
	c->table_bytes = entries * sizeof(*c->table);
	c->table = mmap(NULL, c->table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(c->skel->maps.collect_table), 0);
	if (c->table == MAP_FAILED) {
		c->table = NULL;
		return fail(e, errno, "cannot map the tables of counts: %m");
	}
	return set->cgroup ? set_scope(c, set->cgroup, e) : 0;
}

int sampler_open(struct collector *c, const struct collect_settings *set, struct error *e)
{
	int cpus = libbpf_num_possible_cpus(), r;

	c->rate_hz = set->rate_hz;
	rng_seed(&c->rng, rng_fresh_seed());
	c->n_cpus = cpus > 0 ? (unsigned int)cpus : 1;
	if (c->n_cpus > COLLECT_MAX_CPUS)
		return fail(e, E2BIG, "this machine has %u CPUs; at most %d are supported",
			    c->n_cpus, COLLECT_MAX_CPUS);
	c->events[c->n_events++] = collect_event_default(set->rate_hz);
	for (size_t i = 0; i < set->n_events; i++)
		c->events[c->n_events++] = set->events[i];
	r = load(c, set, e);
	return r == 0 ? attach_all(c, e) : r;
}

void collector_stop(struct collector *c)
{
	for (size_t i = 0; i < c->n_attached; i++)
		detach(&c->attached[i]);
	c->n_attached = 0;
}

void sampler_close(struct collector *c)
{
	collector_stop(c);
	if (c->table)
		(void)munmap(c->table, c->table_bytes);
	collect_bpf__destroy(c->skel);
	free(c->attached);
	free(c->ticks_before);
}

void collector_redraw(struct collector *c)
{
	for (size_t i = 0; i < c->n_attached; i++) {
		struct attached *a = &c->attached[i];
		uint64_t period = draw(c, c->events[a->event].every);

		if (a->fd >= 0 && !by_rate(c, a->event))
			(void)ioctl(a->fd, PERF_EVENT_IOC_PERIOD, &period);
	}
}

uint64_t collector_redraw_ns(const struct collector *c)
{
	uint64_t ns = (uint64_t)(TICKS_OF_ONE_DISTANCE * (double)NSEC_PER_SEC / c->rate_hz);

	return ns < MOST_DISTANCE_NS ? ns : MOST_DISTANCE_NS;
}

/* Until no program that may have begun in the other tables runs on @cpu. */
static void wait_for(const struct collect_cpu *cpu)
{
	uint64_t end = clock_monotonic_ns() + WAIT_NS;

	while (__atomic_load_n(&cpu->busy, __ATOMIC_SEQ_CST) && clock_monotonic_ns() < end)
		(void)sched_yield();
}

void sampler_harvest(struct collector *c, void (*add)(void *arg, const struct collect_entry *e),
		     void *arg)
{
	unsigned int half = c->skel->bss->collect_half;

	__atomic_store_n(&c->skel->bss->collect_half, !half, __ATOMIC_SEQ_CST);
	for (unsigned int cpu = 0; cpu < c->n_cpus; cpu++) {
		struct collect_bucket *b = c->table + (size_t)(2 * cpu + half) * COLLECT_BUCKETS;

		wait_for(&c->skel->bss->collect_cpus[cpu]);
		for (size_t i = 0; i < (size_t)COLLECT_BUCKETS * COLLECT_WAYS; i++) {
			struct collect_entry *e = &b[i / COLLECT_WAYS].ways[i % COLLECT_WAYS];

			if (e->count)
				add(arg, e);
			e->count = 0;
		}
	}
}

/* Without a PMU any more, as after a move to another host, there still is a clock. */
static void fall_back(struct collector *c)
{
	struct collect_event clock;

	if (!by_rate(c, 0) || collect_event_parse("cpu-clock", &clock, NULL) < 0)
		return;
	clock.every = (uint64_t)((double)NSEC_PER_SEC / c->rate_hz);
	c->events[0] = clock;
	if (c->say)
		c->say("hardware cycles cannot be counted any more: the clock is sampled instead",
		       c->arg);
}

static void reopen(struct collector *c, unsigned int cpu)
{
	for (size_t i = 0; i < c->n_attached; i++) {
		struct attached *a = &c->attached[i];
		int r;

		if (a->cpu != cpu)
			continue;
		detach(a);
		r = attach(c, a);
		if (r < 0 && r != -ENODEV && a->event == 0) {
			fall_back(c);
			(void)attach(c, a);
		}
	}
}

void sampler_look_after(struct collector *c)
{
	for (unsigned int cpu = 0; cpu < c->n_cpus; cpu++) {
		uint64_t ticks =
			__atomic_load_n(&c->skel->bss->collect_cpus[cpu].ticks, __ATOMIC_RELAXED);

		if (ticks == c->ticks_before[cpu])
			reopen(c, cpu);
		c->ticks_before[cpu] = ticks;
	}
}

struct collect_totals collector_totals(const struct collector *c)
{
	struct collect_totals t = {0};

	for (unsigned int i = 0; i < c->n_cpus; i++) {
		const struct collect_cpu *cpu = &c->skel->bss->collect_cpus[i];

		t.ticks += cpu->ticks;
		t.hits += cpu->hits;
		t.evicted += cpu->evicted;
		t.lost += cpu->lost;
		t.unknown += cpu->unknown;
		t.outside += cpu->outside;
	}
	return t;
}
