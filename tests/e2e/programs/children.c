// SPDX-License-Identifier: BSD-2-Clause
/* Makes children in every way: fork, fork with threads in parent and child, vfork-like spawning, a shell. Each has to
 * end as it should. usage: children [ROUNDS]; prints `rounds=N forked=N spawned=N shells=N`, status 1 if one did not. */
#include "helper.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static volatile int over;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static void *burner(void *arg)
{
	while (!over)
		burn(100000);
	return arg;
}

static int ended_with(pid_t pid, int wanted)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == wanted;
}

static _Noreturn void child(int status)
{
	pthread_t t;

	over = 0;
	start_thread(&t, burner, NULL);
	for (int i = 0; i < 50; i++) {
		burn(100000);
		progress();
	}
	over = 1;
	(void)pthread_join(t, NULL);
	_exit(status);
}

static int spawned(void)
{
	char *const argv[] = { "sh", "-c", "exit 9", NULL };
	pid_t pid;

	return posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) == 0 && ended_with(pid, 9);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20, n_forked = 0, n_spawned = 0, n_shells = 0;
	pthread_t t;

	start_thread(&t, burner, NULL);
	for (int i = 0; i < rounds; i++) {
		pid_t a = fork(), b;

		if (a == 0)
			child(i % 100);
		b = fork();
		if (b == 0)
			child(i % 100 + 100);
		burn(1000000);
		n_forked += ended_with(a, i % 100) + ended_with(b, i % 100 + 100);
		n_spawned += spawned();
		n_shells += system("exit 0") == 0;
		progress();
	}
	printf("rounds=%d forked=%d spawned=%d shells=%d\n", rounds, n_forked, n_spawned, n_shells);
	return n_forked != 2 * rounds || n_spawned != rounds || n_shells != rounds;
}
