// SPDX-License-Identifier: BSD-2-Clause
/* What a thread sends over the loopback device is delivered by a softirq that looks like any other:
 * two events tell where it begins and ends, and two where a timer interrupts it (bpf/edges.h). They
 * come with every packet of everybody; on a server that sends an answer every 15 us they took 2 %
 * of its time, and as much of its clients'. Only where threads in scope send to each other is
 * anything learnt from them. So they are detached when no thread in scope was woken by packets of
 * another one during a second and a whole experiment, or window of slopes, if there were enough
 * packets for it to matter.
 *
 * While they are detached, such a wake-up looks like one by a timer that came while another thread
 * in scope ran. Only threads in certain system calls are known to wait for a timer. When the number
 * of such wake-ups reaches a threshold, the events are attached again, within a fraction of a
 * millisecond. No more packets than that go unnoticed. If it was for nothing, the threshold
 * doubles: otherwise a server whose threads wake up by timers would have the events attached all
 * the time. */
#include "experiment/session/internal.h"

#include "base/clock.h"
#include "cozbpf.skel.h"

#define UNUSED_NS NSEC_PER_SEC
#define DEAR_PER_SECOND 10000 /* 0.2 % of a CPU */
#define REARM_LEAST 8U
#define REARM_MOST 64U

static uint64_t raised(const struct session *s)
{
	uint64_t n = 0;

	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		n += __atomic_load_n(&s->skel->bss->loopback[cpu].raised, __ATOMIC_RELAXED);
	return n;
}

/* From now on they must prove their use anew. */
static void begin_watch(struct session *s)
{
	s->loopback_ns = clock_monotonic_ns();
	s->loopback_raised = raised(s);
}

/* Ends before begins: a beginning whose end was not seen would have others' packets taken for the
 * sender's. */
int loopback_follow(struct session *s, struct error *e)
{
	struct bpf_program *const order[] = {
		s->skel->progs.edge_softirq_exit,
		s->skel->progs.edge_timer_exit,
		s->skel->progs.edge_timer,
		s->skel->progs.edge_raise,
	};
	int r = 0;

	_Static_assert(sizeof(order) / sizeof(*order) == sizeof(s->loopback) / sizeof(*s->loopback),
		       "a link for each");
	for (size_t i = 0; r == 0 && i < sizeof(order) / sizeof(*order); i++)
		r = s->loopback[i] ? 0 : session_attach_program(order[i], &s->loopback[i], e);
	begin_watch(s);
	__atomic_store_n(&s->skel->bss->loopback_idle, ABI_IDLE_RUNNING, __ATOMIC_SEQ_CST);
	return r;
}

static bool followed(const struct session *s)
{
	return s->loopback[sizeof(s->loopback) / sizeof(*s->loopback) - 1];
}

void loopback_close(struct session *s)
{
	for (size_t i = sizeof(s->loopback) / sizeof(*s->loopback); i-- > 0;) {
		(void)bpf_link__destroy(s->loopback[i]);
		s->loopback[i] = NULL;
	}
}

static bool take_used(struct session *s)
{
	bool used = false;

	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		if (__atomic_exchange_n(&s->skel->bss->loopback[cpu].used, 0, __ATOMIC_SEQ_CST))
			used = true;
	return used;
}

/* @before: 0 if they were of use since they followed, or have not rested yet. */
static unsigned int next_threshold(unsigned int before)
{
	unsigned int more = before ? 2 * before : REARM_LEAST;

	return more < REARM_MOST ? more : REARM_MOST;
}

void loopback_maintain(struct session *s)
{
	uint64_t ns = clock_monotonic_ns() - s->loopback_ns;

	/* Nobody would call. */
	if (!s->clocks)
		return;
	if (!followed(s)) {
		/* The call was lost, or could not be followed. */
		if (__atomic_load_n(&s->skel->bss->loopback_idle, __ATOMIC_SEQ_CST) !=
		    ABI_IDLE_STOPPED)
			(void)loopback_follow(s, NULL);
		return;
	}
	if (take_used(s)) {
		s->loopback_rearm_at = 0;
		begin_watch(s);
		return;
	}
	if (ns < UNUSED_NS || s->begin_ns < s->loopback_ns)
		return;
	if ((double)(raised(s) - s->loopback_raised) * NSEC_PER_SEC <
	    DEAR_PER_SECOND * (double)ns) {
		begin_watch(s);
		return;
	}
	loopback_close(s);
	s->loopback_rearm_at = next_threshold(s->loopback_rearm_at);
	s->skel->bss->loopback_suspected = 0;
	s->skel->bss->loopback_rearm_at = s->loopback_rearm_at;
	__atomic_store_n(&s->skel->bss->loopback_idle, ABI_IDLE_STOPPED, __ATOMIC_SEQ_CST);
}
