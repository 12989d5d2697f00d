// SPDX-License-Identifier: BSD-2-Clause
/* A thread that sleeps for a millisecond or two, works for some microseconds, and again: how late
 * it gets the CPU. `wakes=N p50_ns=N p99_ns=N`. usage: wakes SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define MOST 100000
#define WORK_NS 20000

static long late[MOST];

static long long now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long long end = now_ns() + (long long)(1e9 * (argc > 1 ? atof(argv[1]) : 2));
	size_t n = 0;

	(void)prctl(PR_SET_TIMERSLACK, 1);
	while (n < MOST && now_ns() < end) {
		long long due = now_ns() + 1000000 + rand() % 1000000, woken;
		struct timespec t = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};

		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		woken = now_ns();
		late[n++] = (long)(woken - due);
		while (now_ns() < woken + WORK_NS)
			;
	}
	if (!n)
		return 1;
	qsort(late, n, sizeof(*late), ascending);
	printf("wakes=%zu p50_ns=%ld p99_ns=%ld\n", n, late[n / 2], late[n * 99 / 100]);
	return 0;
}
