// SPDX-License-Identifier: BSD-2-Clause
/* Two independent threads that notice when they are stopped: each reads the CPU's counter in a tight loop and adds up
 * the gaps that are longer than --gap (and writes them all to --gaps FILE); a round ends with a visit. Thread a stands in line a, thread b in line b: with
 * line a sped up, all of G comes from a, and b pays it. Ticks and other interrupts are gaps too: subtract those of a
 * run at 0 %. */
#include "program.h"

#include <stdalign.h>

enum { BUCKETS = 6 };

struct gap {
	uint64_t begin, length; /* in counter ticks */
};

struct watch {
	alignas(64) uint64_t gaps, sum, began, now; /* in counter ticks */
	struct gap *list; /* of all, room for max_gaps; NULL: not wanted */
	uint64_t histogram[BUCKETS];
};

static const double bucket_us[BUCKETS] = { 20, 40, 100, 1000, 11000, 1e12 };
static struct program p = { .round_us = 10000, .gap_us = 5, .stays = true };
static struct watch watches[2];
static uint64_t least_gap, limits[BUCKETS];
static uint64_t start_ticks, start_ns, max_gaps;
static double ticks_per_us;

/* The CPU's own counter. A macro, and no call into the vdso: reading it must belong to the line that does. */
#if defined(__x86_64__) || defined(__i386__)
#define ticks() __builtin_ia32_rdtsc()
#elif defined(__aarch64__)
#define ticks()                                                       \
	({                                                            \
		uint64_t ticks_v;                                     \
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks_v)); \
		ticks_v;                                              \
	})
#else
#define ticks() clock_ns(CLOCK_MONOTONIC)
#endif

static double ticks_per_microsecond(void)
{
	uint64_t n0 = clock_ns(CLOCK_MONOTONIC), t0 = ticks();

	sleep_seconds(0.1);
	return (double)(ticks() - t0) * 1e3 / (double)(clock_ns(CLOCK_MONOTONIC) - n0);
}

/* Reads until the next gap or the time @until: the last reading before it and the one after. Readings go on from call
 * to call, so a stop between two calls is a gap too. A macro: the loop stays in the line of its use. */
#define UNTIL_GAP(last, now)                                                              \
	do {                                                                              \
		for (now = ticks(); now - last < least_gap && now < until; now = ticks()) \
			last = now;                                                       \
	} while (0)

struct readings {
	uint64_t last, now;
};

static KEEP struct readings watch_a(uint64_t last, uint64_t until)
{
	uint64_t now;

	UNTIL_GAP(last, now); /* LINE:a */
	return (struct readings){ last, now };
}

static KEEP struct readings watch_b(uint64_t last, uint64_t until)
{
	uint64_t now;

	UNTIL_GAP(last, now); /* LINE:b */
	return (struct readings){ last, now };
}

static void note(struct watch *w, uint64_t from, uint64_t gap)
{
	int bucket = 0;

	while (bucket < BUCKETS - 1 && gap >= limits[bucket])
		bucket++;
	w->histogram[bucket]++;
	if (w->list && w->gaps < max_gaps)
		w->list[w->gaps] = (struct gap){ from, gap };
	__atomic_store_n(&w->gaps, w->gaps + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&w->sum, w->sum + gap, __ATOMIC_RELAXED);
}

static void *body(void *arg)
{
	struct watch *w = &watches[(intptr_t)arg];
	uint64_t turn = (uint64_t)(p.round_us * ticks_per_us), until;
	struct readings r;

	pin_to(&p, (long)(intptr_t)arg);
	w->began = r.now = ticks();
	for (;;) {
		until = r.now + turn;
		do {
			r = arg ? watch_b(r.now, until) : watch_a(r.now, until);
			if (r.now - r.last >= least_gap)
				note(w, r.last, r.now - r.last);
		} while (r.now < until);
		__atomic_store_n(&w->now, r.now, __ATOMIC_RELAXED);
		visit();
		r.now = ticks(); /* the trap at the progress point is no stop */
	}
	return NULL;
}

/* "thread begin length" a line, ns; begin is CLOCK_MONOTONIC. */
static void write_gaps(void)
{
	double ns_per_tick = (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) / (double)(ticks() - start_ticks);
	FILE *f = fopen(p.gaps, "w");

	if (!f)
		goto failed;
	for (int i = 0; i < 2; i++) {
		uint64_t n = __atomic_load_n(&watches[i].gaps, __ATOMIC_ACQUIRE);

		if (n > max_gaps) {
			fprintf(stderr, "more than %llu gaps in a thread\n", (unsigned long long)max_gaps);
			exit(2);
		}
		for (uint64_t j = 0; j < n; j++) {
			const struct gap *g = &watches[i].list[j];

			fprintf(f, "%c %.0f %.0f\n", 'a' + i,
				(double)start_ns + (double)(g->begin - start_ticks) * ns_per_tick,
				(double)g->length * ns_per_tick);
		}
	}
	if (fclose(f) == 0)
		return;
failed:
	fprintf(stderr, "cannot write %s: %s\n", p.gaps, strerror(errno));
	exit(2);
}

/* Touched beforehand: a page fault would be a gap. */
static void prepare_gaps(void)
{
	max_gaps = (uint64_t)((p.seconds > 0 ? p.seconds : 60) * 20000);
	for (int i = 0; i < 2; i++) {
		watches[i].list = malloc(max_gaps * sizeof(struct gap));
		if (!watches[i].list) {
			fprintf(stderr, "no memory for %llu gaps\n", (unsigned long long)max_gaps);
			exit(2);
		}
		memset(watches[i].list, 1, max_gaps * sizeof(struct gap));
	}
}

static void totals(void)
{
	if (p.gaps)
		write_gaps();
	for (int i = 0; i < 2; i++) {
		struct watch *w = &watches[i];

		printf("thread=%c gaps=%llu stopped_ns=%.0f lived_ns=%.0f", 'a' + i, (unsigned long long)w->gaps,
		       (double)w->sum * 1e3 / ticks_per_us, (double)(w->now - w->began) * 1e3 / ticks_per_us);
		for (int j = 0; j < BUCKETS; j++)
			printf(" below_%.0fus=%llu", j < BUCKETS - 1 ? bucket_us[j] : 0,
			       (unsigned long long)w->histogram[j]);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	ticks_per_us = ticks_per_microsecond();
	least_gap = (uint64_t)(p.gap_us * ticks_per_us);
	for (int i = 0; i < BUCKETS - 1; i++)
		limits[i] = (uint64_t)(bucket_us[i] * ticks_per_us);
	if (p.gaps)
		prepare_gaps();
	start_ns = clock_ns(CLOCK_MONOTONIC);
	start_ticks = ticks();
	start_thread(body, (void *)0);
	start_thread(body, (void *)1);
	program_finish(&p, totals);
}
