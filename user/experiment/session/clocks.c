// SPDX-License-Identifier: BSD-2-Clause
/* Rest for the sampling clocks of CPUs where no thread in scope has run for a while. Each tick
 * takes its CPU some microseconds, more in a virtual machine, and out of an idle CPU's sleep: on
 * whatever else the machine does, clients of a server above all, that would be a tax.
 *
 * One clock goes on slowly. It finds threads that came onto the CPU without the kernel saying so
 * (see missed_switch_in in bpf/sample.h). */
#include "experiment/session/internal.h"

#include "base/clock.h"
#include "base/error.h"
#include "cozbpf.skel.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#define UNUSED_NS NSEC_PER_SEC
#define SLOW_PERIOD_NS (20 * NSEC_PER_MSEC)

static bool keeper(const struct sampler *v)
{
	return v->kind == 0;
}

bool clocks_idle(const struct session *s, unsigned int cpu)
{
	return s->idle[cpu];
}

static void stop(struct session *s, unsigned int cpu)
{
	uint64_t slow = SLOW_PERIOD_NS;

	s->idle[cpu] = true;
	s->idle_hz[cpu] = s->rate_hz;
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].cpu == cpu)
			(void)(keeper(&s->events[i])
				       ? ioctl(s->events[i].fd, PERF_EVENT_IOC_PERIOD, &slow)
				       : ioctl(s->events[i].fd, PERF_EVENT_IOC_DISABLE, 0));
}

/* The kernel remembers how far each clock was, so they do not start together. */
static void start(struct session *s, unsigned int cpu)
{
	s->idle[cpu] = false;
	for (size_t i = 0; i < s->n_events; i++) {
		struct sampler *v = &s->events[i];

		if (v->cpu != cpu)
			continue;
		if (keeper(v) || s->rate_hz != s->idle_hz[cpu])
			events_draw(s, v);
		if (!keeper(v))
			(void)ioctl(v->fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	__atomic_store_n(&s->skel->bss->clock_states[cpu], ABI_IDLE_WOKEN, __ATOMIC_SEQ_CST);
}

int clocks_rest(void *session, bool rests)
{
	struct session *s = session;
	struct abi_control *c = &s->skel->bss->control;

	if (rests == s->resting)
		return 0;
	s->resting = rests;
	own_cost_end(s); /* which would count all the while */
	__atomic_store_n(&c->resting, rests, __ATOMIC_SEQ_CST);
	if (!rests)
		__atomic_store_n(&c->rested_ns, clock_monotonic_ns(), __ATOMIC_SEQ_CST);
	for (size_t i = 0; rests && i < s->n_events; i++)
		(void)ioctl(s->events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	/* CPUs of others stop theirs again. */
	for (unsigned int cpu = 0; !rests && cpu < s->nr_cpus; cpu++)
		s->idle[cpu] = false;
	if (!rests)
		events_set_going(s);
	return 0;
}

static bool in_use(const struct abi_cpu *c, uint64_t now)
{
	uint64_t left = __atomic_load_n(&c->scope_left, __ATOMIC_RELAXED);

	return __atomic_load_n(&c->tid, __ATOMIC_SEQ_CST) || now < left + UNUSED_NS;
}

void clocks_maintain(struct session *s)
{
	uint64_t now = clock_monotonic_ns();

	if (!s->clocks || s->resting)
		return;
	session_serve_clocks(s);
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++) {
		struct abi_cpu *c = &s->skel->bss->cpus[cpu];

		if (s->idle[cpu] || now < s->clocks_ns + UNUSED_NS || in_use(c, now))
			continue;
		stop(s, cpu);
		__atomic_store_n(&s->skel->bss->clock_states[cpu], ABI_IDLE_STOPPED,
				 __ATOMIC_SEQ_CST);
		/* It may have come before BPF could know that it must tell. */
		if (__atomic_load_n(&c->tid, __ATOMIC_SEQ_CST))
			start(s, cpu);
	}
}

static int on_wake(void *arg, void *data, size_t size)
{
	struct session *s = arg;
	unsigned int cpu;

	if (size != sizeof(cpu))
		return 0;
	memcpy(&cpu, data, sizeof(cpu));
	if (cpu == ABI_IDLE_LOOPBACK)
		(void)loopback_follow(s, NULL);
	else if (cpu < s->nr_cpus && s->idle[cpu] && !s->resting)
		start(s, cpu);
	return 0;
}

int session_idle_clocks(struct session *s, struct error *e)
{
	/* Where switches are not followed nobody knows who runs where. */
	if (s->sync || s->clocks)
		return 0;
	s->clocks = ring_buffer__new(bpf_map__fd(s->skel->maps.woken), on_wake, s, NULL);
	if (!s->clocks)
		return fail(e, errno, "cannot map the ring of idle CPUs: %s", strerror(errno));
	s->clocks_ns = clock_monotonic_ns();
	return 0;
}

int session_clocks_fd(const struct session *s)
{
	return s->clocks ? ring_buffer__epoll_fd(s->clocks) : -1;
}

void session_serve_clocks(struct session *s)
{
	if (s->clocks)
		(void)ring_buffer__consume(s->clocks);
}

void clocks_close(struct session *s)
{
	ring_buffer__free(s->clocks);
	s->clocks = NULL;
}
