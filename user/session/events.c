// SPDX-License-Identifier: BSD-2-Clause
/* The sampling events. Each CPU has several clocks with random periods of their own: ticks that come at equal distances fall in step
 * with the pauses they cause (thread 2's tick lands in the pause that thread 1's tick caused, every time) and with the program's own
 * rounds. For the same reason no two clocks may start together: after every experiment one clock of each CPU is started afresh, with a
 * new period, while the others run on. Starting all of them at once lost 7 % of the hits at 100 % speedup with two threads: for the
 * first tens of milliseconds the ticks of two CPUs came in pairs, and the second of a pair found its thread paused. */
#include "session/internal.h"

#include "base/clock.h"
#include "base/error.h"
#include "cozbpf.skel.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Three clocks of about three times the mean distance each, 15 % apart and with 12 % of random spread. */
static uint64_t draw_period(struct session *s, size_t i)
{
	static const double ratio[EVENTS_PER_CPU] = {0.87, 1.0, 1.17};
	double mean = (double)NSEC_PER_SEC / s->options.rate_hz * EVENTS_PER_CPU;

	return (uint64_t)(mean * ratio[i % EVENTS_PER_CPU] * (0.94 + 0.12 * rng_unit(&s->rng)));
}

static int open_event(unsigned int cpu, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A random distance to the next clock's start: a mean period in all. */
static void spread_start(struct session *s)
{
	uint64_t most = NSEC_PER_SEC / s->options.rate_hz * EVENTS_PER_CPU / s->n_events;
	uint64_t until = clock_monotonic_ns() + 2 * rng_below(&s->rng, most + 1);

	while (clock_monotonic_ns() < until)
		;
}

int events_open(struct session *s, struct error *e)
{
	size_t n = (size_t)s->nr_cpus * EVENTS_PER_CPU;

	s->events = calloc(n, sizeof(*s->events));
	if (!s->events)
		return fail(e, ENOMEM, "out of memory");
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++) {
		for (size_t i = 0; i < EVENTS_PER_CPU; i++) {
			uint64_t period = draw_period(s, i);
			int fd = open_event(cpu, period);

			if (fd < 0 && errno == ENODEV) /* the CPU is offline */
				continue;
			if (fd < 0)
				return fail(e, errno, "cannot open a sampling clock on CPU %u: %s; run as root or give CAP_PERFMON",
					    cpu, strerror(errno));
			struct sampler *v = &s->events[s->n_events++];

			LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cpu * ABI_MAX_EVENTS + i);
			*v = (struct sampler){.fd = fd, .period = &s->skel->bss->periods[opts.bpf_cookie], .kind = i, .cpu = cpu};
			*v->period = period;
			v->link = bpf_program__attach_perf_event_opts(s->skel->progs.sample_tick, fd, &opts);
			if (!v->link)
				return fail(e, errno, "cannot attach to the sampling clock: %s", strerror(errno));
		}
	}
	for (size_t i = 0; i < s->n_events; i++) {
		(void)ioctl(s->events[i].fd, PERF_EVENT_IOC_ENABLE, 0);
		spread_start(s);
	}
	return 0;
}

void events_close(struct session *s)
{
	for (size_t i = 0; i < s->n_events; i++)
		/* Destroying the link closes the event's descriptor too, if there is a link. */
		if (!s->events[i].link)
			(void)close(s->events[i].fd);
		else
			(void)bpf_link__destroy(s->events[i].link);
	free(s->events);
	s->events = NULL;
	s->n_events = 0;
}

void events_redraw(struct session *s)
{
	s->redraws++;
	for (size_t i = 0; i < s->n_events; i++) {
		struct sampler *v = &s->events[i];
		uint64_t period;

		/* A different clock on neighbouring CPUs, too. */
		if ((v->kind + v->cpu + s->redraws) % EVENTS_PER_CPU)
			continue;
		period = draw_period(s, v->kind);
		if (ioctl(v->fd, PERF_EVENT_IOC_PERIOD, &period) == 0)
			*v->period = period;
	}
}
