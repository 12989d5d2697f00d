// SPDX-License-Identifier: BSD-2-Clause
/* A server and its client in one thread: requests of about a millisecond, each sent by sendto and taken by recvfrom, after a
 * start that reads a file many times. Every 100 ms a line `at_ms=N requests=N`, where at_ms is CLOCK_MONOTONIC and requests those
 * since the line before. With WORKERS, so many children do the same at a time, each by itself, and print lines of their own.
 * usage: answers SECONDS [WORKERS] */
#include "helper.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP void answer(int from, int to)
{
	char request[16];

	(void)!recv(from, request, sizeof(request), 0);
	burn(4000000);
	(void)!send(to, "answer", 6, 0);
}

static void start_up(void)
{
	int fd = open("/proc/self/stat", O_RDONLY);
	char text[16];

	for (int i = 0; i < 1000; i++)
		(void)!pread(fd, text, sizeof(text), 0);
	(void)close(fd);
}

static int serve(double seconds)
{
	uint64_t begin = now_ns(), next = begin + 100000000U, now, requests = 0;
	char answered[16];
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		return 2;
	start_up();
	while ((now = now_ns()) - begin < (uint64_t)(seconds * 1e9)) {
		(void)!send(ends[0], "request", 7, 0);
		answer(ends[1], ends[1]);
		(void)!recv(ends[0], answered, sizeof(answered), 0);
		progress();
		requests++;
		if (now < next)
			continue;
		printf("at_ms=%llu requests=%llu\n", (unsigned long long)(now / 1000000U), (unsigned long long)requests);
		requests = 0;
		next += 100000000U;
	}
	return 0;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0;
	int workers = argc > 2 ? atoi(argv[2]) : 0, status;

	if (!(seconds > 0 && seconds < 1e6)) {
		fprintf(stderr, "usage: %s SECONDS [WORKERS]\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!workers)
		return serve(seconds);
	for (int i = 0; i < workers; i++)
		if (fork() == 0)
			_exit(serve(seconds));
	while (wait(&status) > 0)
		continue;
	return 0;
}
