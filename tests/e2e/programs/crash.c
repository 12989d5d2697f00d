// SPDX-License-Identifier: BSD-2-Clause
/* Threads compute and share a mutex; then one leaks memory, and the program ends, or dies of SIGSEGV while the others go on. usage: crash SECONDS
 * [segv] */
#include "helper.h"

static volatile int over;
static uint64_t shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

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
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		if (arg)
			burn(100000);
		else
			other(100000);
		(void)pthread_mutex_lock(&mutex);
		shared++;
		progress();
		(void)pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (uint64_t)((argc > 1 ? atof(argv[1]) : 1) * 1e9);
	void *volatile leaked = malloc(1234);
	pthread_t t[3];

	leaked = NULL;
	for (int i = 0; i < 3; i++)
		start_thread(&t[i], body, i ? NULL : argv);
	while (now_ns() < end)
		other(100000);
	if (argc > 2)
		*(volatile int *)leaked = 1;
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		(void)pthread_join(t[i], NULL);
	return 0;
}
