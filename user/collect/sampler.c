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

struct attached {
	int fd; /* of the link's event; -1: the CPU is offline, or the event failed */
	struct bpf_link *link;
	unsigned int cpu;
	size_t event;
};

struct sampler {
	struct collect_bpf *skel;
	struct collect_bucket *table;
	size_t table_bytes;
	unsigned int n_cpus;
	double rate_hz;
	struct collect_event events[COLLECT_MAX_EVENTS];
	size_t n_events;
	struct attached *attached; /* n_cpus * n_events */
	size_t n_attached;
	uint64_t *ticks_before; /* by CPU, when it was looked after last */
	struct rng rng;
	void (*say)(const char *text, void *arg);
	void *arg;
};

struct collect_bpf *sampler_skeleton(struct sampler *s)
{
	return s->skel;
}

const struct collect_event *sampler_events(const struct sampler *s, size_t *ret_n)
{
	*ret_n = s->n_events;
	return s->events;
}

static uint64_t draw(struct sampler *s, uint64_t every)
{
	uint64_t period = (uint64_t)((double)every / (LEAST_FREQUENCY + 2 * (1 - LEAST_FREQUENCY) *
										rng_unit(&s->rng)));

	return period ? period : 1;
}

/* Hardware cycles come at a rate, for which the kernel chooses periods. */
static bool by_rate(const struct sampler *s, size_t event)
{
	return event == 0 && !s->events[0].clock;
}

static int open_event(struct sampler *s, unsigned int cpu, size_t event)
{
	const struct collect_event *v = &s->events[event];
	struct perf_event_attr attr = {.type = v->type,
				       .size = sizeof(attr),
				       .config = v->config,
				       .sample_period = draw(s, v->every)};

	if (by_rate(s, event)) {
		attr.freq = 1;
		attr.sample_freq = (uint64_t)s->rate_hz;
	}
	return (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int attach(struct sampler *s, struct attached *a)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = a->event);
	int fd = open_event(s, a->cpu, a->event);

	if (fd < 0)
		return -errno;
	a->link = bpf_program__attach_perf_event_opts(s->skel->progs.collect_tick, fd, &opts);
	if (!a->link) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	a->fd = fd;
	return 0;
}

static void detach(struct attached *a)
{
	(void)bpf_link__destroy(a->link); /* and closes the event */
	a->link = NULL;
	a->fd = -1;
}

static int attach_all(struct sampler *s, struct error *e)
{
	size_t done[COLLECT_MAX_EVENTS] = {0};
	int why[COLLECT_MAX_EVENTS] = {0};
	struct refusal refusal;

	s->attached = xcalloc(s->n_cpus * s->n_events, sizeof(*s->attached));
	s->ticks_before = xcalloc(s->n_cpus, sizeof(*s->ticks_before));
	for (unsigned int cpu = 0; cpu < s->n_cpus; cpu++)
		for (size_t i = 0; i < s->n_events; i++) {
			struct attached *a = &s->attached[s->n_attached++];
			int r;

			*a = (struct attached){.fd = -1, .cpu = cpu, .event = i};
			r = attach(s, a);
			done[i] += r == 0;
			if (r < 0 && r != -ENODEV) /* offline */
				why[i] = -r;
		}
	for (size_t i = 0; i < s->n_events; i++)
		if (!done[i] && (why[i] == EACCES || why[i] == EPERM)) {
			refusal_of(-why[i], &(struct load_log){}, NULL, &refusal);
			return fail(e, why[i], "cannot sample: %s; %s", refusal.why,
				    refusal.remedy);
		} else if (!done[i]) {
			return fail(e, why[i] ? why[i] : ENODEV,
				    "event %s cannot be counted on this machine: %s%s",
				    s->events[i].name, strerror(why[i]),
				    why[i] == ENOENT
					    ? " (there is no PMU, as in many virtual machines)"
					    : "");
		}
	return 0;
}

static int set_scope(struct sampler *s, const char *cgroup, struct error *e)
{
	_cleanup_close_ int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned int first = 0;

	if (fd < 0)
		return fail(e, errno, "cannot open the control group '%s': %m", cgroup);
	if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.collect_scope), &first, &fd, BPF_ANY) < 0)
		return fail(e, errno, "'%s' is no control group (of version 2): %m", cgroup);
	return 0;
}

static int load(struct sampler *s, const struct collect_settings *set, struct error *e)
{
	size_t entries = (size_t)2 * s->n_cpus * COLLECT_BUCKETS;
	struct refusal why;
	int r = 0;

	if (set->verbose)
		load_log_verbose();
	load_log_listen(NULL);
	s->skel = collect_bpf__open();
	if (!s->skel ||
	    bpf_map__set_max_entries(s->skel->maps.collect_table, (unsigned int)entries) < 0) {
		r = fail(e, errno, "cannot open the BPF program that counts: %s", strerror(errno));
	} else {
		s->skel->rodata->collect_scoped = set->cgroup != NULL;
		r = namespace_find(&s->skel->rodata->own_namespace, e);
		if (r == 0) {
			r = programs_load(s->skel->skeleton, &why);
			r = r < 0 ? refusal_fail(e, r, "the BPF programs", &why) : 0;
		}
	}
	if (r < 0)
		return r;
	s->table_bytes = entries * sizeof(*s->table);
	s->table = mmap(NULL, s->table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(s->skel->maps.collect_table), 0);
	if (s->table == MAP_FAILED) {
		s->table = NULL;
		return fail(e, errno, "cannot map the tables of counts: %m");
	}
	return set->cgroup ? set_scope(s, set->cgroup, e) : 0;
}

static int choose_events(struct sampler *s, const struct collect_settings *set, struct error *e)
{
	s->events[s->n_events++] = collect_event_default(set->rate_hz);
	for (size_t i = 0; i < set->n_events; i++) {
		struct collect_event v;
		int r = collect_event_parse(set->events[i], &v, e);

		if (r < 0)
			return r;
		if (s->n_events == COLLECT_MAX_EVENTS)
			return fail(e, E2BIG, "at most %d events, the clock among them",
				    COLLECT_MAX_EVENTS);
		s->events[s->n_events++] = v;
	}
	return 0;
}

int sampler_open(const struct collect_settings *set, void (*say)(const char *text, void *arg),
		 void *arg, struct sampler **ret, struct error *e)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	int cpus = libbpf_num_possible_cpus(), r;

	s->say = say;
	s->arg = arg;
	s->rate_hz = set->rate_hz;
	rng_seed(&s->rng, rng_fresh_seed());
	s->n_cpus = cpus > 0 ? (unsigned int)cpus : 1;
	r = s->n_cpus > COLLECT_MAX_CPUS
		    ? fail(e, E2BIG, "this machine has %u CPUs; at most %d are supported",
			   s->n_cpus, COLLECT_MAX_CPUS)
		    : 0;
	if (r == 0)
		r = choose_events(s, set, e);
	if (r == 0)
		r = load(s, set, e);
	if (r == 0)
		r = attach_all(s, e);
	if (r < 0)
		sampler_close(s);
	else
		*ret = s;
	return r;
}

void sampler_stop(struct sampler *s)
{
	for (size_t i = 0; i < s->n_attached; i++)
		detach(&s->attached[i]);
	s->n_attached = 0;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	sampler_stop(s);
	if (s->table)
		(void)munmap(s->table, s->table_bytes);
	collect_bpf__destroy(s->skel);
	free(s->attached);
	free(s->ticks_before);
	free(s);
}

void sampler_redraw(struct sampler *s)
{
	for (size_t i = 0; i < s->n_attached; i++) {
		struct attached *a = &s->attached[i];
		uint64_t period = draw(s, s->events[a->event].every);

		if (a->fd >= 0 && !by_rate(s, a->event))
			(void)ioctl(a->fd, PERF_EVENT_IOC_PERIOD, &period);
	}
}

uint64_t sampler_redraw_ns(const struct sampler *s)
{
	uint64_t ns = (uint64_t)(TICKS_OF_ONE_DISTANCE * (double)NSEC_PER_SEC / s->rate_hz);

	return ns < MOST_DISTANCE_NS ? ns : MOST_DISTANCE_NS;
}

/* Until no program that may have begun in the other tables runs on @cpu. */
static void wait_for(const struct collect_cpu *cpu)
{
	uint64_t end = clock_monotonic_ns() + WAIT_NS;

	while (__atomic_load_n(&cpu->busy, __ATOMIC_SEQ_CST) && clock_monotonic_ns() < end)
		(void)sched_yield();
}

void sampler_harvest(struct sampler *s, void (*add)(void *arg, const struct collect_entry *e),
		     void *arg)
{
	unsigned int half = s->skel->bss->collect_half;

	__atomic_store_n(&s->skel->bss->collect_half, !half, __ATOMIC_SEQ_CST);
	for (unsigned int cpu = 0; cpu < s->n_cpus; cpu++) {
		struct collect_bucket *b = s->table + (size_t)(2 * cpu + half) * COLLECT_BUCKETS;

		wait_for(&s->skel->bss->collect_cpus[cpu]);
		for (size_t i = 0; i < (size_t)COLLECT_BUCKETS * COLLECT_WAYS; i++) {
			struct collect_entry *e = &b[i / COLLECT_WAYS].ways[i % COLLECT_WAYS];

			if (e->count)
				add(arg, e);
			e->count = 0;
		}
	}
}

/* Without a PMU any more, as after a move to another host, there still is a clock. */
static void fall_back(struct sampler *s)
{
	struct collect_event clock;

	if (!by_rate(s, 0) || collect_event_parse("cpu-clock", &clock, NULL) < 0)
		return;
	clock.every = (uint64_t)((double)NSEC_PER_SEC / s->rate_hz);
	s->events[0] = clock;
	if (s->say)
		s->say("hardware cycles cannot be counted any more: the clock is sampled instead",
		       s->arg);
}

static void reopen(struct sampler *s, unsigned int cpu)
{
	for (size_t i = 0; i < s->n_attached; i++) {
		struct attached *a = &s->attached[i];
		int r;

		if (a->cpu != cpu)
			continue;
		detach(a);
		r = attach(s, a);
		if (r < 0 && r != -ENODEV && a->event == 0) {
			fall_back(s);
			(void)attach(s, a);
		}
	}
}

void sampler_look_after(struct sampler *s)
{
	for (unsigned int cpu = 0; cpu < s->n_cpus; cpu++) {
		uint64_t ticks =
			__atomic_load_n(&s->skel->bss->collect_cpus[cpu].ticks, __ATOMIC_RELAXED);

		if (ticks == s->ticks_before[cpu])
			reopen(s, cpu);
		s->ticks_before[cpu] = ticks;
	}
}

struct collect_totals sampler_totals(const struct sampler *s)
{
	struct collect_totals t = {0};

	for (unsigned int i = 0; i < s->n_cpus; i++) {
		const struct collect_cpu *c = &s->skel->bss->collect_cpus[i];

		t.ticks += c->ticks;
		t.hits += c->hits;
		t.evicted += c->evicted;
		t.lost += c->lost;
		t.unknown += c->unknown;
		t.outside += c->outside;
	}
	return t;
}
