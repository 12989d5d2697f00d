// SPDX-License-Identifier: BSD-2-Clause
/* The books: reading the counters of all CPUs. */
#include "session/internal.h"

#include "base/clock.h"
#include "cozbpf.skel.h"
#include "kernel/map_call.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const counter_texts[] = {
#define COUNTER(name, text) text,
#include "shared/counters.def"
#undef COUNTER
};

int totals_read(struct session *s, struct abi_totals *ret)
{
	unsigned int zero = 0;
	const size_t words = sizeof(*ret) / sizeof(unsigned long long);
	unsigned long long *sum = (unsigned long long *)ret;
	_map_call_ bool raised = map_call_begin();
	int r;

	_Static_assert(sizeof(struct abi_totals) % sizeof(unsigned long long) == 0, "summed word by word");
	r = bpf_map__lookup_elem(s->skel->maps.totals, &zero, sizeof(zero), s->percpu, sizeof(*s->percpu) * s->nr_cpus, 0);
	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		for (size_t i = 0; i < words; i++)
			sum[i] += ((unsigned long long *)&s->percpu[cpu])[i];
	return 0;
}

uint64_t session_samples_outside(struct session *s)
{
	struct abi_totals t;

	return totals_read(s, &t) < 0 ? 0 : t.samples_outside;
}

/* Wake-ups by interrupts are no fault, nor is work that nothing in scope called; and of call chains cut short a few do not matter. */
static bool ordinary(const struct abi_totals *t, size_t i)
{
	if (i == COUNTER_frame_unreadable || i == COUNTER_frame_lost || i == COUNTER_stack_too_deep)
		return t->counters[i] * 100 <= t->samples + t->samples_outside;
	return i == COUNTER_stack_ended || i == COUNTER_irq_wakes || i == COUNTER_hold_preempted || i == COUNTER_unseen_switch;
}

/* Programs are not called again on a CPU on which they are under way. */
static unsigned long long missed_events(const struct session *s)
{
	unsigned long long n = 0;
	struct bpf_program *p;

	bpf_object__for_each_program (p, s->skel->obj) {
		struct bpf_prog_info info = {0};
		unsigned int size = sizeof(info);

		if (bpf_program__fd(p) >= 0 && bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size) == 0)
			n += info.recursion_misses;
	}
	return n;
}

char *session_counters(struct session *s)
{
	unsigned long long missed;
	struct abi_totals t;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	if (totals_read(s, &t) == 0)
		for (size_t i = 0; i < COUNTER_MAX; i++)
			if (t.counters[i] && !ordinary(&t, i))
				(void)fprintf(f, "%llu x %s\n", t.counters[i], counter_texts[i]);
	missed = missed_events(s);
	if (missed)
		(void)fprintf(f, "%llu x the kernel did not report an event: another thread had been preempted in the same report\n", missed);
	unwind_log_errors(s, f);
	if (s->n_without_space)
		(void)fprintf(f, "%zu x no room for what a process has mapped (%d different ones at most): its samples were not counted\n",
			      s->n_without_space, ABI_MAX_SPACES);
	if (s->points.page && s->points.page->no_slot)
		(void)fprintf(f, "%llu x a payment signal reached a thread without a slot\n", s->points.page->no_slot);
	if (s->points.page && s->points.page->lost_counters)
		(void)fprintf(f, "%u x a coz.h counter found no room (%d at most)\n", s->points.page->lost_counters, SHIM_MAX_COUNTERS);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
