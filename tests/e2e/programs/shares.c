// SPDX-License-Identifier: BSD-2-Clause
/* Four threads that spend three quarters of their time in one line and a quarter in another. usage: shares SECONDS */
#include "helper.h"

static uint64_t end;

static KEEP void more(void)
{
	BURN(30000); /* LINE:more */
}

static KEEP void less(void)
{
	BURN(10000); /* LINE:less */
}

static void *body(void *arg)
{
	while (now_ns() < end) {
		more();
		less();
		progress();
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[4];

	end = now_ns() + (uint64_t)(seconds_of(argc, argv) * 1e9);
	for (int i = 0; i < 4; i++)
		start_thread(&t[i], body, NULL);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	return 0;
}
