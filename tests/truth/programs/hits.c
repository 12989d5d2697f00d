// SPDX-License-Identifier: BSD-2-Clause
/* Says how much CPU time its threads spent in line a: the oracle for "samples in the line against CPU time in the
 * line". A visit is a round: work a for its share, then work b. The time in the line is read from the thread's CPU
 * clock around each batch. That is right while nobody pauses the program; a pause that keeps the CPU counts as CPU
 * time. So iterations are printed too: a run without pauses, under the same sampling, gives the time of an iteration,
 * and iterations times that is the time in the line of a run with pauses. */
#include "program.h"

#include <stdalign.h>

enum { THREADS_MAX = 64 };

struct counts {
	alignas(64) uint64_t batches, line_ns;
};

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 1000, .share_a = 80, .threads = 2, .stays = true };
static struct counts counts[THREADS_MAX];

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void *body(void *arg)
{
	struct counts *c = &counts[(intptr_t)arg];

	pin_to(&p, (long)(intptr_t)arg);
	for (;;) {
		uint64_t t0 = clock_ns(CLOCK_THREAD_CPUTIME_ID), t;

		work_a();
		t = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		__atomic_store_n(&c->line_ns, c->line_ns + t - t0, __ATOMIC_RELAXED);
		__atomic_store_n(&c->batches, c->batches + 1, __ATOMIC_RELAXED);
		work_b();
		visit();
	}
	return NULL;
}

static void totals(void)
{
	uint64_t batches = 0, line_ns = 0, iterations;

	for (long i = 0; i < p.threads; i++) {
		batches += __atomic_load_n(&counts[i].batches, __ATOMIC_RELAXED);
		line_ns += __atomic_load_n(&counts[i].line_ns, __ATOMIC_RELAXED);
	}
	iterations = batches * steps_a;
	printf("batches=%llu iterations=%llu batch_iterations=%llu line_cpu_ns=%llu ns_per_iteration=%.6f\n",
	       (unsigned long long)batches, (unsigned long long)iterations, (unsigned long long)steps_a,
	       (unsigned long long)line_ns, iterations ? (double)line_ns / (double)iterations : 0.0);
}

static void *each_second(void *arg)
{
	for (;;) {
		sleep_seconds(1);
		totals();
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	if (p.threads > THREADS_MAX)
		program_usage(argv[0]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	for (long i = 0; i < p.threads; i++)
		start_thread(body, (void *)(intptr_t)i);
	start_thread(each_second, NULL);
	program_finish(&p, totals);
}
