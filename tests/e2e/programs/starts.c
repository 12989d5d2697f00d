// SPDX-License-Identifier: BSD-2-Clause
/* Starts a command in one of the ways that go through libc: spawn, spawnp, actions (posix_spawn with its output through a pipe, to a
 * descriptor that it numbers itself), closing (the same, and all other descriptors are closed), system, popen, both (a spawn, while
 * another thread is in system). What the command writes appears on standard output. usage: starts HOW COMMAND, which a shell runs. */
#include "helper.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void check(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(r));
	exit(2);
}

static int ended(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static int copy(int fd)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		if (write(STDOUT_FILENO, bytes, (size_t)n) != n)
			return 2;
	return n < 0 ? 2 : 0;
}

static int spawned(char *command, int (*start)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
					       char *const[], char *const[]), const char *file)
{
	char *const argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", command, NULL };
	pid_t pid;

	check(start(&pid, file, NULL, NULL, argv, environ), "posix_spawn");
	return ended(pid);
}

static int with_actions(char *command, int closing)
{
	char *const argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", command, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2], r;
	pid_t pid;

	check(pipe2(fds, O_CLOEXEC) < 0 ? errno : 0, "pipe");
	check(posix_spawn_file_actions_init(&actions), "init");
	check(posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO), "adddup2");
	check(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0), "addopen");
	for (int i = 3; closing && i < 12; i++)
		check(posix_spawn_file_actions_addclose(&actions, i), "addclose");
#if __GLIBC_PREREQ(2, 34)
	if (closing)
		check(posix_spawn_file_actions_addclosefrom_np(&actions, 3), "addclosefrom");
#endif
	check(posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ), "posix_spawn");
	check(posix_spawn_file_actions_destroy(&actions), "destroy");
	(void)close(fds[1]);
	r = copy(fds[0]);
	(void)close(fds[0]);
	return r ? r : ended(pid);
}

static int by_popen(const char *command)
{
	FILE *f = popen(command, "re");
	int r;

	check(f ? 0 : errno, "popen");
	r = copy(fileno(f));
	return r ? r : WEXITSTATUS(pclose(f));
}

static void *in_system(void *arg)
{
	return (void *)(intptr_t)WEXITSTATUS(system(arg));
}

static int both(char *command)
{
	void *r;
	pthread_t t;
	int status;

	start_thread(&t, in_system, (void *)(uintptr_t)"sleep 0.3");
	(void)usleep(150000);
	status = spawned(command, posix_spawn, "/bin/sh");
	(void)pthread_join(t, &r);
	return r ? 2 : status;
}

int main(int argc, char **argv)
{
	const char *how = argc == 3 ? argv[1] : "";
	posix_spawn_file_actions_t unused;
	pid_t pid;
	int status;

	/* What cannot be started says so, and why. */
	check(posix_spawn_file_actions_init(&unused), "init");
	if (posix_spawn(&pid, "/nowhere", &unused, NULL, argv, environ) != ENOENT || posix_spawnp(&pid, "nowhere", NULL, NULL, argv, environ) != ENOENT)
		return 2;
	if (strcmp(how, "spawn") == 0)
		status = spawned(argv[2], posix_spawn, "/bin/sh");
	else if (strcmp(how, "spawnp") == 0)
		status = spawned(argv[2], posix_spawnp, "sh");
	else if (strcmp(how, "actions") == 0 || strcmp(how, "closing") == 0)
		status = with_actions(argv[2], strcmp(how, "closing") == 0);
	else if (strcmp(how, "system") == 0)
		status = WEXITSTATUS(system(argv[2]));
	else if (strcmp(how, "popen") == 0)
		status = by_popen(argv[2]);
	else if (strcmp(how, "both") == 0)
		status = both(argv[2]);
	else
		return 2;
	return status;
}
