// SPDX-License-Identifier: BSD-2-Clause
/* A payment stops its thread for longer than the payer can measure: the interrupt that kicks the
 * CPU, the way into the callback and out again lie outside; and a selected sample that has others
 * pay stops its own thread for longer than another sample does. In a virtual machine that is some
 * microseconds each, a good part of a pause of 5 % of a period. So both are measured, in the way in
 * which the program will meet them: two of our threads watch their own clocks for gaps, while ticks
 * of the one have the other pay (bpf/calibrate.h). Without task work a thread's own tick has it
 * pay, and one thread is enough. */
#include "experiment/session/internal.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cozbpf.skel.h"
#include "kernel/calibration/fit.h"
#include "kernel/programs.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define TICK_NS (350 * NSEC_PER_USEC) /* a payment has long ended when the next tick comes */
/* A program that works has its own data in the first caches when the interrupt comes: with the
 * kernel's still there from the last time, a signal was delivered in 2.7 us, in a program in 4.3.
 */
#define TOUCHED (512 << 10)
#define CACHE_LINE 64
#define WANTED                                                                                   \
	128 /* gaps of each kind: 1 % of a pause of 25 us, a 5 % speedup's, is what they scatter \
	       by */
#define ENOUGH (WANTED / 4) /* fewer say nothing */
#define ROUNDS                                                                                \
	5 /* whatever else the machine does only adds, for a tenth of a second at a time: see \
	     settle() */
#define BETWEEN_US 25000
#define LONGEST_NS (100 * NSEC_PER_MSEC)
#define LEAST_GAP_NS NSEC_PER_USEC
#define SCATTER_NS 300 /* of medians of some gaps each, on a quiet machine */

enum { ORDINARY, KICKED, KINDS };

struct watcher {
	pthread_t thread;
	const struct abi_calibration *counts;
	int cpu, tid;
	bool asks; /* its ticks count, too */
	bool ready, stop;
	size_t n[KINDS];
	unsigned char memory[TOUCHED];
	int64_t gaps[KINDS][WANTED];
	/* Of the KICKED ones: the part that the program on the tick measured itself; what the
	 * handler did, and of that the signal's way to it. */
	int64_t asking[WANTED], paid[WANTED], delivery[WANTED];
};

/* What they come to themselves, as far as they can tell. */
struct payments {
	uint64_t n, paid, delivery;
};

/* Where the shim pays, this handler stands for it: the frame, the way back and all that it measures
 * itself are the same. */
static struct {
	struct shim_slot *slots;
	volatile struct payments got; /* the handler adds */
} shim;

/* How often another thread had the CPU in between. */
static long switches(void)
{
	struct rusage used;

	return getrusage(RUSAGE_THREAD, &used) == 0 ? used.ru_nivcsw + used.ru_nvcsw : 0;
}

/* Notes how long the clock stood still, by what came meanwhile; where that was more than one event,
 * or another thread ran, the gap says nothing. */
static void *watch(void *arg)
{
	struct watcher *w = arg;
	const volatile struct abi_calibration *c = w->counts;
	uint64_t ticks = 0, kicks = 0, asking = 0, last;
	long switched;
	struct payments paid = {0};
	size_t at = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	w->tid = gettid();
	__atomic_store_n(&w->ready, true, __ATOMIC_RELEASE);
	switched = switches();
	last = clock_monotonic_ns();
	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		uint64_t now = clock_monotonic_ns();

		(void)*(volatile unsigned char *)&w->memory[at];
		at = (at + CACHE_LINE) % sizeof(w->memory);

		if (now - last > LEAST_GAP_NS) {
			int kind = c->kicks > kicks ? KICKED : ORDINARY;
			bool one = c->kicks <= kicks + 1 && (!w->asks || c->ticks == ticks + 1) &&
				   switches() == switched;

			if (one && w->n[kind] < WANTED) {
				if (kind == KICKED) {
					w->asking[w->n[kind]] = (int64_t)(c->asking_ns - asking);
					w->paid[w->n[kind]] = (int64_t)(shim.got.paid - paid.paid);
					w->delivery[w->n[kind]] =
						(int64_t)(shim.got.delivery - paid.delivery);
				}
				w->gaps[kind][w->n[kind]++] = (int64_t)(now - last);
			}
			ticks = c->ticks;
			kicks = c->kicks;
			asking = c->asking_ns;
			paid = shim.got;
			switched = switches();
			now = clock_monotonic_ns();
		}
		last = now;
	}
	return NULL;
}

static void pay_nothing(int signo, siginfo_t *info, void *context)
{
	uint64_t entered = clock_monotonic_ns(), start = entered;
	unsigned int tid = (unsigned int)gettid();

	(void)signo;
	(void)info;
	(void)context;
	for (unsigned int i = 0; i < SHIM_PROBES; i++) {
		struct shim_slot *s = &shim.slots[(tid + i) % SHIM_SLOTS];

		if (s->tid != tid)
			continue;
		start = (uint64_t)shim_payment_began(s, (long long)entered);
		(void)__atomic_exchange_n(&s->owed_ns, 0, __ATOMIC_ACQ_REL);
		(void)__atomic_add_fetch(&s->payments, 1, __ATOMIC_RELEASE);
		break;
	}
	shim.got.n++;
	shim.got.delivery += entered - start;
	shim.got.paid += clock_monotonic_ns() - start;
}

static bool install_handler(struct session *s, struct sigaction *old)
{
	struct sigaction sa = {.sa_sigaction = pay_nothing,
			       .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	(void)sigfillset(&sa.sa_mask);
	shim.got = (struct payments){0};
	shim.slots = mmap(NULL, SHIM_SLOTS * sizeof(*shim.slots), PROT_READ | PROT_WRITE,
			  MAP_SHARED, bpf_map__fd(s->skel->maps.slots), 0);
	if (shim.slots == MAP_FAILED)
		return false;
	if (sigaction(s->options.config.signo, &sa, old) == 0)
		return true;
	(void)munmap(shim.slots, SHIM_SLOTS * sizeof(*shim.slots));
	return false;
}

static void remove_handler(struct session *s, const struct sigaction *old)
{
	(void)sigaction(s->options.config.signo, old, NULL);
	(void)munmap(shim.slots, SHIM_SLOTS * sizeof(*shim.slots));
}

/* What a round has found: each of its hits and payments. */
struct round {
	size_t n_hits, n_payments;
	int64_t ordinary; /* what any other tick stops its thread for */
	struct unseen_point hits[WANTED], payments[WANTED];
};

/* @held: what the payments come to themselves, as far as they can tell; NULL: there are none.
 * Returns whether the gaps say enough. */
static bool conclude(struct watcher *asker, struct watcher *payer, const struct payments *held,
		     struct round *ret)
{
	int64_t ordinary = fit_mean(asker->gaps[ORDINARY], asker->n[ORDINARY]);

	if (asker->n[ORDINARY] < ENOUGH)
		return false;
	ret->ordinary = ordinary;
	/* Nobody pays. */
	ret->n_hits = ret->n_payments = 0;
	if (!held)
		return true;
	if (asker->n[KICKED] < ENOUGH || payer->n[KICKED] < ENOUGH || !held->n)
		return false;
	/* A thread that pays at its own ticks asks nobody. */
	ret->n_hits = asker == payer ? 0 : asker->n[KICKED];
	for (size_t i = 0; i < ret->n_hits; i++)
		ret->hits[i] = (struct unseen_point){
			asker->asking[i], asker->gaps[KICKED][i] - ordinary - asker->asking[i]};
	ret->n_payments = payer->n[KICKED];
	for (size_t i = 0; i < ret->n_payments; i++) {
		int64_t paid = held->delivery ? payer->paid[i] : (int64_t)(held->paid / held->n);

		ret->payments[i].beside = payer->delivery[i];
		ret->payments[i].ns =
			payer->gaps[KICKED][i] - paid - (asker == payer ? ordinary : 0);
	}
	return true;
}

/* Ticks on the asker's CPU until there are enough, or it takes too long. */
static int let_tick(struct session *s, struct watcher *asker, struct watcher *payer)
{
	uint64_t deadline = clock_monotonic_ns() + LONGEST_NS;
	int kind = s->options.config.payer == ABI_PAY_NONE ? ORDINARY : KICKED;
	struct bpf_link *link;
	int r = programs_attach_perf(s->skel->progs.calibrate_tick,
				     programs_open_clock(-1, asker->cpu, TICK_NS), 0, &link);

	if (r < 0)
		return r;
	while (__atomic_load_n(&payer->n[kind], __ATOMIC_RELAXED) < WANTED &&
	       clock_monotonic_ns() < deadline)
		(void)usleep(5000);
	(void)bpf_link__destroy(link);
	return 0;
}

static int start_watcher(struct watcher *w, const struct abi_calibration *counts, int cpu)
{
	int r;

	w->counts = counts;
	w->cpu = cpu;
	r = -pthread_create(&w->thread, NULL, watch, w);
	while (r == 0 && !__atomic_load_n(&w->ready, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	return r;
}

static void stop_watcher(struct watcher *w)
{
	if (!w->ready || w->stop)
		return;
	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	(void)pthread_join(w->thread, NULL);
}

static int measure(struct session *s, struct watcher *asker, struct watcher *payer,
		   const int cpu[2], struct round *ret)
{
	struct abi_calibration *a = &s->skel->bss->calibration;
	struct abi_totals before, after;
	bool by_shim =
		s->options.config.payer == ABI_PAY_SLEEP || s->options.config.payer == ABI_PAY_SPIN;
	struct abi_control *c = &s->skel->bss->control;
	struct payments held;
	int r;

	asker->asks = true;
	r = start_watcher(asker, a, cpu[0]);
	if (r == 0 && payer != asker)
		r = start_watcher(payer, a, cpu[1]);
	if (r == 0)
		r = session_totals(s, &before);
	if (r < 0)
		return r;
	c->signals_ok = by_shim;
	processes_calibrate(s, true);
	c->epoch |= 1;
	a->asker = (unsigned int)asker->tid;
	a->payer = (unsigned int)payer->tid;
	r = let_tick(s, asker, payer);
	a->payer = 0;
	/* The last payment may be under way: no handler may go before it came. */
	(void)usleep(1000);
	c->epoch = (c->epoch + 1) & ~1ULL;
	c->signals_ok = 0;
	processes_calibrate(s, false);
	stop_watcher(asker);
	stop_watcher(payer);
	if (r == 0)
		r = session_totals(s, &after);
	if (r < 0)
		return r;
	held = by_shim ? shim.got
		       : (struct payments){.n = after.payments - before.payments,
					   .paid = after.paid - before.paid};
	return conclude(asker, payer, s->options.config.payer == ABI_PAY_NONE ? NULL : &held, ret)
		       ? 0
		       : -EAGAIN;
}

static int measure_once(struct session *s, const int cpu[2], struct round *ret)
{
	bool handler = false, others = s->skel->rodata->config.has_task_work &&
				       s->options.config.payer != ABI_PAY_NONE;
	struct watcher *w = xcalloc(2, sizeof(*w));
	struct sigaction old;
	int r;

	if (s->options.config.payer == ABI_PAY_SLEEP || s->options.config.payer == ABI_PAY_SPIN) {
		handler = install_handler(s, &old);
		if (!handler) {
			free(w);
			return -errno;
		}
	}
	r = measure(s, &w[0], &w[others], cpu, ret);
	stop_watcher(&w[0]);
	stop_watcher(&w[1]);
	if (handler)
		remove_handler(s, &old);
	free(w);
	return r;
}

/* Through the points of the rounds that are at most @most above the line of before; @all has room
 * for them. Their number is *@ret_used. */
static struct abi_unseen fit_rounds(const struct unseen_point *const points[], const size_t n[],
				    size_t rounds, const int64_t above[], int64_t most,
				    struct unseen_point *all, size_t *ret_used)
{
	size_t sum = 0;

	*ret_used = 0;
	for (size_t i = 0; i < rounds; i++) {
		if (above[i] > most)
			continue;
		memcpy(&all[sum], points[i], n[i] * sizeof(*all));
		sum += n[i];
		++*ret_used;
	}
	return fit_unseen(all, sum);
}

/* The line through the points of all rounds, and then of those rounds that are about as low as the
 * lowest: whatever else the machine does only adds, for a tenth of a second at a time. How low is
 * told beside the line, or, where @level, by the mean alone: a neighbour on the other half of a
 * core makes a payment's signal and all the rest of it slow by half, while cold caches, which every
 * program has, delay the signal most. Both in one line would have the caches cost what the
 * neighbour does. Where nothing is measured beside it, nothing will tell when the program runs how
 * busy the machine is: then the mean of all rounds it is. Returns how many rounds agree with the
 * line. */
static size_t settle(const struct unseen_point *const points[], const size_t n[], size_t rounds,
		     bool level, struct abi_unseen *ret)
{
	struct unseen_point *all = xcalloc(ROUNDS * WANTED, sizeof(*all));
	int64_t above[ROUNDS] = {0}, least = INT64_MAX;
	struct abi_unseen low;
	size_t used;

	*ret = fit_rounds(points, n, rounds, above, 0, all, &used);
	if (level)
		ret->slope_q8 = 0;
	for (size_t i = 0; i < rounds; i++) {
		above[i] = fit_distance(points[i], n[i], ret);
		least = above[i] < least ? above[i] : least;
	}
	low = fit_rounds(points, n, rounds, above, least + ret->ns / 8 + SCATTER_NS, all, &used);
	if (!level || ret->beside_ns)
		*ret = low;
	free(all);
	return used;
}

int calibrate_measure(struct session *s, const int cpu[2], struct abi_costs *ret)
{
	const struct unseen_point *hits[ROUNDS], *payments[ROUNDS];
	int64_t ordinary[ROUNDS];
	size_t n_hits[ROUNDS], n_payments[ROUNDS], n = 0, hits_agree, payments_agree;
	struct round *rounds = xcalloc(ROUNDS, sizeof(*rounds));
	int r = 0;

	for (int i = 0; i < ROUNDS && (r == 0 || r == -EAGAIN); i++) {
		if (i)
			(void)usleep(BETWEEN_US);
		r = measure_once(s, cpu, &rounds[n]);
		if (r < 0)
			continue;
		hits[n] = rounds[n].hits;
		n_hits[n] = rounds[n].n_hits;
		payments[n] = rounds[n].payments;
		n_payments[n] = rounds[n].n_payments;
		ordinary[n] = rounds[n].ordinary;
		n++;
	}
	if ((r < 0 && r != -EAGAIN) || !n) {
		free(rounds);
		return r < 0 ? r : -EAGAIN;
	}
	/* Nothing measures the program's ticks, so it is those of a machine as busy as it usually
	 * is. */
	ret->tick_ns = fit_mean(ordinary, n);
	ret->hit = ret->pay = (struct abi_unseen){0};
	if (s->options.config.payer == ABI_PAY_NONE) {
		free(rounds);
		return 1;
	}
	hits_agree = settle(hits, n_hits, n, false, &ret->hit);
	payments_agree = settle(payments, n_payments, n, true, &ret->pay);
	free(rounds);
	return hits_agree >= 2 && payments_agree >= 2;
}
