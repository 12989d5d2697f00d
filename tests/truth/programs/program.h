/* SPDX-License-Identifier: BSD-2-Clause */
/* What the calibrated programs share: work whose CPU time is proportional to an iteration count, options, pinning,
 * progress, and the closing line `visits=N elapsed_ns=N period_ns=N steps_per_us=N` that the harness reads. All static: a program is
 * one file. */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Coz wants its macro in the program (tests/truth/peer.py builds it so); we do without. */
#ifdef TRUTH_COZ
#include <coz.h>
#define PROGRESS_MACRO() COZ_PROGRESS_NAMED("progress")
#else
#define PROGRESS_MACRO() ((void)0)
#endif

/* A function that stays one symbol with one copy, so that a name or a line of it means what it says. */
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* The steps that SPIN did and the time that they took, for the closing line: what a visit takes beside its work cannot be told from a calibration,
 * since a virtual machine's CPUs differ by several per cent from second to second. */
struct worked {
	uint64_t steps, ns;
};
static struct worked own_worked, *worked = &own_worked; /* as visit_counts */

/* @n steps of a multiply-add, each needing the one before: bound by latency, so neither the loop's alignment nor a busy
 * sibling hyperthread changes its cost, and two copies of it cost the same. A macro: all of it belongs to the line of
 * its use. */
#define SPIN(n)                                                                                                  \
	do {                                                                                                     \
		uint64_t spin_x = 1, spin_from = clock_ns(CLOCK_MONOTONIC), spin_n = (n);                         \
		for (uint64_t spin_i = spin_n; spin_i > 0; spin_i--)                                              \
			spin_x = spin_x * 6364136223846793005ULL + 1442695040888963407ULL;                       \
		__asm__ volatile("" : : "r"(spin_x));                                                            \
		(void)__atomic_add_fetch(&worked->steps, spin_n, __ATOMIC_RELAXED);                              \
		(void)__atomic_add_fetch(&worked->ns, clock_ns(CLOCK_MONOTONIC) - spin_from, __ATOMIC_RELAXED); \
	} while (0)

struct program {
	double seconds;              /* 0: for ever */
	double round_us;             /* what a round is, each program says */
	double per_us;               /* iterations of SPIN in a microsecond; 0: calibrate at the start */
	double share_a;              /* work a's part of a round, percent, where a program has such a choice */
	double speedup_a, speedup_b; /* percent by which the work really gets shorter */
	double more_us;              /* work of neither line, where a program has some */
	double asleep_us;            /* what an answer from outside takes, where a program waits for one */
	long threads, window;
	const char *kind; /* mechanism or lock */
	double gap_us;    /* pauses shorter than this are not counted */
	const char *gaps; /* file to write every pause to, or NULL */
	bool pin, calibrate_only;
	bool stays; /* its pinned threads do not change places */
};

/* A macro, as SPIN is. */
#define sleep_seconds(s)                                                             \
	do {                                                                         \
		double sleep_s = (s);                                                \
		struct timespec sleep_t = { .tv_sec = (time_t)sleep_s };             \
		sleep_t.tv_nsec = (long)((sleep_s - (double)sleep_t.tv_sec) * 1e9);  \
		while (nanosleep(&sleep_t, &sleep_t) < 0 && errno == EINTR)          \
			continue;                                                    \
	} while (0)

static KEEP void calibration_work(uint64_t n)
{
	SPIN(n);
}

static inline int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Iterations in a microsecond of this thread's CPU time: the upper quartile of 15 batches of about 2 ms, after one to wake the CPU up. With @apart_us
 * between them they outlast a virtual machine's slow moments, which can be a quarter of a second long. */
static inline double calibrate(useconds_t apart_us)
{
	enum { BATCHES = 15, STEPS = 1500000 };
	double rates[BATCHES];

	calibration_work(STEPS);
	for (int i = 0; i < BATCHES; i++) {
		uint64_t t0;

		(void)usleep(apart_us);
		t0 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		calibration_work(STEPS);
		rates[i] = STEPS * 1e3 / (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - t0);
	}
	qsort(rates, BATCHES, sizeof(rates[0]), compare_doubles);
	return rates[BATCHES * 3 / 4];
}

static inline void program_usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [--seconds S] [--round US] [--per-us ITERATIONS] [--share-a PERCENT]\n"
		"          [--speedup-a PERCENT] [--speedup-b PERCENT] [--threads N] [--window N]\n"
		"          [--more US] [--asleep US] [--kind NAME] [--gap US] [--gaps FILE] [--no-pin] [--calibrate]\n",
		name);
	exit(2);
}

static inline double program_number(const char *name, const char *text, double low, double high)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= low && v <= high))
		program_usage(name);
	return v;
}

static cpu_set_t allowed_cpus; /* at the start: a thread that is pinned has but one */

/* Reads the command line over the defaults already in @p, and calibrates unless told a rate. */
static inline void program_start(struct program *p, int argc, char **argv)
{
	static const struct option table[] = {
		{ "seconds", 1, NULL, 's' }, { "round", 1, NULL, 'r' },     { "per-us", 1, NULL, 'u' },
		{ "share-a", 1, NULL, 'm' }, { "speedup-a", 1, NULL, 'a' }, { "speedup-b", 1, NULL, 'b' },
		{ "threads", 1, NULL, 't' }, { "window", 1, NULL, 'w' },    { "kind", 1, NULL, 'k' },
		{ "gap", 1, NULL, 'g' },     { "no-pin", 0, NULL, 'P' },    { "calibrate", 0, NULL, 'c' },
		{ "gaps", 1, NULL, 'G' },    { "asleep", 1, NULL, 'z' },    { "more", 1, NULL, 'M' },
		{ NULL, 0, NULL, 0 },
	};
	const char *name = argv[0];
	int opt;

	p->pin = true;
	(void)sched_getaffinity(0, sizeof(allowed_cpus), &allowed_cpus);
	while ((opt = getopt_long(argc, argv, "", table, NULL)) >= 0) {
		switch (opt) {
		case 's': p->seconds = program_number(name, optarg, 0, 1e6); break;
		case 'r': p->round_us = program_number(name, optarg, 1, 1e7); break;
		case 'u': p->per_us = program_number(name, optarg, 1, 1e5); break;
		case 'm': p->share_a = program_number(name, optarg, 0, 100); break;
		case 'a': p->speedup_a = program_number(name, optarg, 0, 100); break;
		case 'b': p->speedup_b = program_number(name, optarg, 0, 100); break;
		case 't': p->threads = (long)program_number(name, optarg, 1, 1024); break;
		case 'w': p->window = (long)program_number(name, optarg, 1, 1e6); break;
		case 'M': p->more_us = program_number(name, optarg, 0, 1e7); break;
		case 'z': p->asleep_us = program_number(name, optarg, 0, 1e7); break;
		case 'g': p->gap_us = program_number(name, optarg, 0.1, 1e6); break;
		case 'k': p->kind = optarg; break;
		case 'G': p->gaps = optarg; break;
		case 'P': p->pin = false; break;
		case 'c': p->calibrate_only = true; break;
		default: program_usage(name);
		}
	}
	if (optind != argc)
		program_usage(name);
	if (p->per_us == 0 || p->calibrate_only)
		p->per_us = calibrate(p->calibrate_only ? 50000 : 0);
	if (p->calibrate_only) {
		printf("per_us=%.3f\n", p->per_us);
		exit(0);
	}
}

/* Iterations for @us microseconds of work that got @percent shorter. */
static inline uint64_t program_steps(const struct program *p, double us, double percent)
{
	return (uint64_t)(us * p->per_us * (1 - percent / 100) + 0.5);
}

/* Puts thread @tid, or with 0 the calling one, on the @index-th CPU that the program may use, round and round. */
static inline void put_on(pid_t tid, long index)
{
	cpu_set_t one;

	if (CPU_COUNT(&allowed_cpus) == 0)
		return;
	index %= CPU_COUNT(&allowed_cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed_cpus) || index-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		(void)sched_setaffinity(tid, sizeof(one), &one);
		return;
	}
}

/* Pinned threads change places five times a second. The CPUs of a virtual machine can differ by several per cent for seconds, and the works of two
 * threads that stayed on theirs would by as much not be what the arithmetic has. */
#define PLACES_NS 200000000ULL
#define MAX_PLACES 32

struct places {
	uint64_t since;
	uint32_t n, turn;
	struct {
		pid_t tid; /* 0: not yet known */
		long index;
	} at[MAX_PLACES];
};

struct visit_counts {
	uint64_t visits, last_ns;
	struct places places;
};
static struct visit_counts own_counts, *visit_counts = &own_counts; /* a program of several processes has them in memory that they share */

/* Called by one of them: the others first, since it may have to wait for one of them on its new CPU. */
static KEEP void change_places(struct places *p, uint64_t now)
{
	uint64_t since = __atomic_load_n(&p->since, __ATOMIC_RELAXED);
	pid_t self = (pid_t)syscall(SYS_gettid);
	uint32_t n = __atomic_load_n(&p->n, __ATOMIC_ACQUIRE), turn;

	if (n == 0 || now - since < PLACES_NS || !__atomic_compare_exchange_n(&p->since, &since, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	turn = __atomic_add_fetch(&p->turn, 1, __ATOMIC_RELAXED);
	for (int own = 0; own < 2; own++)
		for (uint32_t i = 0; i < n && i < MAX_PLACES; i++) {
			pid_t tid = __atomic_load_n(&p->at[i].tid, __ATOMIC_ACQUIRE);

			if (tid && own == (tid == self))
				put_on(tid, p->at[i].index + (long)turn);
		}
}

/* Puts the calling thread on the @index-th CPU, and lets it change places with the others that are pinned. */
static inline void pin_to(const struct program *p, long index)
{
	struct places *places = &visit_counts->places;
	uint32_t i;

	if (!p->pin)
		return;
	put_on(0, index + (long)__atomic_load_n(&places->turn, __ATOMIC_RELAXED));
	if (p->stays)
		return;
	i = __atomic_fetch_add(&places->n, 1, __ATOMIC_ACQ_REL);
	if (i >= MAX_PLACES)
		return;
	places->at[i].index = index;
	__atomic_store_n(&places->at[i].tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static inline void start_thread(void *(*body)(void *), void *arg)
{
	pthread_t t;
	int r = pthread_create(&t, NULL, body, arg);

	if (r) {
		fprintf(stderr, "cannot create a thread: %s\n", strerror(r));
		exit(2);
	}
}

/* The progress point. */
static KEEP void progress(void)
{
	__asm__ volatile("" : : : "memory");
	PROGRESS_MACRO();
}

static inline void visit(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now - __atomic_load_n(&visit_counts->places.since, __ATOMIC_RELAXED) >= PLACES_NS)
		change_places(&visit_counts->places, now);
	__atomic_store_n(&visit_counts->last_ns, now, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&visit_counts->visits, 1, __ATOMIC_RELEASE);
	progress();
}

/* The number of visits and the time of the last one, of the same moment. */
static inline uint64_t visits_so_far(uint64_t *ret_last_ns)
{
	uint64_t n;

	do {
		n = __atomic_load_n(&visit_counts->visits, __ATOMIC_ACQUIRE);
		*ret_last_ns = __atomic_load_n(&visit_counts->last_ns, __ATOMIC_ACQUIRE);
	} while (n != __atomic_load_n(&visit_counts->visits, __ATOMIC_ACQUIRE));
	return n;
}

/* The closing line. Leaves. */
static inline void program_print(uint64_t visits, uint64_t elapsed_ns)
{
	printf("visits=%llu elapsed_ns=%llu period_ns=%.0f steps_per_us=%.3f\n", (unsigned long long)visits, (unsigned long long)elapsed_ns,
	       visits ? (double)elapsed_ns / (double)visits : 0.0, worked->ns ? 1e3 * (double)worked->steps / (double)worked->ns : 0.0);
	exit(0);
}

/* Lets the threads run for the asked time, prints the mean time from visit to visit and leaves. The first tenth of the
 * time (at most 0.2 s) does not count: threads are still being placed and queues filled. @last prints what else the
 * program counted. */
static inline void program_finish(const struct program *p, void (*last)(void))
{
	double warm = p->seconds / 10 < 0.2 ? p->seconds / 10 : 0.2;
	uint64_t first, n, first_ns, elapsed;

	if (p->seconds == 0)
		for (;;)
			(void)pause();
	do
		sleep_seconds(warm);
	while ((first = visits_so_far(&first_ns)) == 0);
	sleep_seconds(p->seconds - warm);
	n = visits_so_far(&elapsed) - first;
	elapsed -= first_ns;
	if (last)
		last();
	program_print(n, elapsed);
}
