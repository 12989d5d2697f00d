// SPDX-License-Identifier: BSD-2-Clause
/* One thread that does a fixed amount of work, and says how long it took: `elapsed_ns=N cpu_ns=N`. For comparing what
 * samplers cost. usage: cpu [MILLION_ITERATIONS] */
#include "helper.h"

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	long millions = argc > 1 ? atol(argv[1]) : 2000;
	uint64_t t0 = now_ns(), c0 = cpu_ns();

	for (long i = 0; i < millions; i++)
		burn(1000000);
	progress();
	printf("elapsed_ns=%llu cpu_ns=%llu\n", (unsigned long long)(now_ns() - t0), (unsigned long long)(cpu_ns() - c0));
	return 0;
}
