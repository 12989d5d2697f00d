// SPDX-License-Identifier: BSD-2-Clause
/* A parent and its child compute and pass the progress point, each as often as it can. usage: tree HOW SECONDS, HOW the way in which the
 * child comes to be: fork, vfork (and exec), spawn (posix_spawn), exec (a fork that starts this program again), double (the
 * parent in between ends). Prints the visits of each. */
#include "helper.h"

#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>

static uint64_t batches;

static KEEP void in_parent(uint64_t n)
{
	BURN(n); /* LINE:parent */
}

static KEEP void in_child(uint64_t n)
{
	BURN(n); /* LINE:child */
}

static int compute(bool child, double seconds)
{
	uint64_t begin = now_ns();
	char text[64];
	int n;

	while ((double)(now_ns() - begin) < seconds * 1e9) {
		if (child)
			in_child(400000);
		else
			in_parent(400000);
		visit(&batches);
	}
	n = snprintf(text, sizeof(text), "%s visits=%llu\n", child ? "child" : "parent", (unsigned long long)batches);
	return write(STDOUT_FILENO, text, (size_t)n) == n ? 0 : 2;
}

int main(int argc, char **argv)
{
	char *again[] = { argv[0], (char *)(uintptr_t)"child", argc == 3 ? argv[2] : NULL, NULL };
	double seconds = argc == 3 ? atof(argv[2]) : 0;
	const char *how = argc == 3 ? argv[1] : "";
	extern char **environ;
	pid_t pid = -1;
	int status = 0, r;

	if (strcmp(how, "child") == 0)
		return compute(true, seconds);
	if (strcmp(how, "spawn") == 0) {
		if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, again, environ) != 0)
			return 2;
	} else if (strcmp(how, "vfork") == 0) {
		pid = vfork();
		if (pid == 0) {
			(void)execv("/proc/self/exe", again);
			_exit(2);
		}
	} else {
		pid = fork();
		if (pid == 0 && strcmp(how, "exec") == 0) {
			(void)execv("/proc/self/exe", again);
			_exit(2);
		}
		if (pid == 0 && strcmp(how, "double") == 0 && fork() > 0)
			_exit(0);
		if (pid == 0)
			_exit(compute(true, seconds));
	}
	if (pid < 0)
		return 2;
	r = compute(false, seconds + 0.1);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return r ? r : WEXITSTATUS(status);
}
