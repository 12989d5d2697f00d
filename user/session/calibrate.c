// SPDX-License-Identifier: BSD-2-Clause
/* A payment stops its thread for longer than the payer can measure: the interrupt that kicks the CPU, the way into the callback and out
 * again lie outside. In a virtual machine that is some microseconds a payment, a twentieth of a pause of 5 % of a period. So it is
 * measured, once a run, on a thread of our own that watches its own clock for gaps. */
#include "session/internal.h"

#include "base/clock.h"
#include "cozbpf.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 101     /* good ones */
#define MAX_ROUNDS 600 /* on a busy machine the watcher is often not running when it is kicked */
#define SETTLE_NS (60 * NSEC_PER_USEC) /* a kick has its effect within this */

struct watcher {
	pthread_t thread;
	int cpu;
	int tid;
	bool ready, stop;
	uint64_t gap; /* the longest since it was last taken */
};

static void *watch(void *arg)
{
	struct watcher *w = arg;
	cpu_set_t set;
	uint64_t last;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	w->tid = gettid();
	__atomic_store_n(&w->ready, true, __ATOMIC_RELEASE);
	last = clock_monotonic_ns();
	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		uint64_t now = clock_monotonic_ns();

		if (now - last > __atomic_load_n(&w->gap, __ATOMIC_RELAXED))
			__atomic_store_n(&w->gap, now - last, __ATOMIC_RELAXED);
		last = now;
	}
	return NULL;
}

static void wait_ns(uint64_t ns)
{
	uint64_t end = clock_monotonic_ns() + ns;

	while (clock_monotonic_ns() < end)
		;
}

/* Runs the program once: nanoseconds it took us, or 0. */
static uint64_t run_kick(struct session *s, int tid, bool kick)
{
	struct {
		unsigned int tid, kick;
	} args = {(unsigned int)tid, kick};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &args, .ctx_size_in = sizeof(args));
	uint64_t start = clock_monotonic_ns();

	if (bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.calibrate_kick), &opts) < 0 || opts.retval)
		return 0;
	return clock_monotonic_ns() - start;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Never negative: what cannot be told from nothing is nothing. */
static int64_t median(int64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), ascending);
	return v[n / 2] > 0 ? v[n / 2] : 0;
}

static void measure(struct session *s, struct watcher *w)
{
	struct abi_control *c = &s->skel->bss->control;
	int64_t stopped[ROUNDS], asking[ROUNDS];
	struct abi_totals before, after;
	size_t n = 0;

	for (int i = 0; i < MAX_ROUNDS && n < ROUNDS; i++) {
		int64_t with, without = (int64_t)run_kick(s, w->tid, false);

		wait_ns(SETTLE_NS);
		if (totals_read(s, &before) < 0)
			return;
		__atomic_store_n(&w->gap, 0, __ATOMIC_RELAXED);
		with = (int64_t)run_kick(s, w->tid, true);
		wait_ns(SETTLE_NS);
		stopped[n] = (int64_t)__atomic_load_n(&w->gap, __ATOMIC_RELAXED);
		if (totals_read(s, &after) < 0)
			return;
		if (after.payments != before.payments + 1)
			continue;
		stopped[n] -= (int64_t)(after.paid - before.paid);
		asking[n++] = with - without;
	}
	if (n < ROUNDS / 4)
		return;
	c->pay_overhead_ns = median(stopped, n);
	c->hit_overhead_ns = median(asking, n);
}

/* Two different CPUs that we may use; -ENOENT if there is only one. */
static int two_cpus(const cpu_set_t *allowed, int *ret_a, int *ret_b)
{
	int found[2], n = 0;

	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, allowed))
			found[n++] = i;
	if (n < 2)
		return -ENOENT;
	*ret_a = found[0];
	*ret_b = found[1];
	return 0;
}

static void do_nothing(int signo)
{
	(void)signo;
}

/* What a signal costs beside the handler's own time: the frame, and the way back. The call that raises it is taken off. */
static int64_t signal_cost(int signo)
{
	struct sigaction sa = {.sa_handler = do_nothing}, old;
	int64_t cost[ROUNDS];

	if (sigaction(signo, &sa, &old) < 0)
		return 0;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t a = clock_monotonic_ns(), b;

		(void)tgkill(getpid(), gettid(), 0);
		b = clock_monotonic_ns();
		(void)tgkill(getpid(), gettid(), signo);
		cost[i] = (int64_t)(clock_monotonic_ns() - b) - (int64_t)(b - a);
	}
	(void)sigaction(signo, &old, NULL);
	return median(cost, ROUNDS);
}

static int calibrate_work(struct session *s)
{
	struct abi_control *c = &s->skel->bss->control;
	struct watcher w = {0};
	cpu_set_t allowed, one;
	int here, r;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	r = two_cpus(&allowed, &here, &w.cpu);
	if (r < 0)
		return r;
	CPU_ZERO(&one);
	CPU_SET(here, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	/* We are the scope for this while. */
	c->tgid = (unsigned long long)getpid();
	c->epoch |= 1;
	r = -pthread_create(&w.thread, NULL, watch, &w);
	if (r == 0) {
		while (!__atomic_load_n(&w.ready, __ATOMIC_ACQUIRE))
			(void)sched_yield();
		measure(s, &w);
		__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
		(void)pthread_join(w.thread, NULL);
	}
	c->epoch = (c->epoch + 1) & ~1ULL;
	c->tgid = 0;
	(void)sched_setaffinity(0, sizeof(allowed), &allowed);
	return r;
}

int calibrate(struct session *s)
{
	int r = 0;

	if (s->skel->rodata->config.has_task_work && s->options.payer != ABI_PAY_NONE)
		r = calibrate_work(s);
	if (s->options.payer == ABI_PAY_SLEEP || s->options.payer == ABI_PAY_SPIN)
		s->skel->bss->control.pay_overhead_ns += signal_cost(s->options.signo);
	return r;
}
