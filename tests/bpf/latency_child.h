/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that passes latency points: a letter at a time it is told what to begin and to end. */
#pragma once

#include "base/clock.h"
#include "shared/abi.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAIRS 1000
#define JOBS 200
#define TOO_MANY 1000

/* What the child says of itself. */
struct said {
	uint64_t inner_ns,
		outer_ns; /* its intervals, as seen from between and from around the probes */
};

static volatile uint64_t sink;
static struct said *said;
static sem_t stepped, handed;

/* Global and in one copy, with all arguments, so that probes find them. */
#ifdef __clang__
#define KEEP __attribute__((noinline, used))
#else
#define KEEP __attribute__((noipa))
#endif
#define PLACE(name)                                             \
	KEEP void name(long unused, long key);                  \
	KEEP void name(long unused, long key)                   \
	{                                                       \
		__asm__ volatile("" : : "r"(unused), "r"(key)); \
	}
PLACE(lat_req_begin)
PLACE(lat_req_end)
PLACE(lat_job_begin)
PLACE(lat_hot_begin)
PLACE(lat_hot_end)
PLACE(lat_cold_begin)
PLACE(lat_cold_end)
KEEP void lat_job_end(long key);
KEEP void lat_job_end(long key)
{
	__asm__ volatile("" : : "r"(key));
}

KEEP static void lat_hot_work(void)
{
	volatile uint64_t own = 0; /* shared, it would make each thread's pace the other's */

	for (int i = 0; i < 5000000; i++)
		own += (uint64_t)i;
	(void)own;
}

KEEP static void lat_cold_work(void)
{
	volatile uint64_t own = 0; /* shared, it would make each thread's pace the other's */

	for (int i = 0; i < 5000000; i++)
		own += (uint64_t)i;
	(void)own;
}

static void one_request(void)
{
	uint64_t before = clock_monotonic_ns(), begun, ends;

	lat_req_begin(0, 0);
	begun = clock_monotonic_ns();
	for (int i = 0; i < 10000; i++)
		sink += (uint64_t)i;
	ends = clock_monotonic_ns();
	lat_req_end(0, 0);
	said->inner_ns += ends - begun;
	said->outer_ns += clock_monotonic_ns() - before;
}

/* Ends the jobs that another thread began, in another order. */
static void *end_jobs(void *arg)
{
	for (long i = JOBS; i > 0; i--)
		lat_job_end(i);
	lat_job_end(JOBS + 1);
	return arg;
}

static void *begin_and_leave(void *arg)
{
	lat_req_begin(0, 0);
	return arg;
}

static void *begin_and_stay(void *arg)
{
	lat_req_begin(0, 0);
	sem_post(&stepped);
	for (;;)
		(void)pause();
	return arg;
}

static void *hot_thread(void *arg)
{
	for (;;) {
		lat_hot_begin(0, 0);
		lat_hot_work();
		lat_hot_end(0, 0);
	}
	return arg;
}

static void *cold_thread(void *arg)
{
	for (;;) {
		lat_cold_begin(0, 0);
		lat_cold_work();
		lat_cold_end(0, 0);
	}
	return arg;
}

/* Hands a job to another thread now and then, some time after its last visit of the hot line. */
static void *hand_over(void *arg)
{
	for (long i = 0;; i++) {
		lat_hot_work();
		lat_cold_work();
		lat_job_begin(7, i);
		sem_post(&handed);
	}
	return arg;
}

static void *take_over(void *arg)
{
	for (long i = 0;; i++) {
		while (sem_wait(&handed) < 0)
			;
		lat_job_end(i);
	}
	return arg;
}

static void other_thread(void *(*body)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, body, NULL) == 0)
		(void)pthread_join(t, NULL);
}

static void do_step(char what)
{
	pthread_t t;

	switch (what) {
	case 'r': /* requests, each with both ends */
		for (int i = 0; i < PAIRS; i++)
			one_request();
		break;
	case 'o': /* odd ones: two ends too many, a begin too many */
		lat_req_end(0, 0);
		lat_req_end(0, 0);
		lat_req_begin(0, 0);
		one_request();
		break;
	case 'x': /* ends with its thread */
		other_thread(begin_and_leave);
		break;
	case 's': /* stays under way */
		(void)pthread_create(&t, NULL, begin_and_stay, NULL);
		sem_wait(&stepped);
		break;
	case 'b':
		lat_req_begin(0, 0);
		break;
	case 'e':
		lat_req_end(0, 0);
		break;
	case 'j':
		for (long i = 1; i <= JOBS; i++)
			lat_job_begin(7, i);
		other_thread(end_jobs);
		break;
	case 'm':
		for (long i = 0; i < ABI_MAX_BEGINS + TOO_MANY; i++)
			lat_job_begin(7, i + 1000000);
		break;
	case 't':
		(void)pthread_create(&t, NULL, hot_thread, NULL);
		(void)pthread_create(&t, NULL, cold_thread, NULL);
		break;
	case 'h':
		(void)pthread_create(&t, NULL, hand_over, NULL);
		(void)pthread_create(&t, NULL, take_over, NULL);
		break;
	}
}

static void child(int commands, int answers)
{
	char c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	sem_init(&stepped, 0, 0);
	sem_init(&handed, 0, 0);
	while (read(commands, &c, 1) == 1) {
		do_step(c);
		if (write(answers, &c, 1) != 1)
			break;
	}
	_exit(0);
}
