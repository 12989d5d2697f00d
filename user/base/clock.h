/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks in use. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

static inline uint64_t timespec_ns(struct timespec t)
{
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* How often that is a second: @n times in @ns; 0 if that is no time. */
static inline double clock_per_second(uint64_t n, uint64_t ns)
{
	return ns ? (double)n * (double)NSEC_PER_SEC / (double)ns : 0;
}

/* By how many ns this process's CLOCK_MONOTONIC is ahead of the kernel's own, as it is in a time
 * namespace. */
extern int64_t clock_ahead_ns;
/* Finds that out. Before the clock is asked for the first time. */
void clock_find_namespace(void);

/* Nanoseconds of the kernel's own CLOCK_MONOTONIC: the clock of bpf_ktime_get_ns(), so that both
 * sides' stamps compare. */
static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return timespec_ns(t) - (uint64_t)clock_ahead_ns;
}

/* A time of clock_monotonic_ns as this process's CLOCK_MONOTONIC has it: for timers. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	uint64_t at = ns + (uint64_t)clock_ahead_ns;

	if (clock_ahead_ns > 0 && at < ns)
		at = ns; /* never, in either */
	return (struct timespec){(time_t)(at / NSEC_PER_SEC), (long)(at % NSEC_PER_SEC)};
}

/* Has what is due at *@next come at @when, if that is earlier. */
static inline void clock_sooner(uint64_t *next, uint64_t when)
{
	if (when < *next)
		*next = when;
}

/* Nanoseconds since the epoch, for time stamps in files. */
static inline uint64_t clock_realtime_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return timespec_ns(t);
}

/* CPU time of the process @pid so far, in nanoseconds; 0: there is no such process, or it may not
 * be asked. */
static inline uint64_t clock_process_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0
		       ? timespec_ns(t)
		       : 0;
}
