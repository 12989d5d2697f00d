// SPDX-License-Identifier: BSD-2-Clause
/* Two threads do a fixed amount of work each. usage: limited MILLION_ITERATIONS [limit]; with "limit" the process may use an hour of CPU time
 * (RLIMIT_CPU), else as much as it likes. */
#include "helper.h"

#include <sys/resource.h>

static long millions;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP void other(uint64_t n)
{
	BURN(n);
}

static void *body(void *arg)
{
	for (long i = 0; i < millions; i++) {
		if (arg)
			burn(1000000);
		else
			other(1000000);
		progress();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct rlimit limit = { argc > 2 ? 3600 : RLIM_INFINITY, RLIM_INFINITY };
	pthread_t thread;

	millions = argc > 1 ? atol(argv[1]) : 500;
	if (setrlimit(RLIMIT_CPU, &limit) < 0)
		return 2;
	start_thread(&thread, body, argv);
	(void)body(NULL);
	(void)pthread_join(thread, NULL);
	return 0;
}
