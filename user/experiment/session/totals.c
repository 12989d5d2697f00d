// SPDX-License-Identifier: BSD-2-Clause
/* The books: reading the counters of all CPUs; CPU time that a hypervisor gave to others while this
 * machine had something to run; and what our programs in the kernel take of the CPUs. The kernel
 * takes the time of each call only while somebody asks for it, and each call is a little longer
 * then: so it is asked between experiments, once a second at most, and stands for the whole run. */
#include "experiment/session/internal.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cozbpf.skel.h"
#include "kernel/map_call.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART_NS NSEC_PER_SEC

static const char *const counter_texts[] = {
#define COUNTER(name, text) text,
#include "shared/counters.def"
#undef COUNTER
};

int session_totals(struct session *s, struct abi_totals *ret)
{
	unsigned int zero = 0;
	const size_t words = sizeof(*ret) / sizeof(unsigned long long);
	unsigned long long *sum = (unsigned long long *)ret;
	_map_call_ bool raised = map_call_begin();
	int r;

	_Static_assert(sizeof(struct abi_totals) % sizeof(unsigned long long) == 0,
		       "summed word by word");
	r = bpf_map__lookup_elem(s->skel->maps.totals, &zero, sizeof(zero), s->percpu,
				 sizeof(*s->percpu) * s->nr_cpus, 0);
	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		for (size_t i = 0; i < words; i++)
			sum[i] += ((unsigned long long *)&s->percpu[cpu])[i];
	return 0;
}

/* Wake-ups by interrupts are no fault, nor is work that nothing in scope called; and call chains
 * cut short are told as a share of the samples, unless they are many. */
static bool ordinary(const struct abi_totals *t, size_t i)
{
	if (i == COUNTER_frame_unreadable || i == COUNTER_frame_lost || i == COUNTER_stack_too_deep)
		return t->counters[i] * 10 <= t->samples + t->samples_outside;
	return i == COUNTER_stack_ended || i == COUNTER_irq_wakes || i == COUNTER_hold_preempted ||
	       i == COUNTER_unseen_switch;
}

/* What the kernel has counted of all programs of @skel. Programs are not called again on a CPU on
 * which they are under way: misses. */
static struct bpf_prog_info programs_info(const struct cozbpf_bpf *skel)
{
	struct bpf_prog_info sum = {0};
	struct bpf_program *prog;

	bpf_object__for_each_program (prog, skel->obj) {
		struct bpf_prog_info info = {0};
		unsigned int size = sizeof(info);
		int fd = bpf_program__fd(prog);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
			sum.run_time_ns += info.run_time_ns;
			sum.recursion_misses += info.recursion_misses;
		}
	}
	return sum;
}

static void put_counter(FILE *f, const struct abi_totals *t, size_t i)
{
	(void)fprintf(f, "%llu x %s", t->counters[i], counter_texts[i]);
	/* Before Linux 6.2 a CPU that is at one entry gives no other in an interrupt. */
	if (i == COUNTER_no_thread_state && t->samples)
		(void)fprintf(f, " (as many as %.2g %% of the samples)",
			      100 * (double)t->counters[i] / (double)t->samples);
	(void)fputc('\n', f);
}

char *session_counters(struct session *s)
{
	unsigned long long missed;
	struct abi_totals t;
	char *text = NULL;
	size_t size = 0;
	FILE *f = xopen_memstream(&text, &size);

	if (session_totals(s, &t) == 0)
		for (size_t i = 0; i < COUNTER_MAX; i++)
			if (t.counters[i] && !ordinary(&t, i))
				put_counter(f, &t, i);
	missed = programs_info(s->skel).recursion_misses;
	if (missed)
		(void)fprintf(f,
			      "%llu x the kernel did not report an event: another thread had been "
			      "preempted in the same report\n",
			      missed);
	unwind_log_errors(s, f);
	if (s->n_without_space)
		(void)fprintf(f,
			      "%zu x no room for what a process has mapped (%d different ones at "
			      "most): its samples were not counted\n",
			      s->n_without_space, ABI_MAX_SPACES);
	if (s->points.page && s->points.page->no_slot)
		(void)fprintf(f, "%llu x a payment signal reached a thread without a slot\n",
			      s->points.page->no_slot);
	if (s->points.page && s->points.page->lost_counters)
		(void)fprintf(f, "%u x a coz.h counter found no room (%d at most)\n",
			      s->points.page->lost_counters, SHIM_MAX_COUNTERS);
	xclose_memstream(f);
	return text;
}

/* Of all CPUs since boot; 0 where nothing is known. It is the eighth number of the first line of
 * /proc/stat, in ticks of USER_HZ. */
static uint64_t read_stolen(int fd)
{
	char text[512];
	uint64_t ticks;
	long hz = sysconf(_SC_CLK_TCK);
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0 || hz <= 0)
		return 0;
	text[n] = 0;
	if (sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
		return 0;
	return ticks * (NSEC_PER_SEC / (uint64_t)hz);
}

void stolen_open(struct session *s)
{
	s->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	/* Where a machine has lost nothing since boot it is not a guest, or has its CPUs for
	 * itself: the file takes long to write on a large one. */
	if (s->stat_fd >= 0 && read_stolen(s->stat_fd) == 0)
		stolen_close(s);
}

uint64_t stolen_ns(const struct session *s)
{
	return s->stat_fd >= 0 ? read_stolen(s->stat_fd) : 0;
}

void stolen_close(struct session *s)
{
	if (s->stat_fd >= 0)
		(void)close(s->stat_fd);
	s->stat_fd = -1;
}

/* Tracepoints have programs of their own. */
static uint64_t run_time(const struct session *s)
{
	uint64_t sum = programs_info(s->skel).run_time_ns;

	for (size_t i = 0; i < s->points.n; i++)
		if (s->points.all[i].event)
			sum += programs_info(s->points.all[i].event).run_time_ns;
	return sum;
}

void own_cost_begin(struct session *s)
{
	struct own_cost *c = &s->own_cost;
	uint64_t now = clock_monotonic_ns();

	if (!c->wanted || c->counting || (c->last_ns && now < c->last_ns + APART_NS))
		return;
	c->fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	c->last_ns = now;
	if (c->fd < 0) {
		c->wanted = false; /* nor the next time */
		return;
	}
	c->counting = true;
	c->run_ns_before = run_time(s);
	c->begun_ns = clock_monotonic_ns();
}

void own_cost_end(struct session *s)
{
	struct own_cost *c = &s->own_cost;

	if (!c->counting)
		return;
	c->over_ns += clock_monotonic_ns() - c->begun_ns;
	c->run_ns += run_time(s) - c->run_ns_before;
	c->counting = false;
	(void)close(c->fd);
}

void session_measure_own(struct session *s)
{
	s->own_cost.wanted = true;
	own_cost_begin(s);
}

double session_own_share(struct session *s)
{
	const struct own_cost *c = &s->own_cost;

	own_cost_end(s);
	return c->over_ns ? (double)c->run_ns / (double)c->over_ns : NAN;
}
