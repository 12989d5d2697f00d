// SPDX-License-Identifier: BSD-2-Clause
/* Requests with a begin and an end, some without one of them, after a moment of computing in which a profiler gets its first
 * experiment under way; then it says what there was: `requests=N jobs=N naps=N stray_ends=N begun_twice=N settle_ns=N
 * inner_ns=N outer_ns=N`, the last two being all requests' time as seen from inside and from outside of their ends. Each
 * request calls serve() once. Jobs are begun by one thread and ended by another, last first. Naps are system calls.
 * usage: requests REQUESTS [SETTLE_SECONDS] */
#include "settle.h"

enum { JOBS = 50, NAPS = 20, STRAY = 7, TWICE = 3 };

static char jobs[JOBS];

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP void serve(void)
{
	burn(50000);
	__asm__ volatile("" : : : "memory"); /* no tail call: it returns from here */
}

static KEEP void request_begin(void)
{
	__asm__ volatile("" : : : "memory");
}

static KEEP void request_end(void)
{
	__asm__ volatile("" : : : "memory"); /* LINE:end */
}

static KEEP void job_begin(int priority, const char *job)
{
	__asm__ volatile("" : : "r"(priority), "r"(job) : "memory");
}

static KEEP void job_end(const char *job)
{
	__asm__ volatile("" : : "r"(job) : "memory");
}

static void *end_jobs(void *arg)
{
	for (int i = JOBS; i > 0; i--)
		job_end(&jobs[i - 1]);
	return arg;
}

int main(int argc, char **argv)
{
	uint64_t length = settle_length(argc, argv), inner = 0, outer = 0;
	long requests = argc > 1 ? atol(argv[1]) : 1000;
	pthread_t t;

	settle(length);
	for (int i = 0; i < STRAY; i++)
		request_end();
	for (int i = 0; i < TWICE; i++) {
		request_begin();
		burn(1000);
	}
	for (long i = 0; i < requests; i++) {
		uint64_t before = now_ns(), begun;

		request_begin();
		begun = now_ns();
		serve();
		inner += now_ns() - begun;
		request_end();
		outer += now_ns() - before;
	}
	for (int i = 0; i < JOBS; i++)
		job_begin(1, &jobs[i]);
	start_thread(&t, end_jobs, NULL);
	(void)pthread_join(t, NULL);
	for (int i = 0; i < NAPS; i++)
		(void)sleep_seconds(0.001);
	settle(length / 4);
	printf("requests=%ld jobs=%d naps=%d stray_ends=%d begun_twice=%d settle_ns=%llu inner_ns=%llu outer_ns=%llu\n", requests, JOBS,
	       NAPS, STRAY, TWICE, (unsigned long long)length, (unsigned long long)inner, (unsigned long long)outer);
	return 0;
}
