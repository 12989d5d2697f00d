// SPDX-License-Identifier: BSD-2-Clause
/* Ends in the asked way after computing for a while: usage: ending STATUS|SIGNAL [SECONDS], where STATUS is 0..255 and
 * SIGNAL one of TERM, SEGV, KILL, ABRT. A thread computes beside the main one, so that pauses are owed at the end. */
#include "helper.h"

#include <signal.h>

static const struct {
	const char *name;
	int signo;
} signals[] = { { "TERM", SIGTERM }, { "SEGV", SIGSEGV }, { "KILL", SIGKILL }, { "ABRT", SIGABRT } };

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
	uint64_t end = now_ns() + (uint64_t)((argc > 2 ? atof(argv[2]) : 0.5) * 1e9);
	volatile int *volatile nowhere = NULL;
	pthread_t t;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: %s STATUS|TERM|SEGV|KILL|ABRT [SECONDS]\n", argv[0]);
		return 2;
	}
	start_thread(&t, burner, NULL);
	while (now_ns() < end) {
		burn(100000);
		progress();
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (strcmp(argv[1], signals[i].name) == 0) {
			if (signals[i].signo == SIGSEGV)
				*nowhere = 0; /* a real fault, not a raised signal */
			(void)raise(signals[i].signo);
			return 2;
		}
	}
	return atoi(argv[1]);
}
