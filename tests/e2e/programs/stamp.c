// SPDX-License-Identifier: BSD-2-Clause
/* Writes to its standard error when it began main and when it was about to end, on the monotonic clock, in nanoseconds:
 * `main_ns=N end_ns=N`. In between it computes for a while, in as many threads as asked, all of them still at it at the
 * end. usage: stamp [SECONDS [THREADS]] */
#include "helper.h"

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static void *burner(void *arg)
{
	for (;;)
		burn(100000);
	return arg;
}

int main(int argc, char **argv)
{
	uint64_t begin = now_ns(), end = begin + (uint64_t)((argc > 1 ? atof(argv[1]) : 0.2) * 1e9);
	int threads = argc > 2 ? atoi(argv[2]) : 1, n;
	char text[80];
	pthread_t t;

	for (int i = 1; i < threads; i++)
		start_thread(&t, burner, NULL);
	while (now_ns() < end) {
		burn(100000);
		progress();
	}
	n = snprintf(text, sizeof(text), "main_ns=%llu end_ns=%llu\n", (unsigned long long)begin,
		     (unsigned long long)now_ns());
	if (write(STDERR_FILENO, text, (size_t)n) != n)
		return 2;
	_exit(0);
}
