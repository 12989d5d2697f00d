// SPDX-License-Identifier: BSD-2-Clause
/* Creates and joins threads one by one. usage: threads [COUNT]; prints `threads=N us_per_thread=X`. */
#include "helper.h"

static void *body(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 20000;
	uint64_t t0 = now_ns();

	for (long i = 0; i < count; i++) {
		pthread_t t;
		void *result;

		if (pthread_create(&t, NULL, body, (void *)(intptr_t)i) || pthread_join(t, &result) ||
		    (intptr_t)result != i)
			return 2;
		progress();
	}
	printf("threads=%ld us_per_thread=%.3f\n", count,
	       (double)(now_ns() - t0) / 1e3 / (double)(count > 0 ? count : 1));
	return 0;
}
