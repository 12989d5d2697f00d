// SPDX-License-Identifier: BSD-2-Clause
/* Writes the same bytes every time to stdout and stderr, from two threads that take turns, buffered and not, while it
 * computes: for comparison with a run without the profiler. usage: output [LINES]. The last line is a checksum of all
 * that was computed. */
#include "helper.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long lines, turn;
static uint64_t sum = 1;

static KEEP uint64_t mix(uint64_t x, uint64_t n)
{
	for (uint64_t i = n; i > 0; x = x * 6364136223846793005ULL + i, i--) /* LINE:mix */
		;
	return x;
}

static void write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t n = write(fd, text, left);

		if (n < 0)
			exit(2); /* EINTR as well: nobody has a right to interrupt here */
		text += n;
		left -= (size_t)n;
	}
}

static void *writer(void *arg)
{
	long parity = (long)(intptr_t)arg;
	char text[80];

	(void)pthread_mutex_lock(&lock);
	for (;;) {
		while (turn < lines && turn % 2 != parity)
			(void)pthread_cond_wait(&turned, &lock);
		if (turn >= lines)
			break;
		sum = mix(sum, 200000);
		printf("%ld %016llx\n", turn, (unsigned long long)sum);
		(void)snprintf(text, sizeof(text), "note %ld of thread %ld\n", turn, parity);
		write_all(STDERR_FILENO, text);
		progress();
		turn++;
		(void)pthread_cond_broadcast(&turned);
	}
	(void)pthread_mutex_unlock(&lock);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[2];

	lines = argc > 1 ? atol(argv[1]) : 2000;
	for (intptr_t i = 0; i < 2; i++)
		start_thread(&t[i], writer, (void *)i);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(t[i], NULL);
	printf("sum %016llx\n", (unsigned long long)sum);
	return 0;
}
