// SPDX-License-Identifier: BSD-2-Clause
/* A payment stops its thread for longer than the payer can measure: the interrupt that kicks the CPU, the way into the callback and out
 * again lie outside; and a hit that has others pay stops its own thread for longer than another sample does. In a virtual machine that
 * is some microseconds each, a good part of a pause of 5 % of a period. So both are measured, in the way in which the program
 * will meet them: two of our threads watch their own clocks for gaps, while ticks of the one have the other pay (bpf/calibrate.h).
 * Without task work a thread's own tick has it pay, and one thread is enough. */
#include "session/internal.h"

#include "base/clock.h"
#include "cozbpf.skel.h"
#include "session/calibration_store.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TICK_NS (350 * NSEC_PER_USEC) /* a payment has long ended when the next tick comes */
/* A program that works has its own data in the first caches when the interrupt comes: with the kernel's still there from the last time,
 * a signal was delivered in 2.7 us, in a program in 4.3. */
#define TOUCHED (512 << 10)
#define CACHE_LINE 64
#define WANTED 128	      /* gaps of each kind: 1 % of a pause of 25 us, a 5 % speedup's, is what they scatter by */
#define ENOUGH (WANTED / 4)   /* fewer say nothing */
#define ROUNDS 5		      /* whatever else the machine does only adds, for a tenth of a second at a time: see agreed() */
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
	int64_t asking[WANTED]; /* of the KICKED ones, the part that the program on the tick measured itself */
};

/* Notes how long the clock stood still, by what came meanwhile; where that was more than one event, the gap says nothing. */
static void *watch(void *arg)
{
	struct watcher *w = arg;
	const volatile struct abi_calibration *c = w->counts;
	uint64_t ticks = 0, kicks = 0, asking = 0, last;
	size_t at = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	w->tid = gettid();
	__atomic_store_n(&w->ready, true, __ATOMIC_RELEASE);
	last = clock_monotonic_ns();
	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		uint64_t now = clock_monotonic_ns();

		(void)*(volatile unsigned char *)&w->memory[at];
		at = (at + CACHE_LINE) % sizeof(w->memory);

		if (now - last > LEAST_GAP_NS) {
			int kind = c->kicks > kicks ? KICKED : ORDINARY;
			bool one = c->kicks <= kicks + 1 && (!w->asks || c->ticks == ticks + 1);

			if (one && w->n[kind] < WANTED) {
				if (kind == KICKED)
					w->asking[w->n[kind]] = (int64_t)(c->asking_ns - asking);
				w->gaps[kind][w->n[kind]++] = (int64_t)(now - last);
			}
			ticks = c->ticks;
			kicks = c->kicks;
			asking = c->asking_ns;
			now = clock_monotonic_ns();
		}
		last = now;
	}
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The books are sums, so it is the mean that counts; but not of what else came in between, which is as long as it likes. Sorts. */
static int64_t mean(int64_t *v, size_t n)
{
	int64_t sum = 0;
	size_t used = 0;

	qsort(v, n, sizeof(*v), ascending);
	while (used < n && v[used] <= 2 * v[n / 2])
		sum += v[used++];
	return used ? sum / (int64_t)used : 0;
}

/* What they come to themselves, as far as they can tell. */
struct payments {
	uint64_t n, paid, delivery;
};

/* Where the shim pays, this handler stands for it: the frame, the way back and all that it measures itself are the same. */
static struct {
	struct shim_slot *slots;
	struct payments got;
} shim;

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
	struct sigaction sa = {.sa_sigaction = pay_nothing, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	(void)sigfillset(&sa.sa_mask);
	shim.got = (struct payments){0};
	shim.slots = mmap(NULL, SHIM_SLOTS * sizeof(*shim.slots), PROT_READ | PROT_WRITE, MAP_SHARED, session_slots_fd(s), 0);
	if (shim.slots == MAP_FAILED)
		return false;
	if (sigaction(s->options.signo, &sa, old) == 0)
		return true;
	(void)munmap(shim.slots, SHIM_SLOTS * sizeof(*shim.slots));
	return false;
}

static void remove_handler(struct session *s, const struct sigaction *old)
{
	(void)sigaction(s->options.signo, old, NULL);
	(void)munmap(shim.slots, SHIM_SLOTS * sizeof(*shim.slots));
}

struct cost {
	int64_t pay, hit, asking, delivery;
};

/* Never negative: what cannot be told from nothing is nothing. Returns whether the gaps say enough. */
static bool conclude(struct watcher *asker, struct watcher *payer, const struct payments *p, struct cost *ret)
{
	int64_t beyond, asking;

	if (asker->n[ORDINARY] < ENOUGH || asker->n[KICKED] < ENOUGH || payer->n[KICKED] < ENOUGH || !p->n)
		return false;
	asking = mean(asker->asking, asker->n[KICKED]);
	beyond = mean(asker->gaps[KICKED], asker->n[KICKED]) - mean(asker->gaps[ORDINARY], asker->n[ORDINARY]);
	ret->hit = asker == payer || beyond < asking ? 0 : beyond - asking;
	ret->pay = (asker == payer ? beyond : mean(payer->gaps[KICKED], payer->n[KICKED])) - (int64_t)(p->paid / p->n);
	if (ret->pay < 0)
		ret->pay = 0;
	ret->asking = asking;
	ret->delivery = (int64_t)(p->delivery / p->n);
	return true;
}

/* Ticks on the asker's CPU until there are enough, or it takes too long. */
static int let_tick(struct session *s, struct watcher *asker, struct watcher *payer)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = TICK_NS,
	};
	uint64_t deadline = clock_monotonic_ns() + LONGEST_NS;
	struct bpf_link *link;
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, asker->cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	link = bpf_program__attach_perf_event(s->skel->progs.calibrate_tick, fd);
	if (!link) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	while (__atomic_load_n(&payer->n[KICKED], __ATOMIC_RELAXED) < WANTED && clock_monotonic_ns() < deadline)
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

static int measure(struct session *s, struct watcher *asker, struct watcher *payer, const int cpu[2], struct cost *ret)
{
	struct abi_calibration *a = &s->skel->bss->calibration;
	struct abi_totals before, after;
	bool by_shim = s->options.payer != ABI_PAY_HOLD;
	struct abi_control *c = &s->skel->bss->control;
	struct payments held;
	int r;

	asker->asks = true;
	r = start_watcher(asker, a, cpu[0]);
	if (r == 0 && payer != asker)
		r = start_watcher(payer, a, cpu[1]);
	if (r == 0)
		r = totals_read(s, &before);
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
		r = totals_read(s, &after);
	if (r < 0)
		return r;
	held = (struct payments){.n = after.payments - before.payments, .paid = after.paid - before.paid};
	return conclude(asker, payer, by_shim ? &shim.got : &held, ret) ? 0 : -EAGAIN;
}

static int measure_once(struct session *s, const int cpu[2], struct cost *ret)
{
	bool others = s->skel->rodata->config.has_task_work, handler = false;
	struct watcher *w = calloc(2, sizeof(*w));
	struct sigaction old;
	int r;

	if (!w)
		return -ENOMEM;
	if (s->options.payer != ABI_PAY_HOLD) {
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

/* Neighbours of a virtual machine can make a round slower in all of its figures: each as it would have been had what the ledger will
 * scale it by (ledger_scaled) taken what it took in @like. */
static struct cost at_the_speed_of(const struct cost *like, const struct cost *c)
{
	return (struct cost){
		.pay = c->delivery ? c->pay * like->delivery / c->delivery : c->pay,
		.hit = c->asking ? c->hit * like->asking / c->asking : c->hit,
		.asking = like->asking,
		.delivery = like->delivery,
	};
}

static const struct cost *fastest(const struct cost *rounds, size_t n)
{
	const struct cost *found = rounds;

	for (size_t i = 1; i < n; i++)
		if (rounds[i].asking + rounds[i].delivery < found->asking + found->delivery)
			found = &rounds[i];
	return found;
}

/* Is it too slow a round to tell what a quiet machine does? Not everything slows down alike. */
static bool much_slower(const struct cost *c, const struct cost *like)
{
	return c->asking + c->delivery > (like->asking + like->delivery) * 5 / 4;
}

/* Of the rounds, those that say much the same as the least of each figure; their mean is *@ret. Returns how many. */
static size_t agreed(const struct cost *rounds, size_t n, struct calibration *ret)
{
	struct cost like = *fastest(rounds, n), scaled[ROUNDS], least = {.pay = INT64_MAX, .hit = INT64_MAX}, sum = {0};
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		scaled[i] = at_the_speed_of(&like, &rounds[i]);
		if (much_slower(&rounds[i], &like))
			continue;
		least.pay = scaled[i].pay < least.pay ? scaled[i].pay : least.pay;
		least.hit = scaled[i].hit < least.hit ? scaled[i].hit : least.hit;
	}
	for (size_t i = 0; i < n; i++) {
		const struct cost *c = &scaled[i];

		if (much_slower(&rounds[i], &like) || c->pay - least.pay > least.pay / 8 + SCATTER_NS || c->hit - least.hit > least.hit / 8 + SCATTER_NS)
			continue;
		sum.pay += c->pay;
		sum.hit += c->hit;
		used++;
	}
	/* No round had both: the machine was busy all the time. The least is nearer to the truth. */
	*ret = (struct calibration){
		.pay_ns = used ? sum.pay / (int64_t)used : least.pay,
		.hit_ns = used ? sum.hit / (int64_t)used : least.hit,
		.asking_ns = like.asking,
		.delivery_ns = like.delivery,
	};
	return used;
}

int calibrate_measure(struct session *s, const int cpu[2], struct calibration *ret)
{
	struct cost rounds[ROUNDS];
	size_t n = 0;
	int r;

	for (int i = 0; i < ROUNDS; i++) {
		if (i)
			(void)usleep(BETWEEN_US);
		r = measure_once(s, cpu, &rounds[n]);
		if (r < 0 && r != -EAGAIN)
			return r;
		n += r == 0;
	}
	if (!n)
		return -EAGAIN;
	return agreed(rounds, n, ret) >= 2;
}
