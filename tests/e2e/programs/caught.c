// SPDX-License-Identifier: BSD-2-Clause
/* Handles signals and says so at once: a line with the name of each that arrives, "ready" before the first. SIGTERM ends
 * it with status 5, a time limit with status 3. A second thread computes, so that pauses are owed meanwhile. usage:
 * caught SECONDS */
#include "helper.h"

#include <signal.h>

static volatile sig_atomic_t over;

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(2);
}

static void handler(int signo)
{
	say(signo == SIGUSR1 ? "USR1\n" : signo == SIGUSR2 ? "USR2\n" : signo == SIGHUP ? "HUP\n" : "TERM\n");
	if (signo == SIGTERM)
		over = 1;
}

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
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	uint64_t end = now_ns() + (uint64_t)(seconds_of(argc, argv) * 1e9);
	static const int signals[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGTERM};
	pthread_t t;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
	start_thread(&t, burner, NULL);
	say("ready\n");
	while (!over && now_ns() < end) {
		burn(100000);
		progress();
	}
	return over ? 5 : 3;
}
