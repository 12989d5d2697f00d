// SPDX-License-Identifier: BSD-2-Clause
/* usage: deep DEPTH TIMES: prints how long it took, elapsed_ns=N. DEPTH is at least 3: the
 * library's frame, one of deep.c, and this one. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void deep(int levels, long times);

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long long start;

	if (argc != 3 || atoi(argv[1]) < 3)
		return 2;
	start = now_ns();
	deep(atoi(argv[1]) - 3, atol(argv[2]));
	printf("elapsed_ns=%lld\n", now_ns() - start);
	return 0;
}
