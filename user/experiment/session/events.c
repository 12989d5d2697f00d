// SPDX-License-Identifier: BSD-2-Clause
/* The sampling events: on each CPU two clocks of about twice the distance with random periods.
 *
 * A tick should say little about when the next one comes. After a thread's own selected sample the
 * others are paused and cannot pause it in turn: it runs for sure, just then. Ticks at regular
 * distances are rarer just after a tick than elsewhere, so they find the thread paused too often
 * and running too seldom; with one clock, every tick of the second thread can fall into the pause
 * that the first thread's tick caused. That moves no total, since a sample stands for what was
 * executed since the last one (bpf/sample.h); but which line it is booked to is chance, and should
 * not fall in step with the program.
 *
 * The more clocks there are, the more uneven are the distances, up to those of a Poisson process,
 * and the pauses with them. A thread that waits by looking again and again pays all that came late
 * after the other's work has ended, and late is whoever had caught up and had nothing to pay in the
 * longest distance of that work. tests/unit/bpf_model_test.c has such a program, and what it reads
 * for 60 and 40 % (by periods from 0.75 to 1.25 of the mean) is 54.7 and 34.9 with six clocks, 56.0
 * and 36.1 with three, 57.3 and 37.2 with two, 58.8 and 38.6 with one; a lock just past its knee
 * reads 44.5, 41.9, 41.4 and 42.0 for 40. But with one clock, rounds shorter than the distance are
 * 3 to 9 points off; with two, no more than with many.
 *
 * For the same reason clocks must not start together, and a new period every now and then keeps
 * them from falling in step with the program's own rounds: ten times a second, and after every
 * experiment, one clock of each CPU starts afresh. Periods must differ by much: from a thread's own
 * selected sample to the next tick of the same clock it gets on by one period for sure, and where
 * that is a certain part of its round it is found in the line too often or too seldom. Two busy
 * threads with half of a round of 1.7 ms in the line read 46.6 for 50 in the model (46.5 in the
 * kernel) with periods from 0.75 to 1.25 of the mean, 55.6 with rounds of 1 ms; with these, 50.1
 * and 48.1.
 *
 * While slopes are measured nobody is paused, and clocks of all CPUs go in step: with the same
 * periods, begun at the same time. A tick takes its thread some 10 to 50 us. Of two threads that a
 * third one waits for, the one with more ticks would end later if their lengths differ by less, and
 * what a slope finds is who ended later by the very ticks that it counts: threads of 2 ms read 60
 * to 68 for 55 that way, and 55 to 56 in step (truth case shortlived-2ms).
 *
 * CPUs that come online during a run get sampling clocks; those that go lose theirs, which the
 * kernel does not set going again when the CPU comes back. What is allocated is for all possible
 * CPUs, and all our other programs meet whatever CPU a thread runs on. */
#include "experiment/session/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "cozbpf.skel.h"
#include "kernel/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EVENTS_PER_CPU 2
/* Periods are as likely anywhere from 0.4 to 1.6 times of something; 1 / period is then ln(1.6 /
 * 0.4) / 1.2 of its reciprocal on average. */
#define LEAST_PERIOD 0.4
#define PERIOD_SPREAD 1.2
#define MEAN_FREQUENCY 1.155
#define SPREAD_START_NS (5 * NSEC_PER_MSEC)
#define REDRAW_EVERY_NS (100 * NSEC_PER_MSEC)
#define LOOK_EVERY_NS NSEC_PER_SEC

static uint64_t draw(struct session *s)
{
	double middle = (double)NSEC_PER_SEC / s->rate_hz * EVENTS_PER_CPU * MEAN_FREQUENCY;

	return (uint64_t)(middle * (LEAST_PERIOD + PERIOD_SPREAD * rng_unit(&s->rng)));
}

/* Until its clocks get other periods, a CPU ticks more or less often than all do on average. */
static void note_spacing(struct session *s, unsigned int cpu)
{
	double frequency = 0;

	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].cpu == cpu)
			frequency += 1 / (double)s->events[i].period;
	s->skel->bss->spacings[cpu] = (uint64_t)(1 / frequency);
}

/* The clock begins its next period now. */
static void set_period(struct session *s, struct sampler *v, uint64_t period)
{
	v->period = period;
	(void)ioctl(v->fd, PERF_EVENT_IOC_PERIOD, &v->period);
	note_spacing(s, v->cpu);
}

void events_draw(struct session *s, struct sampler *v)
{
	set_period(s, v, draw(s));
}

/* A random distance to the next clock's start. */
static void spread_start(struct session *s)
{
	uint64_t until =
		clock_monotonic_ns() + rng_below(&s->rng, 2 * SPREAD_START_NS / s->n_events + 1);

	while (clock_monotonic_ns() < until)
		;
}

static bool events_have(const struct session *s, unsigned int cpu)
{
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].cpu == cpu)
			return true;
	return false;
}

static int open_stopped(struct session *s, unsigned int cpu, struct error *e)
{
	for (size_t i = 0; i < EVENTS_PER_CPU; i++) {
		uint64_t period = draw(s);
		int fd = programs_open_clock(-1, (int)cpu, period);
		struct sampler *v;

		if (fd == -ENODEV) /* the CPU is offline */
			continue;
		if (fd < 0)
			return fail(e, -fd,
				    "cannot open a sampling clock on CPU %u: %s; run as root or "
				    "give CAP_PERFMON",
				    cpu, strerror(-fd));
		v = &s->events[s->n_events++];
		*v = (struct sampler){.fd = fd, .kind = i, .cpu = cpu, .period = period};
		note_spacing(s, cpu);
		v->link = bpf_program__attach_perf_event(s->skel->progs.sample_tick, fd);
		if (!v->link)
			return fail(e, errno, "cannot attach to the sampling clock: %s",
				    strerror(errno));
	}
	return 0;
}

static void set_going(struct session *s, size_t first)
{
	for (size_t i = first; i < s->n_events; i++) {
		(void)ioctl(s->events[i].fd, PERF_EVENT_IOC_ENABLE, 0);
		spread_start(s);
	}
}

static void close_event(const struct sampler *v)
{
	/* Destroying the link closes the event's descriptor too, if there is a link. */
	if (!v->link)
		(void)close(v->fd);
	else
		(void)bpf_link__destroy(v->link);
}

static void events_close_cpu(struct session *s, unsigned int cpu)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_events; i++) {
		if (s->events[i].cpu == cpu)
			close_event(&s->events[i]);
		else
			s->events[kept++] = s->events[i];
	}
	s->n_events = kept;
}

static int events_open_cpu(struct session *s, unsigned int cpu, struct error *e)
{
	size_t first = s->n_events;
	int err = open_stopped(s, cpu, e);

	if (err < 0)
		events_close_cpu(s, cpu);
	else
		set_going(s, first);
	return err;
}

int events_open(struct session *s, struct error *e)
{
	size_t n = (size_t)s->nr_cpus * EVENTS_PER_CPU;

	s->skel->bss->control.spacing_ns = session_period_ns(s);
	s->events = xcalloc(n, sizeof(*s->events));
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++) {
		int err = open_stopped(s, cpu, e);

		if (err < 0)
			return err;
	}
	set_going(s, 0);
	return 0;
}

void events_close(struct session *s)
{
	for (size_t i = 0; i < s->n_events; i++)
		close_event(&s->events[i]);
	free(s->events);
	s->events = NULL;
	s->n_events = 0;
}

bool events_adaptable(const struct session *s)
{
	return !s->options.rate_hz && !s->options.light && s->rate_hz < SESSION_RATE_HIGH;
}

void events_adapt(struct session *s, const struct rate_seen *x)
{
	/* Percentiles of latencies are blurred by the distance of samples, whoever waits for whom.
	 */
	bool first = !s->looked && !s->options.points.latencies;
	unsigned int rate = rate_next(s->rate_hz, first, x);

	s->looked = s->looked || x->samples >= RATE_ENOUGH_SAMPLES;
	if (!events_adaptable(s) || rate == s->rate_hz)
		return;
	s->rate_hz = rate;
	s->skel->bss->control.spacing_ns = session_period_ns(s);
	for (size_t i = 0; i < s->n_events; i++) {
		if (clocks_idle(s, s->events[i].cpu))
			continue;
		events_draw(s, &s->events[i]);
		spread_start(s);
	}
}

void events_set_going(struct session *s)
{
	for (size_t i = 0; i < s->n_events; i++) {
		events_draw(s, &s->events[i]);
		__atomic_store_n(&s->skel->bss->clock_states[s->events[i].cpu], ABI_IDLE_WOKEN,
				 __ATOMIC_SEQ_CST);
	}
	s->in_step = false;
	set_going(s, 0);
	s->clocks_ns = clock_monotonic_ns();
}

/* The clocks of that kind begin the same period, those of all CPUs that are in use. */
static void align(struct session *s, size_t kind)
{
	uint64_t period = draw(s);

	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].kind == kind && !clocks_idle(s, s->events[i].cpu))
			set_period(s, &s->events[i], period);
}

void events_in_step(struct session *s, bool in_step)
{
	if (s->in_step == in_step)
		return;
	s->in_step = in_step;
	for (size_t kind = 0; in_step && kind < EVENTS_PER_CPU; kind++)
		align(s, kind);
	for (size_t i = 0; !in_step && i < s->n_events; i++)
		if (!clocks_idle(s, s->events[i].cpu))
			events_draw(s, &s->events[i]);
}

void events_redraw(struct session *s, uint64_t now)
{
	s->redraws++;
	s->redraw_ns = now + REDRAW_EVERY_NS;
	if (s->in_step) {
		align(s, s->redraws % EVENTS_PER_CPU);
		return;
	}
	for (size_t i = 0; i < s->n_events; i++) {
		struct sampler *v = &s->events[i];

		if ((v->kind + v->cpu + s->redraws) % EVENTS_PER_CPU == 0 &&
		    !clocks_idle(s, v->cpu))
			events_draw(s, v);
	}
}

void cpus_parse(const char *list, bool *set, size_t n)
{
	memset(set, 0, n * sizeof(*set));
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (end == list)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long i = first; i <= last && i < n; i++)
			set[i] = true;
		if (*end != ',')
			return;
		list = end + 1;
	}
}

void cpus_follow(struct session *s, const char *online)
{
	bool set[ABI_MAX_CPUS];

	cpus_parse(online, set, ABI_MAX_CPUS);
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++) {
		bool has = events_have(s, cpu);

		if (has == set[cpu])
			continue;
		s->idle[cpu] = false;
		/* The first sample there stands for no more than the clocks have seen. */
		__atomic_store_n(&s->skel->bss->clock_states[cpu],
				 set[cpu] ? ABI_IDLE_WOKEN : ABI_IDLE_RUNNING, __ATOMIC_SEQ_CST);
		if (has)
			events_close_cpu(s, cpu);
		else
			(void)events_open_cpu(s, cpu, NULL);
	}
}

/* The same by what the kernel says, once a second. */
static void cpus_look(struct session *s, uint64_t now)
{
	_cleanup_close_ int fd = -1;
	char online[4096];
	ssize_t n;

	if (now < s->cpus_ns)
		return;
	s->cpus_ns = now + LOOK_EVERY_NS;
	fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, online, sizeof(online) - 1);
	if (n <= 0)
		return;
	online[n] = '\0';
	cpus_follow(s, online);
}

uint64_t session_vary_clocks(struct session *s, uint64_t now)
{
	if (s->resting)
		return UINT64_MAX;
	cpus_look(s, now);
	if (now >= s->redraw_ns)
		events_redraw(s, now);
	return s->redraw_ns;
}
