// SPDX-License-Identifier: BSD-2-Clause
/* What the shim interposes, of whichever C library this is compiled with: tests/e2e/musl.test.sh.
 * usage: starts_of_libc [PROGRAM]. Prints what the calls return, then becomes PROGRAM. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ACTIONS 150

extern char **environ;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ready;

static void *tell(void *arg)
{
	(void)pthread_mutex_lock(&mutex);
	ready = 1;
	(void)pthread_cond_signal(&cond);
	(void)pthread_mutex_unlock(&mutex);
	return arg;
}

/* With little stack, and many actions. */
static void *start(void *actions)
{
	static char line[] = "echo spawned; exit 5", sh[] = "sh", c[] = "-c";
	static char *argv[] = {sh, c, line, NULL};
	static int status;
	pid_t pid;

	if (posix_spawn(&pid, "/bin/sh", actions, NULL, argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid)
		status = -1;
	return &status;
}

static int spawned(void)
{
	posix_spawn_file_actions_t actions;
	pthread_attr_t attr;
	pthread_t thread;
	void *status = NULL;

	(void)posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < ACTIONS; i++)
		if (posix_spawn_file_actions_adddup2(&actions, 1, 10) != 0)
			return -1;
	(void)pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr,
				      PTHREAD_STACK_MIN < 16384 ? 16384 : PTHREAD_STACK_MIN) ||
	    pthread_create(&thread, &attr, start, &actions) != 0 ||
	    pthread_join(thread, &status) != 0)
		return -1;
	(void)posix_spawn_file_actions_destroy(&actions);
	return WEXITSTATUS(*(int *)status);
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 300 * 1000 * 1000};
	char text[32] = "";
	void *result = NULL;
	pthread_t thread;
	FILE *stream;

	(void)setvbuf(stdout, NULL, _IONBF, 0);
	(void)nanosleep(&pause, NULL);
	errno = 0;
	(void)execl("/nonexistent", "x", (char *)NULL);
	printf("execl errno %d\n", errno);
	if (pthread_create(&thread, NULL, tell, &ready) != 0)
		return 1;
	(void)pthread_mutex_lock(&mutex);
	while (!ready)
		(void)pthread_cond_wait(&cond, &mutex);
	(void)pthread_mutex_unlock(&mutex);
	(void)pthread_join(thread, &result);
	printf("joined %d\n", result == &ready);
	printf("posix_spawn %d\n", spawned());
	printf("system %d\n", WEXITSTATUS(system("exit 6")));
	stream = popen("echo read", "r");
	if (!stream || !fgets(text, sizeof(text), stream))
		return 1;
	printf("popen %s", text);
	printf("pclose %d, LD_PRELOAD %s\n", pclose(stream),
	       getenv("LD_PRELOAD") ? "set" : "unset");
	if (argc > 1)
		(void)execl(argv[1], argv[1], (char *)NULL);
	return 7;
}
