// SPDX-License-Identifier: BSD-2-Clause
/* Two threads of steady work that tell how fast they get on: every 100 ms a line `at_ms=N batches=N longest_us=N`, the
 * last being the longest that one batch (some 200 us) took. For a profiler that dies in mid-experiment: the rate must
 * be the native one at once. usage: steady SECONDS */
#include "helper.h"

static uint64_t batches, longest_ns;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP void other(uint64_t n)
{
	BURN(n); /* LINE:other */
}

static void *body(void *arg)
{
	uint64_t before = now_ns();

	for (;;) {
		uint64_t now, took, longest;

		if (arg)
			burn(500000);
		else
			other(500000);
		now = now_ns();
		took = now - before;
		before = now;
		longest = __atomic_load_n(&longest_ns, __ATOMIC_RELAXED);
		while (took > longest &&
		       !__atomic_compare_exchange_n(&longest_ns, &longest, took, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		visit(&batches);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t begin, next, length = (uint64_t)(seconds_of(argc, argv) * 1e9);
	pthread_t t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (intptr_t i = 0; i < 2; i++)
		start_thread(&t, body, (void *)i);
	begin = next = now_ns();
	while (now_ns() - begin < length) {
		struct timespec until;

		next += 100000000U;
		until.tv_sec = (time_t)(next / 1000000000U);
		until.tv_nsec = (long)(next % 1000000000U);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			continue;
		printf("at_ms=%llu batches=%llu longest_us=%llu\n", (unsigned long long)((now_ns() - begin) / 1000000U),
		       (unsigned long long)__atomic_exchange_n(&batches, 0, __ATOMIC_RELAXED),
		       (unsigned long long)(__atomic_exchange_n(&longest_ns, 0, __ATOMIC_RELAXED) / 1000U));
	}
	return 0;
}
