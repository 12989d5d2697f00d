// SPDX-License-Identifier: BSD-2-Clause
/* So many system calls: `elapsed_ns=N`. usage: calls N */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timespec a, b;
	long n = argc > 1 ? atol(argv[1]) : 1000000;

	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < n; i++)
		(void)syscall(SYS_getppid);
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	(void)printf("elapsed_ns=%lld\n",
		     (long long)(b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec);
	return 0;
}
