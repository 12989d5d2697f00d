// SPDX-License-Identifier: BSD-2-Clause
/* What a thread sends over the loopback device is delivered by a softirq that looks like any other: two events tell where it begins and ends
 * (bpf/edges.h). They come with every packet of everybody; on a server that sends an answer every 15 us they took 2 % of its time. Only where
 * threads in scope send to each other is anything learnt from them. So they rest where no thread in scope was woken, during a whole
 * experiment, out of an interrupt that came while another one ran; the first such wake-up calls them back, within a fraction of a
 * millisecond. */
#include "session/internal.h"

#include "base/clock.h"
#include "base/error.h"
#include "cozbpf.skel.h"

#include <errno.h>
#include <string.h>

#define UNUSED_NS NSEC_PER_SEC

static int attach(struct session *s, size_t i, struct bpf_program *p, struct error *e)
{
	s->deliveries[i] = bpf_program__attach(p);
	return s->deliveries[i] ? 0 : fail(e, errno, "cannot attach %s: %s; `cozbpf check` says what is missing", bpf_program__name(p),
					   strerror(errno));
}

/* The end before the begin: a beginning whose end was not seen would have others' packets taken for the sender's. */
int deliveries_follow(struct session *s, struct error *e)
{
	int r = s->deliveries[0] ? 0 : attach(s, 0, s->skel->progs.edge_softirq_exit, e);

	if (r == 0 && !s->deliveries[1])
		r = attach(s, 1, s->skel->progs.edge_raise, e);
	s->deliveries_ns = clock_monotonic_ns();
	__atomic_store_n(&s->skel->bss->deliveries_rest, ABI_REST_AWAKE, __ATOMIC_SEQ_CST);
	return r;
}

void deliveries_close(struct session *s)
{
	(void)bpf_link__destroy(s->deliveries[1]);
	(void)bpf_link__destroy(s->deliveries[0]);
	s->deliveries[0] = s->deliveries[1] = NULL;
}

static bool take_used(struct session *s)
{
	bool used = false;

	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		if (__atomic_exchange_n(&s->skel->bss->deliveries[cpu].used, 0, __ATOMIC_SEQ_CST))
			used = true;
	return used;
}

void deliveries_tidy(struct session *s)
{
	uint64_t now = clock_monotonic_ns();
	bool used;

	/* Nobody would call. */
	if (!s->clocks)
		return;
	used = take_used(s);
	if (!s->deliveries[1]) {
		/* It may have come before BPF could know that it must tell. */
		if (used)
			(void)deliveries_follow(s, NULL);
		return;
	}
	if (used || now < s->deliveries_ns + UNUSED_NS || s->begin_ns < s->deliveries_ns)
		return;
	deliveries_close(s);
	__atomic_store_n(&s->skel->bss->deliveries_rest, ABI_REST_RESTS, __ATOMIC_SEQ_CST);
}
