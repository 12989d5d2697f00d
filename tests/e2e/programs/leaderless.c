// SPDX-License-Identifier: BSD-2-Clause
/* main ends by pthread_exit, at once or after some seconds, and two threads go on. They wait for the end of the standard input, settle, visit a
 * point ROUNDS times each, and say how often: `visits=N settle_ns=N`. usage: leaderless ROUNDS [SETTLE_SECONDS [SECONDS of main [LIBRARY]]]
 * LIBRARY is loaded when the input has ended. */
#include "settle.h"

#include <dlfcn.h>

static pthread_barrier_t together;
static uint64_t visits, length;
static const char *library;
static long rounds;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

/* `list points --rates` finds functions that others could call. */
void served(void);
KEEP void served(void)
{
	progress();
}

static void *body(void *arg)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	if (library && !dlopen(library, RTLD_NOW))
		printf("%s\n", dlerror());
	(void)pthread_barrier_wait(&together);
	settle(length);
	for (long i = 0; i < rounds; i++) {
		burn(rounds > 100000 ? 1000000 : 100000); /* many: few each second */
		(void)__atomic_add_fetch(&visits, 1, __ATOMIC_RELAXED);
		served();
	}
	settle(length / 4);
	if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD)
		printf("visits=%llu settle_ns=%llu\n", (unsigned long long)visits, (unsigned long long)length);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[2];

	rounds = argc > 1 ? atol(argv[1]) : 1000;
	length = settle_length(argc, argv);
	library = argc > 4 ? argv[4] : NULL;
	(void)pthread_barrier_init(&together, NULL, 2);
	start_thread(&t[0], body, NULL);
	start_thread(&t[1], body, NULL);
	(void)sleep_seconds(argc > 3 ? atof(argv[3]) : 0);
	pthread_exit(NULL);
}
